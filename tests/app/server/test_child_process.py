"""A supervisor restarts its children, replaces them, and gives each running process a number of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stack import name_of
from waiting import wait_for

from app.server import api_processes, child_process
from app.server.api_processes import ApiProcesses
from app.server.child_process import ChildProcess, replace
from app.server.program import Program
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

DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{PROGRAM.format(ready=READY)}"
"""A child that does not stop."""


def program(ready: str) -> Program:
    return Program((sys.executable, "-c", PROGRAM.format(ready=ready)))


@pytest.fixture
def api() -> Iterator[ApiProcesses]:
    """Two children, which the test starts."""
    with socket.socket() as listener, ApiProcesses(Settings(processes=2), listener) as api:
        for child in api.children:
            child.program = program(READY)
        yield api
        for child in api.children:
            child.stop()


def test_folders_of_killed_services_are_removed_and_those_of_running_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(api_processes, "LOCKED_SECONDS", -1.0)
    abandoned = tmp_path / "covey-api-killed"
    abandoned.mkdir()
    (abandoned / "counter_1.db").touch()
    with socket.socket() as listener, ApiProcesses(Settings(processes=2), listener) as first:
        assert not abandoned.exists()
        with ApiProcesses(Settings(processes=2), listener):
            assert first.shared_dir is not None
            assert first.shared_dir.exists()
    assert list(tmp_path.iterdir()) == []


def restart(children: list[ChildProcess]) -> Callable[[], bool]:
    def supervise() -> bool:
        for child in children:
            child.restart_if_dead()
        return True

    return supervise


def kill(child: ChildProcess) -> None:
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def numbers(api: ApiProcesses) -> list[int | None]:
    return [child.number for child in api.children]


def test_a_dead_process_is_restarted_with_its_number(api: ApiProcesses) -> None:
    supervise = restart(api.children)
    supervise()
    assert numbers(api) == [0, 1]
    killed = api.children[0].pid
    kill(api.children[0])

    def restarted() -> bool | None:
        supervise()
        return True if api.children[0].pid not in (None, killed) else None

    wait_for(restarted, what="the restart")
    assert numbers(api) == [0, 1]


def test_processes_that_run_at_the_same_time_have_different_numbers(api: ApiProcesses) -> None:
    supervise = restart(api.children)
    supervise()
    old = api.children[0].pid
    replace(api.children[0], supervise)
    assert old is not None
    assert name_of(old) == ""
    assert numbers(api) == [2, 1]
    replace(api.children[1], supervise)
    assert numbers(api) == [2, 0]


def test_a_process_that_does_not_become_ready_replaces_nothing(api: ApiProcesses) -> None:
    supervise = restart(api.children)
    supervise()
    old = api.children[0].pid
    api.children[0].program = program("sys.exit(1)")
    replace(api.children[0], supervise)
    assert api.children[0].pid == old
    assert numbers(api) == [0, 1]
    assert api.take() == 2


def test_a_process_that_does_not_stop_is_killed(api: ApiProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "STOP_SECONDS", 0.0)
    child = api.children[0]
    child.program = Program((sys.executable, "-c", DEAF))
    ready, child_ready = os.pipe()
    child.restart_if_dead(["--ready-fd", str(child_ready)], [child_ready])
    os.close(child_ready)
    os.read(ready, 1)
    os.close(ready)
    child.stop()
    assert child.status == -signal.SIGKILL
    assert child.pid is None
    assert api.take() == 0
