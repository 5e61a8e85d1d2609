"""Runs the same task in several processes on one database at the same time.

A test calls ``race``. Each process runs this file, prints that it is ready, and starts the task when all
processes are ready.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waiting import LIMIT_SECONDS

from app.db import schema, tables
from app.db.session import Database
from app.jobs import queue
from app.jobs.handing_out import hand_out


def race(n: int, task: str, url: str, *arguments: str) -> list[Any]:
    """Run a task of this file in ``n`` processes at the same time.

    Returns:
        the return value of each process.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", __file__, task, url, *arguments],
            cwd=Path(__file__).parents[2],
            env={"PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(n)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        results = [process.communicate(timeout=LIMIT_SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (_, stderr) in zip(processes, results, strict=True):
        assert process.returncode == 0, stderr
    return [json.loads(stdout) for stdout, _ in results]


def claim(url: str, *job_ids: str) -> list[str]:
    """Claim jobs, and return the claimed ones."""
    db = Database(url)
    claims = [queue.claim(db, job_id, "wrk", lease_seconds=60) for job_id in job_ids]
    return [claim.job_id for claim in claims if claim is not None]


def send(url: str) -> list[str]:
    """Hand out jobs until none is left, and return the handed-out ones."""
    db = Database(url)
    return [task.job_id for _ in range(100) for task in hand_out(db, ahead=50)]


def count(url: str, times: str) -> int:
    """Increment the version counter of the model ``counter`` by one, ``times`` times."""
    db = Database(url)
    for _ in range(int(times)):
        with db.write() as tx:
            row = tx.session.get_one(tables.Model, "counter", with_for_update=True)
            row.last_version = row.last_version + 1
    return int(times)


def migrate(url: str) -> str | None:
    """Migrate an empty database to the newest schema."""
    db = Database(url)
    schema.migrate(db.engine)
    return schema.current(db.engine)


TASKS: dict[str, Callable[..., Any]] = {"claim": claim, "send": send, "count": count, "migrate": migrate}

if __name__ == "__main__":
    _, name, *arguments = sys.argv
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    json.dump(TASKS[name](*arguments), sys.stdout)
