"""The embedded control plane: an API server over HTTP, small controllers, fake nodes.

Stores objects whole. The scheduler meets it over the wire exactly as it meets a real one.
"""
