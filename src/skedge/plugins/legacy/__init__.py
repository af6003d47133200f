"""Plugins of releases up to 1.22 that a Policy or an algorithm provider may still ask for; a v1 file can not.

They know no other plugin but the scorers of `noderesources`. Upstream (v1.20): `pkg/scheduler/framework/plugins`.
"""
