"""Measure how long it takes to hand out and claim the next job of a queue, however many jobs wait.

python -m benchmarks.handing_out
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import postgres

from app.db import schema
from app.db.session import Database
from app.jobs import queue
from app.jobs.handing_out import hand_out

WAITING = (100, 10_000)
KEYS = 20
MEASURED = 60


@contextmanager
def _databases() -> Iterator[dict[str, str]]:
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="covey-queue-"))
        yield {
            "SQLite": f"sqlite:///{folder}/covey.db",
            "PostgreSQL": opened.enter_context(postgres.server()).create(),
        }


def _measure(db: Database, n_waiting: int, n_before: int) -> list[float]:
    """Queue jobs up to a number, and return the milliseconds to hand out and claim one of them."""
    for first in range(n_before, n_waiting, 500):
        with db.write() as tx:
            for number in range(first, min(first + 500, n_waiting)):
                queue.enqueue(tx, "train", {}, key_id=f"key_{number % KEYS}", priority=number % 3)
    milliseconds = []
    for _ in range(MEASURED):
        began = time.perf_counter()
        (task,) = hand_out(db, ahead=1)
        claim = queue.claim(db, task.job_id, "wrk", lease_seconds=60)
        milliseconds.append(1000 * (time.perf_counter() - began))
        assert claim is not None
        with db.write() as tx:
            queue.finish(tx, claim, "succeeded")
    return milliseconds


def main() -> None:
    """Print the medians for each database, and their ratio."""
    with _databases() as urls:
        for name, url in urls.items():
            db = Database(url)
            schema.migrate(db.engine)
            medians = []
            n_left = 0
            for n_waiting in WAITING:
                medians.append(statistics.median(_measure(db, n_waiting, n_left)))
                n_left = n_waiting - MEASURED
            db.close()
            print(
                f"{name}: "
                + ", ".join(f"{ms:.1f} ms with {n:,} jobs" for n, ms in zip(WAITING, medians, strict=True))
                + f"; ratio {medians[1] / medians[0]:.2f}"
            )


if __name__ == "__main__":
    main()
