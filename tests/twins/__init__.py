"""Slow, obvious twins of rules: one node and one pod at a time, straight from the objects. Only tests use them."""
