# Covey. `make help` lists what can be done.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: install
install: $(VENV)/.installed ## Make .venv with covey in it, from the hashed lock.

$(VENV)/.installed: requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Covey needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement requirements/run.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.developing: $(VENV)/.installed requirements/dev.lock
	$(PIP) install --require-hashes --requirement requirements/dev.lock
	@touch $@

.PHONY: demo
demo: install ## Run the main job for real and leave the service running (ONCE=1 stops by itself).
	$(BIN)/covey demo $(if $(ONCE),--once)

.PHONY: test
test: $(VENV)/.developing ## Set up and run all checks and tests.
	@$(MAKE) --no-print-directory check
	$(BIN)/pytest --numprocesses 2 --dist loadgroup

.PHONY: check
check: $(VENV)/.developing ## Check style, types and the lock.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: results
results: $(VENV)/.developing ## Make docs/results.md anew, on the service at URL or on one of its own (takes an hour).
	$(BIN)/python -m benchmarks.papers $(if $(URL),--url $(URL))

.PHONY: bench-quick
bench-quick: $(VENV)/.developing ## Make small versions of the papers' tables in ten minutes, and print them.
	$(BIN)/python -m benchmarks.papers --quick $(if $(URL),--url $(URL))

.PHONY: audit
audit: $(VENV)/.developing ## Look for known vulnerabilities in the locked dependencies (asks the network; fails where it cannot).
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements/run.lock

.PHONY: openapi
openapi: $(VENV)/.developing ## Write openapi.json anew from the app.
	$(BIN)/covey openapi > openapi.json

.PHONY: lock
lock: ## Lock the dependencies anew (needs uv).
	requirements/lock.sh --upgrade

.PHONY: clean
clean: ## Remove what the targets above have made.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
