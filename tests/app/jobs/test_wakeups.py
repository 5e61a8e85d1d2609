"""Wake-ups reach idle slots, and neither block nor accumulate without limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from waiting import LIMIT_SECONDS

from workers.wakeups import Wakeups


@pytest.fixture
def wakeups() -> Iterator[Wakeups]:
    wakeups = Wakeups()
    yield wakeups
    wakeups.close()


def test_a_slot_is_woken_once_by_earlier_wakeups(wakeups: Wakeups) -> None:
    assert not wakeups.wait(0.0)
    for _ in range(3):
        wakeups.notify("job_1")
    assert wakeups.wait(LIMIT_SECONDS)
    assert not wakeups.wait(0.0)


def test_waking_never_blocks(wakeups: Wakeups) -> None:
    for _ in range(200_000):  # more than a pipe holds
        wakeups.wake()
    assert wakeups.wait(LIMIT_SECONDS)
