"""Runs the plugins of a profile: lists per extension point, fragment caches, weights, timing.

Knows plugins only through the contract.
"""
