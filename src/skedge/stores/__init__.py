"""Indexed object stores, listers and versions: what informers fill and plugins read.

No I/O and no columns; a store knows its objects, not the cluster.
"""
