"""Questions to the real engine without a cluster: explain, what-if, capacity, replay.

Uses the same assembly with other ports; has no rules of its own.
"""
