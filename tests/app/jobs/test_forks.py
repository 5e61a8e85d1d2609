"""Processes that a worker forks while its threads use the database can write to the database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import forking
from waiting import LIMIT_SECONDS

FORKS = 15


def test_a_process_that_is_forked_during_a_transaction_can_write(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, forking.__file__, str(tmp_path), str(FORKS)],
        cwd=Path(__file__).parents[3],
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert result.stdout == str(FORKS), result.stderr[-3000:]
