"""skedge: kube-scheduler in Python."""

__version__ = "0.1.0"
KUBERNETES_VERSION = "v1.36.2"  # the release whose behaviour is reproduced
