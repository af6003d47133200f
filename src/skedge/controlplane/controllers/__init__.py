"""Controllers that turn workloads into pods and keep the cluster tidy: written with the public client, over HTTP.

Each is a `Controller` (base.py): informers tell keys, a rate-limited queue hands them to `reconcile`. Nothing here
reaches into the API server it runs beside, so every controller works against any API server. all.py lists them.
"""
