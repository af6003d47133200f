"""Which pods would have to go: dry runs on views, victim choice, disruption budgets.

Runs filters through the Handle; evicts nothing itself.
"""
