"""Fake nodes: they beat their hearts, run the pods bound to them and let go of those deleted, without running anything.

What happens to pods and nodes, when and how often, is written in stages (stages.py, default_stages.yaml), a form close
to kwok's. Speaks to the API server over HTTP like a kubelet.
"""
