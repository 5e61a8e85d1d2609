"""Inject faults into running services for any length of time, and check that nothing is lost.

    python -m benchmarks.chaos --faults 300

The script measures and prints:

- how long a job waits after ``kill -9`` of its worker, with the default settings;
- the latency of predictions while the broker and the storage are slow or away (``benchmarks/outages.py``);
- the waiting times of trainings while the broker is away for minutes and workers start;
- the outcome of a stream of trainings and predictions, while faults occur at random moments that the seed
  determines (``tests/support/fault_injection.py``). Half of the faults hit a service with SQLite and its
  storage on a small disk. The other half hit a service with PostgreSQL, a broker and a bucket, which are slow
  or away in all combinations.

The exit status is 1 if anything is lost, done twice or wrong, or if predictions are slow during an outage.
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
from pathlib import Path

import fault_injection
from dependencies import dependencies
from fault_injection import Account
from stack import Stack, departments
from waiting import wait_for

from app.server.parent_death import end_with_parent
from benchmarks import outages
from benchmarks.attack.harness import LONG

KILLS = 5
SETTLED_SECONDS = 11.0
"""Time before each kill, so that the job has written checkpoints."""


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


def with_small_disk(folder: Path, seed: int, n_faults: int, until: float) -> Account:
    """Inject faults into a service with SQLite, the bundled broker, and its storage on a small disk."""
    data = folder / "data"
    with fault_injection.small_disk(data / "storage", mib=16) as small:
        if not small:
            print("cannot mount a small disk on this system: the faults of the disk are skipped")
        stack = Stack(data, fault_injection.QUICK).start()
        try:
            return fault_injection.run(
                stack,
                seed=seed,
                enough=lambda faults: faults >= n_faults and time.monotonic() > until,
                disk=data / "storage" if small else None,
            )
        finally:
            stack.stop()


def with_servers(folder: Path, seed: int, n_faults: int, until: float) -> Account:
    """Inject faults into a service with PostgreSQL, a broker and a bucket behind proxies."""
    with dependencies(folder) as servers:
        stack = Stack(folder / "data", fault_injection.QUICK | servers.settings).start()
        try:
            return fault_injection.run(
                stack,
                seed=seed,
                enough=lambda faults: faults >= n_faults and time.monotonic() > until,
                servers=servers,
            )
        finally:
            servers.heal()
            stack.stop()


PARTS = ("recovery", "outages", "faults")


def main() -> int:
    """Run the measurements and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=0.0, help="minimum duration of the faults")
    parser.add_argument("--faults", type=int, default=300, help="minimum number of faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outage-minutes", type=float, default=3.0, help="time for which the broker is away")
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="part to run; can be repeated; default: all"
    )
    arguments = parser.parse_args()
    parts = set(arguments.part or PARTS)
    passed = True
    with tempfile.TemporaryDirectory(prefix="covey-chaos-") as name:
        folder = Path(name)
        if "recovery" in parts:
            print_recovery(folder)
        if "outages" in parts:
            passed = outages.predictions(folder / "predictions") and passed
            passed = outages.broker(folder / "broker", 60 * arguments.outage_minutes) and passed
        if "faults" in parts:
            total = Account()
            for part in (with_small_disk, with_servers):
                own = folder / part.__name__
                own.mkdir()
                until = time.monotonic() + 30 * arguments.minutes
                account = part(own, arguments.seed, arguments.faults // 2, until)
                print("\n".join([part.__name__.replace("_", " "), *account.lines()]), flush=True)
                passed = account.is_right and passed
                total += account
            print("\n".join(["in total", *total.lines()]))
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
