"""For a short while everything is killed, stopped and filled up; nothing is lost, nothing is done twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import turmoil
from stack import Stack

pytestmark = pytest.mark.system

SECONDS = 25.0


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with turmoil.small_disk(data / "storage", mib=16) as small:
        stack = Stack(data, turmoil.QUICK).start()
        try:
            until = time.monotonic() + SECONDS
            account = turmoil.run(
                stack,
                seed=1,
                enough=lambda _: time.monotonic() > until,
                disk=data / "storage" if small else None,
                database_url=None,
            )
        finally:
            stack.stop()
    told = "\n".join(account.lines())
    print(told)  # noqa: T201 - shown with -s
    assert account.lost == 0, told
    assert account.done_twice == 0, told
    assert account.wrong_checksums == 0, told
    assert account.broken_curves == 0, told
    assert account.wrong_predictions == 0, told
    assert account.succeeded > 0, told
    assert account.succeeded + sum(account.failed.values()) == account.accepted, told
    assert set(account.failed) <= {"worker_lost"}, told
    assert account.predictions > 0, told
    assert sum(account.faults.values()) > 5, told
