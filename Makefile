# Covey. Run `make help` to list the targets.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: install
install: $(VENV)/.installed ## Create .venv and install covey with the locked dependencies.

$(VENV)/.installed: requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Covey needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --no-compile --require-hashes --requirement requirements/run.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@# pip would compile with one process. A file that cannot be compiled is for another version of Python.
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

$(VENV)/.developing: $(VENV)/.installed requirements/dev.lock
	@# Python compiles the part of these packages that runs, when it runs.
	$(PIP) install --no-compile --require-hashes --requirement requirements/dev.lock
	@touch $@

.PHONY: demo
demo: install ## Run the demo and keep the service running (ONCE=1: stop afterwards).
	$(BIN)/covey demo $(if $(ONCE),--once)

.PHONY: test
test: $(VENV)/.developing ## Set up and run the tests.
	$(BIN)/pytest --numprocesses 2 --dist loadgroup

.PHONY: test-faults
test-faults: $(VENV)/.developing ## Run the tests that kill, stop, starve or attack real processes.
	$(BIN)/pytest --numprocesses 2 --dist loadgroup -m "faults and not long" tests

.PHONY: durations
durations: $(VENV)/.developing ## Run all tests and store how long they take, which orders the tests of later runs.
	$(BIN)/pytest --numprocesses 2 --dist loadgroup --store-durations -m "not long and not build"

.PHONY: test-long
test-long: $(VENV)/.developing ## Run the tests with many more random examples, and the slow tests (about an hour).
	$(BIN)/pytest --numprocesses 2 --dist loadgroup --hypothesis-profile long -m "long or not long"

PROTOCOL_CLIENTS := build/protocol-clients

$(PROTOCOL_CLIENTS)/%/.installed: tests/protocols/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

.PHONY: protocol-clients
protocol-clients: $(VENV)/.developing $(PROTOCOL_CLIENTS)/open-inference/.installed $(PROTOCOL_CLIENTS)/label-studio/.installed ## Try clients of other projects with the service: Triton, KServe, MLServer, Label Studio (needs the network).
	COVEY_PROTOCOL_CLIENTS=$(CURDIR)/$(PROTOCOL_CLIENTS) $(BIN)/pytest tests/protocols

CHECKS := check-types check-style check-contract check-build

.PHONY: check $(CHECKS)
check: $(VENV)/.developing ## Check style, types and openapi.json; build the site, the package and clients; run the pages.
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target $(CHECKS)

check-types:
	$(BIN)/python clients/python/generate.py
	$(BIN)/mypy

check-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-contract:
	$(BIN)/python clients/python/unasync.py --check
	$(BIN)/python clients/breaking_changes.py
	$(BIN)/python clients/check_rules.py

check-build:
	$(BIN)/pytest -m "build and not long" tests/build

.PHONY: clients
clients: $(VENV)/.developing ## Generate clients from openapi.json into clients/generated (CLIENTS="go java": only these).
	$(BIN)/python clients/generate_clients.py $(CLIENTS)

.PHONY: clients-long
clients-long: $(VENV)/.developing ## Compile the Go, Java and C# clients, and drive a running service with them.
	$(BIN)/pytest -m long tests/build/test_compiled.py

.PHONY: results
results: $(VENV)/.developing ## Measure the results of the papers again and render docs/background/results.md (an hour; URL: a running service).
	$(BIN)/python -m benchmarks.papers $(if $(URL),--url $(URL))

.PHONY: bench-quick
bench-quick: $(VENV)/.developing ## Print small versions of the papers' tables (ten minutes).
	$(BIN)/python -m benchmarks.papers --quick $(if $(URL),--url $(URL))

.PHONY: audit
audit: $(VENV)/.developing ## Check the locked dependencies for known vulnerabilities (needs the network).
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements/run.lock

.PHONY: openapi
openapi: $(VENV)/.developing ## Regenerate openapi.json.
	$(BIN)/covey openapi > openapi.json

.PHONY: openapi-release
openapi-release: $(VENV)/.developing ## At a release: later changes of openapi.json are compared with the present one.
	$(BIN)/python clients/breaking_changes.py --release

.PHONY: docs
docs: $(VENV)/.developing ## Build the documentation site into build/site.
	$(BIN)/sphinx-build --quiet --fail-on-warning --conf-dir docs/site --doctree-dir build/doctrees docs build/site
	@echo "Open build/site/index.html in a browser."

.PHONY: lock
lock: ## Update the locked dependencies (needs uv).
	requirements/lock.sh --upgrade

.PHONY: clean
clean: ## Remove .venv and the caches.
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
