"""Benchmarks. Each is a command, ``python -m benchmarks.NAME``, and describes itself with ``--help``.

- ``learners``, ``compare``, ``papers``, ``promises``: costs of learners, variants of pipelines, the papers'
  tables, and what decisions and probabilities promise.
- ``serving``, ``route_start``, ``load``, ``scale``, ``batch_predictions``, ``decisions_growth``,
  ``decision_bytes``, ``readers``: speed and memory.
- ``chaos``, ``attack``: faults, hostile input and races, and random requests and files.
- ``console_pictures``: takes the pictures of the console in the README and in ``docs/console.md``.

Those that start real processes use the support of the tests.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
