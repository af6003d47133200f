"""A plain scheduler: one pod, one node at a time, on JSON values, with nothing of the product but quantities.

Slow and obvious. It answers in the form of a recorded decision, so the same comparison serves recordings and it.
"""
