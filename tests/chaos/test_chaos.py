"""No job is lost or completed twice when processes die, disks fill, and servers are slow or away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dependencies
import fault_injection
import postgres
import pytest
import required
from fault_injection import Account
from stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.system]


@contextmanager
def started(data: Path, settings: dict[str, str]) -> Iterator[Stack]:
    stack = Stack(data, fault_injection.QUICK | settings).start()
    try:
        yield stack
    finally:
        stack.stop()


def expect_right(account: Account) -> None:
    assert account.is_right, "\n".join(account.lines())


@pytest.mark.parametrize("faults", [6, pytest.param(150, marks=pytest.mark.long)])
def test_no_job_is_lost_or_completed_twice(tmp_path: Path, faults: int) -> None:
    data = tmp_path / "data"
    with fault_injection.small_disk(data / "storage", mib=16) as disk_is_small, started(data, {}) as stack:
        account = fault_injection.run(
            stack,
            seed=faults,
            enough=lambda injected: injected >= faults,
            disk=data / "storage" if disk_is_small else None,
        )
    expect_right(account)


@pytest.mark.parametrize(("faults", "longest"), [(8, 2.0), pytest.param(150, 10.0, marks=pytest.mark.long)])
def test_no_job_is_lost_or_completed_twice_while_servers_are_slow_or_away(
    tmp_path: Path, faults: int, longest: float
) -> None:
    with ExitStack() as opened:
        try:
            servers = opened.enter_context(dependencies.dependencies(tmp_path))
        except postgres.UnavailableError as error:
            required.missing(f"no PostgreSQL: {error}")
        stack = opened.enter_context(started(tmp_path / "data", servers.settings))
        opened.callback(servers.heal)
        account = fault_injection.run(
            stack,
            seed=faults,
            enough=lambda injected: injected >= faults,
            servers=servers,
            longest=longest,
        )
    expect_right(account)
