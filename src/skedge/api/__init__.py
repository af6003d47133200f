"""Typed objects of the Kubernetes API: narrow structs decoded from JSON bytes, quantities, selectors, taints, requests.

No I/O, no knowledge of a cluster's state: an object is what the API server sent, nothing derived from other objects.
"""
