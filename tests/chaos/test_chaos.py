"""No job is lost or completed twice when processes are killed or stopped, and when the disk fills up."""

from __future__ import annotations

from pathlib import Path

import fault_injection
import pytest
from stack import Stack

pytestmark = pytest.mark.system


@pytest.mark.parametrize("faults", [12, pytest.param(150, marks=pytest.mark.long)])
def test_no_job_is_lost_or_completed_twice(tmp_path: Path, faults: int) -> None:
    data = tmp_path / "data"
    with fault_injection.small_disk(data / "storage", mib=16) as disk_is_small:
        stack = Stack(data, fault_injection.QUICK).start()
        try:
            counts = fault_injection.run(
                stack,
                seed=faults,
                enough=lambda injected: injected >= faults,
                disk=data / "storage" if disk_is_small else None,
                database_url=None,
            )
        finally:
            stack.stop()
    lines = "\n".join(counts.lines())
    assert counts.lost == 0, lines
    assert counts.done_twice == 0, lines
    assert counts.wrong_checksums == 0, lines
    assert counts.broken_curves == 0, lines
    assert counts.wrong_predictions == 0, lines
    assert counts.succeeded > 0, lines
    assert counts.succeeded + sum(counts.failed.values()) == counts.accepted, lines
    assert set(counts.failed) <= {"worker_lost"}, lines
    assert counts.predictions > 0, lines
