"""Column types, interning, views and masks: the picture of the cluster that rules read.

Reads and writes arrays; knows no plugin, no queue and no API server. Who may change the columns is `cache`.
"""
