"""Runs the same task in several processes on one database at the same time.

A test calls ``race``. Each process runs this file, prints that it is ready, and starts the task when all
processes are ready: then the pipe closes that it reads.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import fork_server
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
    barrier, barrier_write = os.pipe()
    outputs = [os.pipe() for _ in range(n)]
    with tempfile.TemporaryFile("w+") as errors:
        processes = [
            fork_server.start([__file__, task, url, *arguments], {}, output, errors, barrier)
            for _, output in outputs
        ]
        os.close(barrier)
        for _, output in outputs:
            os.close(output)
        files = [os.fdopen(output) for output, _ in outputs]
        try:
            ready = [file.readline() for file in files]
            os.close(barrier_write)  # all read the end of the file at the same time
            results = [file.read() for file in files]
            statuses = [process.wait(LIMIT_SECONDS) for process in processes]
        finally:
            for process, file in zip(processes, files, strict=True):
                process.kill()
                file.close()
        errors.seek(0)
        assert (statuses, ready) == ([0] * n, ["ready\n"] * n), errors.read()
    return [json.loads(result) for result in results]


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
    warnings.simplefilter("error")
    sys.stdin.read()
    json.dump(TASKS[name](*arguments), sys.stdout)
