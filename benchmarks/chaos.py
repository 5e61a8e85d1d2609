"""Inject faults into a running service for any length of time, and check that nothing is lost.

    python benchmarks/chaos.py --minutes 10 --faults 200 --database postgresql

First the script measures how long a job waits after ``kill -9`` of its worker, with the default settings.
Then it sends a stream of trainings and predictions to a service with a small disk, and injects faults at
random moments that the seed determines. Afterwards it checks everything that the service accepted
(``tests/support/fault_injection.py``). The exit status is 1 if anything is lost, done twice or wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import fault_injection
import postgres
from stack import Stack, departments
from waiting import wait_for

from app.parent_death import end_with_parent

KILLS = 5
SETTLED_SECONDS = 11.0
"""Time before each kill, so that the job has written checkpoints."""

LONG = {"algorithm": "adaboost_lc", "rounds": 100_000, "smoothing": 0.01}


def recovery(folder: Path, *, spare: bool) -> list[float]:
    """Measure the seconds from ``kill -9`` of a job's worker until the job runs again, several times.

    Args:
        folder: folder for a service with the default settings.
        spare: whether another worker runs; otherwise the killed worker must restart first.
    """
    stack = Stack(folder / f"recovery-{spare}").start()
    environment = {**os.environ, "COVEY_DATA_DIR": str(stack.data), "COVEY_LOG_LEVEL": "error"}
    others: list[subprocess.Popen[bytes]] = []
    seconds = []
    try:
        job = stack.train(stack.dataset(departments(2000))["id"], learner=LONG)

        def holder() -> int | None:
            workers = [*stack.worker_pids(), *(other.pid for other in others)]
            return next((worker for worker in workers if stack.job_pids(worker)), None)

        for _ in range(KILLS):
            if spare and (not others or others[-1].poll() is not None):
                with (folder / "other.log").open("ab") as log:
                    command = [sys.executable, "-m", "workers"]
                    others.append(
                        subprocess.Popen(
                            command,
                            env=environment,
                            stdout=log,
                            stderr=log,
                            preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
                        )
                    )
            worker = wait_for(holder, what="the job to run")
            before = stack.job(job["id"])["attempt"]
            time.sleep(SETTLED_SECONDS)
            os.kill(worker, signal.SIGKILL)
            killed = time.monotonic()
            if others and worker == others[-1].pid:
                others[-1].wait()

            def again(before: int = before) -> bool | None:
                now = stack.job(job["id"])
                assert now["state"] in ("queued", "running"), now
                return True if now["attempt"] > before and now["state"] == "running" else None

            wait_for(again, what="the job to run again")
            seconds.append(time.monotonic() - killed)
        stack.call("POST", f"/v1/training-jobs/{job['id']}/cancel", 202)
    finally:
        for other in others:
            other.terminate()
            other.wait()
        stack.stop()
    return seconds


def print_recovery(folder: Path) -> None:
    """Measure and print how long a job waits after ``kill -9``, with and without another worker."""
    for spare in (False, True):
        seconds = recovery(folder, spare=spare)
        others = "with another worker" if spare else "without another worker"
        print(
            f"from kill -9 of a worker until its job runs again, {others}, {len(seconds)} times: "
            f"median {statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s",
            flush=True,
        )


@contextmanager
def database(kind: str) -> Iterator[str | None]:
    """Yield the URL of an empty PostgreSQL database, or None for the embedded SQLite database."""
    if kind == "sqlite":
        yield None
        return
    with postgres.server() as server:
        yield server.create()


def main() -> int:
    """Run the measurements and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="minimum duration")
    parser.add_argument("--faults", type=int, default=200, help="minimum number of faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="covey-chaos-") as name, database(arguments.database) as url:
        folder = Path(name)
        print_recovery(folder)
        data = folder / "data"
        with fault_injection.small_disk(data / "storage", mib=16) as small:
            if not small:
                print("cannot mount a small disk on this system: the disk-full fault is skipped")
            settings = {**fault_injection.QUICK, **({"COVEY_DATABASE_URL": url} if url else {})}
            stack = Stack(data, settings).start()
            try:
                until = time.monotonic() + 60 * arguments.minutes
                account = fault_injection.run(
                    stack,
                    seed=arguments.seed,
                    enough=lambda faults: faults >= arguments.faults and time.monotonic() > until,
                    disk=data / "storage" if small else None,
                    database_url=url,
                )
            finally:
                stack.stop()
    print("\n".join(account.lines()))
    wrong = (
        account.lost,
        account.done_twice,
        account.wrong_checksums,
        account.broken_curves,
        account.wrong_predictions,
        account.accepted - account.succeeded - sum(account.failed.values()),
    )
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
