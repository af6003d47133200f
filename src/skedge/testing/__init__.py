"""Public test kit: builders, virtual time, fault-injecting transport, the conformance runner.

Nothing in the product imports it.
"""
