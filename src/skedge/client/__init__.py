"""The Kubernetes client: credentials, REST, reflector, informers, work queue, Lease lock, events.

Usable on its own as a library; knows nothing of scheduling.
"""
