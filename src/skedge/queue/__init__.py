"""Which pod is next: active, backoff, unschedulable, in-flight events and nominations.

Pure state: events in, instructions out. No loop, no I/O, no clock of its own.
"""
