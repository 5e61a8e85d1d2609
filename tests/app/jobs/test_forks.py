"""A worker forks while its own threads use the database; the new processes must be none the worse for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import forking
from waiting import LIMIT_SECONDS

FORKS = 15


def test_a_process_that_is_forked_in_mid_transaction_can_write(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, forking.__file__, str(tmp_path), str(FORKS)],
        cwd=Path(__file__).parents[3],
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert ran.stdout == str(FORKS), ran.stderr[-3000:]
