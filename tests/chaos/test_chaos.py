"""Processes are killed and stopped, and the disk fills: no job is lost, and none is done twice."""

from __future__ import annotations

from pathlib import Path

import fault_injection
import pytest
from stack import Stack

pytestmark = pytest.mark.system


@pytest.mark.parametrize("faults", [12, pytest.param(150, marks=pytest.mark.long)])
def test_no_job_is_lost_and_none_is_done_twice(tmp_path: Path, faults: int) -> None:
    data = tmp_path / "data"
    with fault_injection.small_disk(data / "storage", mib=16) as small:
        stack = Stack(data, fault_injection.QUICK).start()
        try:
            account = fault_injection.run(
                stack,
                seed=faults,
                enough=lambda injected: injected >= faults,
                disk=data / "storage" if small else None,
                database_url=None,
            )
        finally:
            stack.stop()
    lines = "\n".join(account.lines())
    assert account.lost == 0, lines
    assert account.done_twice == 0, lines
    assert account.wrong_checksums == 0, lines
    assert account.broken_curves == 0, lines
    assert account.wrong_predictions == 0, lines
    assert account.succeeded > 0, lines
    assert account.succeeded + sum(account.failed.values()) == account.accepted, lines
    assert set(account.failed) <= {"worker_lost"}, lines
    assert account.predictions > 0, lines
