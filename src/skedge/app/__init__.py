"""The running process: start order, signals, shutdown.

Joins what others built; no rules, no parsing of arguments.
"""
