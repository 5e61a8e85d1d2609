"""Measure the service under load: large uploads, a long queue, and a hundred clients during trainings.

    python -m benchmarks.load
    python -m benchmarks.load --part queue --jobs 200

Starts a production setup (one API, two workers, PostgreSQL, Valkey) with the default settings. Prints:

- how much the API's memory grows during uploads of increasing size;
- how soon a job starts if the workers are idle;
- the outcome of a queue of jobs that two workers process, on PostgreSQL and on SQLite;
- the latency of predictions of a hundred clients with and without concurrent trainings, sent by ``wrk``;
- how long it takes to hand out and claim the next job while 100 and 10,000 jobs of 20 keys wait.

The exit status is 1 if anything is lost, done twice or rejected.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import postgres
import production
from production import Production
from stack import BYTES, departments
from waiting import wait_for

from app.db import schema
from app.db.session import Database
from app.jobs import queue
from app.jobs.handing_out import hand_out
from benchmarks.attack.harness import LONG, MIB, QUICK, TEXT, memory, reset_peak
from benchmarks.serving import wrk
from benchmarks.serving.bodies import predictions as bodies

UPLOADS_MIB = (1, 100, 400)
FLAT_MIB = 32
"""The API's memory must grow by less than this during an upload of any size."""

WORKERS = 2
QUEUES = 10
"""Number of models for which the queued jobs train versions."""

CLIENTS = 100
PAUSE_MS = 1000
"""Average time between a response and the client's next request."""

PHASE_SECONDS = 15.0
PHASES = (0, 1, 2 * WORKERS)
"""Numbers of concurrent trainings: none, one, and as many as the workers run at the same time."""

TURNS = 2
"""Number of repetitions of each phase, so that other work on the machine affects all phases."""

WAITING = (100, 10_000)
KEYS = 20
HANDED_OUT = 60

SINGLE_JOBS = 20

PARTS = ("uploads", "starts", "clients", "queue", "handing out")


def upload(stack: Production, n_mib: int, folder: Path) -> bool:
    """Upload ``n_mib`` MiB, print the growth of the API's memory, and return whether all checks pass."""
    assert stack.api is not None
    lines = [
        json.dumps(
            {"text": f"{' '.join(f'w{(i * k) % 9973}' for k in range(1, 160))}", "labels": [f"l{i % 7}"]}
        )
        for i in range(1000)
    ]
    block = "".join(f"{line}\n" for line in lines).encode()
    n_blocks = max(1, round(n_mib * MIB / len(block)))

    def content() -> Iterator[bytes]:
        for _ in range(n_blocks):
            yield from (block[start : start + 65536] for start in range(0, len(block), 65536))

    copied = time.monotonic()
    with (folder / "copy").open("wb") as file:
        for piece in content():
            file.write(piece)
        os.fsync(file.fileno())
    copied = time.monotonic() - copied
    (folder / "copy").unlink()

    created = stack.call("POST", "/v1/datasets", 201, json={"name": f"{n_mib} MiB"})
    path = f"/v1/datasets/{created['id']}"
    reset_peak(stack.api.pid)
    before = memory(stack.api.pid, "VmRSS")
    began = time.monotonic()
    response = httpx.put(
        f"{stack.url}{path}/content", content=content(), headers=BYTES, timeout=600, trust_env=False
    )
    took = time.monotonic() - began
    grown = (memory(stack.api.pid, "VmHWM") - before) / MIB

    def settled() -> dict[str, Any] | None:
        now: dict[str, Any] = stack.call("GET", path, 200)
        return now if now["state"] in ("ready", "failed") else None

    dataset = wait_for(settled, what="the data set", seconds=900) if response.status_code == 202 else {}
    whole = dataset.get("n_examples") == n_blocks * len(lines)
    size = n_blocks * len(block) / MIB
    print(
        f"upload of {size:.0f} MiB: API memory {before / MIB:.0f} MiB before, at most {grown:.1f} MiB more "
        f"during the upload; {copied / took:.2f} times the speed of writing a file; "
        f"{'all' if whole else 'NOT ALL'} examples arrived",
        flush=True,
    )
    return whole and grown < FLAT_MIB


def starts(stack: Production) -> bool:
    """Print how soon jobs start, one after the other."""
    dataset = stack.dataset(departments(40))["id"]
    seconds = []
    for _ in range(SINGLE_JOBS):
        job = stack.finished(stack.train(dataset, model="single", learner=QUICK)["id"])
        created, started = (datetime.fromisoformat(job[name]) for name in ("created_at", "started_at"))
        seconds.append((started - created).total_seconds())
    milliseconds = 1000 * statistics.median(seconds)
    print(f"a job starts after {milliseconds:.0f} ms (median of {len(seconds)})", flush=True)
    return True


def drain(stack: Production, n_jobs: int, database: str) -> bool:
    """Queue trainings while no worker runs, start the workers, and check the outcome of each job."""
    dataset = stack.dataset(departments(40))["id"]
    stack.stop_workers()
    jobs = [stack.train(dataset, model=f"q{n % QUEUES}", learner=QUICK)["id"] for n in range(n_jobs)]
    began_at = len(stack.log.read_bytes())
    began = time.monotonic()
    stack.start_workers()
    ended = [stack.finished(job, seconds=3600) for job in jobs]
    took = time.monotonic() - began
    states = Counter(job["state"] for job in ended)
    versions = Counter(
        version["training_job_id"]
        for n in range(QUEUES)
        for version in stack.all(f"/v1/models/q{n}/versions")
    )
    workers: Counter[str] = Counter()
    for line in stack.log.read_bytes()[began_at:].decode().splitlines():
        if '"event": "job.started"' in line:
            workers[json.loads(line)["worker"]] += 1
    twice = sum(count > 1 for count in versions.values())
    lost = sum(job not in versions for job in jobs)
    again = sum(job["attempt"] > 1 for job in ended)
    print(
        f"queue on {database}: {n_jobs} trainings finished by {len(workers)} workers "
        f"({' and '.join(str(n) for n in workers.values())}) at {n_jobs / took:.1f} per second; "
        f"{states['succeeded']} succeeded, {lost} without a version, {twice} done twice, "
        f"{again} started again, {sum(versions.values())} versions",
        flush=True,
    )
    return (
        states == {"succeeded": n_jobs}
        and not lost
        and not twice
        and sum(versions.values()) == n_jobs
        and len(workers) == WORKERS
    )


def predictions(stack: Production) -> bool:
    """Print the latency of predictions with different numbers of concurrent trainings."""
    dataset = stack.dataset(departments(2000))["id"]
    ended = stack.finished(
        stack.train(dataset, model="desk", learner={"algorithm": "mp_boost", "rounds": 200})["id"]
    )
    assert ended["state"] == "succeeded", ended
    requests = stack.data / "requests"
    bodies([TEXT]).write(requests)
    url, headers = f"{stack.url}/v1/models/desk/predict", {"Content-Type": "application/json"}
    loads: dict[int, list[wrk.Load]] = {n: [] for n in PHASES}
    all_running = True
    for _ in range(TURNS):
        for n in PHASES:
            jobs = [stack.train(dataset, model=f"beside{i}", learner=LONG)["id"] for i in range(n)]

            def training(jobs: list[str] = jobs) -> bool | None:
                phases = [stack.job(job).get("progress", {}).get("phase") for job in jobs]
                return True if all(phase == "training" for phase in phases) else None

            wait_for(training, what="the trainings to run")
            load = partial(wrk.run, url, requests, headers, seconds=PHASE_SECONDS)
            loads[n].append(load(connections=CLIENTS, pause_ms=PAUSE_MS))
            for job in jobs:
                all_running = all_running and stack.job(job)["state"] == "running"
                stack.call("POST", f"/v1/training-jobs/{job}/cancel", 202)
            for job in jobs:
                stack.finished(job)
    alone = [statistics.mean(getattr(load, name) for load in loads[0]) for name in ("p50", "p99")]
    for n, seen in loads.items():
        p50, p99 = (statistics.mean(getattr(load, name) for load in seen) for name in ("p50", "p99"))
        responses = sum(load.responses for load in seen)
        print(
            f"{CLIENTS} clients, {n} concurrent trainings: {responses} predictions; p50 {p50:.0f} ms, "
            f"p99 {p99:.0f} ms: {p50 / alone[0]:.2f} and {p99 / alone[1]:.2f} times those without trainings",
            flush=True,
        )
    return all_running


def handing_out(name: str, url: str) -> bool:
    """Print the median time to hand out and claim the next job, however many jobs wait."""
    db = Database(url)
    schema.migrate(db.engine)
    medians = []
    n_left = 0
    for n_waiting in WAITING:
        for first in range(n_left, n_waiting, 500):
            with db.write() as tx:
                for number in range(first, min(first + 500, n_waiting)):
                    queue.enqueue(tx, "train", {}, key_id=f"key_{number % KEYS}", priority=number % 3)
        milliseconds = []
        for _ in range(HANDED_OUT):
            began = time.perf_counter()
            (task,) = hand_out(db, ahead=1)
            claim = queue.claim(db, task.job_id, "wrk", lease_seconds=60)
            milliseconds.append(1000 * (time.perf_counter() - began))
            assert claim is not None
            with db.write() as tx:
                queue.finish(tx, claim, "succeeded")
        medians.append(statistics.median(milliseconds))
        n_left = n_waiting - HANDED_OUT
    db.close()
    shown = ", ".join(f"{ms:.1f} ms with {n:,} jobs" for n, ms in zip(WAITING, medians, strict=True))
    print(f"{name}: {shown}; ratio {medians[1] / medians[0]:.2f}", flush=True)
    return True


def main() -> int:
    """Run the measurements and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1000, help="number of queued trainings")
    parser.add_argument(
        "--part", action="append", choices=PARTS, help="measurement to run; can be repeated; default: all"
    )
    arguments = parser.parse_args()
    parts = set(arguments.part or PARTS)
    passed: dict[str, bool] = {}

    def check(part: str, measure: Callable[[], bool]) -> None:
        """Run a measurement. An error fails it, and the others continue."""
        try:
            passed[part] = measure()
        except Exception as error:  # noqa: BLE001 - printed, and the exit status is 1
            print(f"{part}: {type(error).__name__}: {error}", flush=True)
            passed[part] = False

    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="covey-load-")))
        server = opened.enter_context(postgres.server())
        broker = opened.enter_context(production.valkey(folder))
        for database, url in (("PostgreSQL", server.create()), ("SQLite", "")):
            own = folder / database
            own.mkdir()
            if "handing out" in parts:
                empty = server.create() if url else f"sqlite:///{own / 'queue.db'}"
                check(f"handing out on {database}", partial(handing_out, database, empty))
            if not parts & ({"queue"} if database == "SQLite" else {"uploads", "starts", "clients", "queue"}):
                continue
            settings = {"COVEY_DATABASE_URL": url, "COVEY_BROKER_URL": broker}
            stack = Production(own, settings, WORKERS).start()
            try:
                if database == "PostgreSQL" and "uploads" in parts:
                    for n_mib in UPLOADS_MIB:
                        check(f"upload of {n_mib} MiB", partial(upload, stack, n_mib, own))
                if database == "PostgreSQL" and "starts" in parts:
                    check("starts", partial(starts, stack))
                if database == "PostgreSQL" and "clients" in parts:
                    check("clients", partial(predictions, stack))
                if "queue" in parts:
                    check(f"queue on {database}", partial(drain, stack, arguments.jobs, database))
            finally:
                stack.stop()
    for part, right in passed.items():
        print(f"{'passed' if right else 'FAILED'}  {part}")
    return int(not all(passed.values()))


if __name__ == "__main__":
    sys.exit(main())
