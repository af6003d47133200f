"""What is particular to each kind: defaults, preparation, validation.

One module a family of kinds, collected by `registry.py`. Nothing here knows HTTP.
"""
