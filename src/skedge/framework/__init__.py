"""The plugin contract: extension points, Status and Code, CycleState, cluster events, the Handle and the ports.

Types and vocabulary only; running plugins belongs to `profiles`, deciding to `scheduler`.
"""
