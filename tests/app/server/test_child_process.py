"""A supervisor restarts its children, replaces them, and gives each running process a number of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import pytest
from waiting import wait_for

from app.server import child_process
from app.server.api_processes import ApiProcesses
from app.server.child_process import ChildProcess, replace
from app.settings import Settings

PROGRAM = """
import os, signal, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if "--ready-fd" in options:
    {ready}
signal.pause()
"""
"""A child that does nothing. It gets the options of an API process."""

READY = "os.write(int(options['--ready-fd']), b'x'); os.close(int(options['--ready-fd']))"


@pytest.fixture
def api() -> Iterator[ApiProcesses]:
    """Two children, which the test starts."""
    with socket.socket() as listener, ApiProcesses(Settings(processes=2), listener) as api:
        for child in api.children:
            child.command = [sys.executable, "-c", PROGRAM.format(ready=READY)]
        yield api
        for child in api.children:
            child.stop()


def restart(children: list[ChildProcess]) -> Callable[[], bool]:
    def supervise() -> bool:
        for child in children:
            child.restart_if_dead()
        return True

    return supervise


def kill(child: ChildProcess) -> None:
    assert child.process is not None
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()


def numbers(api: ApiProcesses) -> list[int | None]:
    return [child.number for child in api.children]


def test_a_dead_process_is_restarted_with_its_number(api: ApiProcesses) -> None:
    supervise = restart(api.children)
    supervise()
    assert numbers(api) == [0, 1]
    kill(api.children[0])

    def restarted() -> bool | None:
        supervise()
        return True if api.children[0].process is not None else None

    wait_for(restarted, what="the restart")
    assert numbers(api) == [0, 1]


def test_processes_that_run_at_the_same_time_have_different_numbers(api: ApiProcesses) -> None:
    supervise = restart(api.children)
    supervise()
    old = api.children[0].process
    replace(api.children[0], supervise)
    assert old is not None
    assert old.poll() is not None
    assert numbers(api) == [2, 1]
    replace(api.children[1], supervise)
    assert numbers(api) == [2, 0]


def test_a_process_that_does_not_become_ready_replaces_nothing(api: ApiProcesses) -> None:
    supervise = restart(api.children)
    supervise()
    old = api.children[0].process
    api.children[0].command = [sys.executable, "-c", PROGRAM.format(ready="sys.exit(1)")]
    replace(api.children[0], supervise)
    assert api.children[0].process is old
    assert numbers(api) == [0, 1]
    assert api.take() == 2


def test_a_process_that_does_not_stop_is_killed(api: ApiProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "STOP_SECONDS", 0.0)
    child = api.children[0]
    handler = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        child.restart_if_dead()  # it inherits that the signal is ignored
    finally:
        signal.signal(signal.SIGTERM, handler)
    process = child.process
    child.stop()
    assert process is not None
    assert process.returncode == -signal.SIGKILL
    assert child.process is None
    assert api.take() == 0
