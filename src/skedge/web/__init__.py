"""Pages and the JSON they read.

Shows what `simulate` and `telemetry` know; decides nothing.
"""
