# `make demo` and `make test` are all a fresh machine needs (Python 3.11, pip, make, a package index).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist worksteal
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo test test-full check format lint types contracts docs bench bench-full lock clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(VENV)/.run: requirements/run.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run

demo: $(VENV)/.run ## embedded control plane, fake nodes, example workloads, the scheduler, and a table of what happened
	$(BIN)/skedge demo

test: $(VENV)/.dev ## the tests (at most 6 minutes on 2 cores)
	$(BIN)/python -m pytest -q -m "not slow" $(SIDE_BY_SIDE)

test-full: $(VENV)/.dev ## the tests and the slow tier
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE)

check: $(VENV)/.dev format lint types contracts docs test ## everything a change must pass; stops at the first failure

format: $(VENV)/.dev
	$(BIN)/ruff format --check src tests bench examples

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests bench examples

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/unit/test_docs.py tests/unit/test_deviations.py tests/unit/cli/test_describe.py

bench: $(VENV)/.dev ## quick benchmarks -> bench/results/latest.json
	$(BIN)/python -m bench --quick

bench-full: $(VENV)/.dev ## all benchmarks, all sizes
	$(BIN)/python -m bench

lock: ## renew the lock files (needs uv)
	uv pip compile -q pyproject.toml requirements/build.in -o requirements/run.txt --python-version 3.11 --generate-hashes --universal --no-header --no-emit-index-url --no-annotate
	uv pip compile -q pyproject.toml requirements/build.in requirements/dev.in -o requirements/dev.txt --python-version 3.11 --generate-hashes --universal --no-header --no-emit-index-url --no-annotate

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis bench/results
