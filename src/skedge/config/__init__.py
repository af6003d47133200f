"""KubeSchedulerConfiguration, legacy Policy and feature gates: decode, default, convert, validate.

Knows plugin names but no plugin: assembly hands in a table plugin -> argument type. Reads no files, starts nothing.
"""
