"""Measure how soon jobs start, and how many trivial ones end in a second, beside another checkout.

    python -m benchmarks.job_starts [CHECKOUT]

Each side runs ``covey serve`` with SQLite and two jobs at the same time. The sides take turns. A trivial job
is the ingestion of a data set with four examples. The times are those of the database.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from stack import BYTES, Stack, departments

from benchmarks.checkouts import HERE, run_in

ROUNDS = 3
SINGLE_JOBS = 40
JOBS_AT_ONCE = 100
SIDE = "--side"


def side() -> dict[str, list[float]]:
    """Measure the checkout whose packages this process uses."""
    os.chdir("/")  # ``python -m`` would prefer packages in the current folder
    content = "".join(json.dumps(example) + "\n" for example in departments(4)).encode()
    with tempfile.TemporaryDirectory(prefix="covey-jobs-") as name:
        settings = {"COVEY_LOG_LEVEL": "warning", "COVEY_WORKER_CONCURRENCY": "2", "COVEY_JOB_NICENESS": "0"}
        stack = Stack(Path(name) / "data", settings).start()
        try:
            for _ in range(3):
                stack.upload(content)
            for _ in range(SINGLE_JOBS):
                stack.upload(content)
                time.sleep(0.05)  # the worker is idle again
            single = _jobs(stack.data)[3:]
            datasets = [
                stack.call("POST", "/v1/datasets", 201, json={"name": "n"})["id"] for _ in range(JOBS_AT_ONCE)
            ]
            for dataset in datasets:
                path = f"/v1/datasets/{dataset}/content"
                stack.call("PUT", path, 202, content=content, headers=BYTES)
            while any(finished is None for *_, finished in _jobs(stack.data)):
                time.sleep(0.2)
            many = _jobs(stack.data)[3 + SINGLE_JOBS :]
        finally:
            stack.stop()
    seconds = [(_time(started) - _time(created)).total_seconds() for created, started, _ in single]
    last, first = max(_time(job[2]) for job in many), min(_time(job[0]) for job in many)
    return {"start": seconds, "rate": [JOBS_AT_ONCE / (last - first).total_seconds()]}


def _jobs(data: Path) -> list[tuple[Any, Any, Any]]:
    """Return when each job was created, started and finished, the oldest first."""
    with sqlite3.connect(f"file:{data / 'covey.db'}?mode=ro", uri=True) as connection:
        query = "SELECT created_at, started_at, finished_at FROM jobs ORDER BY created_at, id"
        return connection.execute(query).fetchall()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def main() -> None:
    """Run the benchmark, and print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", nargs="?", type=Path, help="another checkout to compare with")
    parser.add_argument(SIDE, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        json.dump(side(), sys.stdout)
        return
    sides = {"this": HERE} | ({"other": arguments.checkout} if arguments.checkout is not None else {})
    found: dict[str, dict[str, list[float]]] = {name: {"start": [], "rate": []} for name in sides}
    for _ in range(ROUNDS):
        for name, checkout in sides.items():
            for what, values in run_in(checkout, __file__, SIDE).items():
                found[name][what] += values
    for name, of_side in found.items():
        start = 1000 * statistics.median(of_side["start"])
        print(f"{name}: a job starts after {start:.0f} ms (median of {len(of_side['start'])}), ", end="")
        print(f"{statistics.median(of_side['rate']):.2f} trivial jobs a second (median of {ROUNDS})")
    if len(found) == 2:
        this, other = found.values()
        more = 1000 * (statistics.median(this["start"]) - statistics.median(other["start"]))
        ratio = statistics.median(this["rate"]) / statistics.median(other["rate"])
        print(f"this starts {more:+.0f} ms later, and ends {ratio:.2f} times as many jobs a second")


if __name__ == "__main__":
    main()
