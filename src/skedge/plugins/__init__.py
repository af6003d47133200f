"""The in-tree plugins, one module each, unaware of each other; what several need lies in `helpers`.

No plugin talks to the API server or counts a metric; reasons are constants of their plugin.
"""
