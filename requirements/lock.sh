#!/usr/bin/env bash
# Lock all dependencies with their hashes and without an index URL. Needs uv on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
compile=(uv pip compile --quiet --universal --python-version 3.11 --generate-hashes
         --no-annotate --no-header --no-emit-index-url "$@" pyproject.toml)
# Compile the development lock first, so that the run lock contains the tested versions.
"${compile[@]}" --extra service --extra telemetry --group dev --output-file requirements/dev.lock
"${compile[@]}" --extra service --group build --constraints requirements/dev.lock --output-file requirements/run.lock
