"""Commands: arguments in, text and an exit code out.

No logic that a program could not call without a terminal.
"""
