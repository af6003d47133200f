"""Benchmarks in scheduler_perf's operation words: `python -m bench --quick`. Figures go to `bench/results`."""
