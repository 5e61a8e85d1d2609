"""No server outlives the process that runs the tests, however that process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import every_server
import pytest
from stack import children, command_of, descendants
from waiting import LIMIT_SECONDS, wait_for

from app.server.parent_death import end_with_parent

pytestmark = [pytest.mark.faults, pytest.mark.system]

ROOT = Path(__file__).parents[2]

SERVERS = {
    "test_every_server": ("fork_server", "valkey-server", "moto.server"),
    "test_one_server": ("valkey-server",),
}
"""The servers that each test starts."""


def start_time(pid: int) -> str | None:
    """Return the start time of a process, which distinguishes it from a later process with the same id.

    None means that the process has ended.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in ("Z", "X") else fields[18]


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
@pytest.mark.parametrize(
    ("victim", "test"),
    [
        ("worker", "test_every_server"),
        # The worker ends when its controller is gone, and then its servers end as above.
        ("controller", "test_one_server"),
    ],
)
def test_all_servers_end_when_their_runner_is_killed(victim: str, test: str, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with (tmp_path / "log").open("wb") as log:
        runner = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", f"{every_server.__file__}::{test}", "--numprocesses", "1"),
                *("--max-worker-restart", "0", "-p", "no:cacheprovider", "--basetemp", tmp_path / "inner"),
            ],
            cwd=ROOT,
            env={**os.environ, "READY_FILE": str(ready)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=end_with_parent(signal.SIGKILL),  # noqa: PLW1509 - calls nothing that takes a lock
        )

    def running() -> bool | None:
        assert runner.poll() is None, (tmp_path / "log").read_text()[-3000:]
        return ready.exists() or None

    wait_for(running, what="the servers")
    alive = {pid: start_time(pid) for pid in descendants(runner.pid)}
    commands = [command_of(pid) for pid in alive]
    for server in SERVERS[test]:
        assert any(server in command for command in commands), (server, commands)
    (worker,) = children(runner.pid)
    os.kill(runner.pid if victim == "controller" else worker, signal.SIGKILL)
    runner.wait(LIMIT_SECONDS)

    def all_ended() -> bool | None:
        return not any(start_time(pid) == when for pid, when in alive.items() if when is not None) or None

    try:
        wait_for(all_ended, what="the servers to end")
    except TimeoutError:
        remaining = {pid: command_of(pid) for pid, when in alive.items() if start_time(pid) == when}
        raise AssertionError(f"still running: {remaining}") from None
