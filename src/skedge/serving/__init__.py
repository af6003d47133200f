"""The scheduler's own HTTP(S) endpoints: health, metrics, configz, statusz, pprof.

Shows state; changes none.
"""
