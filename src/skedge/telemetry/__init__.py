"""Metric families under kube-scheduler's names, log formats and keys, and the hooks they hang on.

Counts what it is told; computes nothing about pods or nodes, and serves nothing over HTTP.
"""
