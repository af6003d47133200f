"""The live cluster: nodes, placed and assumed pods, counters. The only writer of the columns.

Decides nothing; knows no plugin and no queue.
"""
