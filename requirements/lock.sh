#!/usr/bin/env bash
# Locks every dependency with its hashes and without an index address. Needs uv on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
compile=(uv pip compile --quiet --universal --python-version 3.11 --generate-hashes
         --no-annotate --no-header --no-emit-index-url "$@" pyproject.toml)
# The development lock comes first: what runs must be what was tested.
"${compile[@]}" --group dev --output-file requirements/dev.lock
"${compile[@]}" --group build --constraints requirements/dev.lock --output-file requirements/run.lock
