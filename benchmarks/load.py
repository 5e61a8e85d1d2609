"""Measure the service under load: large uploads, a long queue, and a hundred clients during trainings.

    python benchmarks/load.py
    python benchmarks/load.py --part queue --jobs 200

Starts a production setup (one API, two workers, PostgreSQL, Valkey) with the default settings. Prints:

- how much the API's memory grows during uploads of increasing size;
- the outcome of a queue of jobs that two workers process, on PostgreSQL and on SQLite;
- the latency of predictions with and without concurrent trainings;
- how long a job waits after ``kill -9`` of its worker.

The exit status is 1 if anything is lost, done twice, rejected or wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))

import postgres
import production
from production import Production
from stack import BYTES, departments
from waiting import wait_for

from benchmarks.chaos import print_recovery

MIB = 1024 * 1024
UPLOADS_MIB = (1, 100, 400)
FLAT_MIB = 32
"""The API's memory must grow by less than this during an upload of any size."""

WORKERS = 2
QUEUES = 10
"""Number of models for which the queued jobs train versions."""

CLIENTS = 100
PAUSE_SECONDS = 1.0
"""Average time between a response and the client's next request."""

PHASE_SECONDS = 15.0
PHASES = (0, 1, 2 * WORKERS)
"""Numbers of concurrent trainings: none, one, and as many as the workers run at the same time."""

TURNS = 2
"""Number of repetitions of each phase, so that other work on the machine affects all phases."""

PARTS = ("uploads", "clients", "queue", "recovery")

LONG = {"algorithm": "adaboost_lc", "rounds": 100_000, "smoothing": 0.01}
TEXT = "the invoice is wrong and the card was charged twice"


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
    Path(f"/proc/{stack.api.pid}/clear_refs").write_text("5")  # reset the peak memory
    before = _memory(stack.api.pid, "VmRSS")
    began = time.monotonic()
    response = httpx.put(
        f"{stack.url}{path}/content", content=content(), headers=BYTES, timeout=600, trust_env=False
    )
    took = time.monotonic() - began
    grown = (_memory(stack.api.pid, "VmHWM") - before) / MIB

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


def _memory(pid: int, which: str) -> int:
    found = re.search(rf"{which}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def drain(stack: Production, n_jobs: int, database: str) -> bool:
    """Queue trainings while no worker runs, start the workers, and check the outcome of each job."""
    dataset = stack.dataset(departments(40))["id"]
    stack.stop_workers()
    learner = {"algorithm": "mp_boost", "rounds": 3}
    jobs = [stack.train(dataset, model=f"q{n % QUEUES}", learner=learner)["id"] for n in range(n_jobs)]
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


@dataclass
class Responses:
    """Latencies and errors of one phase."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latency in milliseconds."""
        return float(np.percentile(self.seconds, percent)) * 1000


async def clients(url: str, body: bytes, expected: bytes, responses: Responses) -> None:
    """Run a hundred clients for one phase, each with its own connection."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    request = (
        f"POST /v1/models/desk/predict HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    deadline = time.monotonic() + PHASE_SECONDS

    async def client(number: int) -> None:
        chance = random.Random(number)  # noqa: S311 - no secret
        await asyncio.sleep(chance.uniform(0, PAUSE_SECONDS))
        reader, writer = await asyncio.open_connection(host, port)
        try:
            while time.monotonic() < deadline:
                began = time.monotonic()
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                content = await reader.readexactly(int(length[1])) if length else b""
                responses.seconds.append(time.monotonic() - began)
                responses.wrong += not (head.startswith(b"HTTP/1.1 200") and content == expected)
                await asyncio.sleep(chance.uniform(0.5, 1.5) * PAUSE_SECONDS)
        finally:
            writer.close()

    ends = await asyncio.gather(*(client(n) for n in range(CLIENTS)), return_exceptions=True)
    responses.wrong += sum(isinstance(end, BaseException) for end in ends)


def predictions(stack: Production) -> bool:
    """Print the latency of predictions with different numbers of concurrent trainings."""
    dataset = stack.dataset(departments(2000))["id"]
    ended = stack.finished(
        stack.train(dataset, model="desk", learner={"algorithm": "mp_boost", "rounds": 200})["id"]
    )
    assert ended["state"] == "succeeded", ended
    body = json.dumps({"instances": [{"text": TEXT}]}).encode()
    expected = stack.http.post(
        "/v1/models/desk/predict", content=body, headers={"Content-Type": "application/json"}
    )
    assert expected.status_code == 200, expected.text
    responses = {n: Responses() for n in PHASES}
    all_running = True
    for _ in range(TURNS):
        for n in PHASES:
            jobs = [stack.train(dataset, model=f"beside{i}", learner=LONG)["id"] for i in range(n)]

            def training(jobs: list[str] = jobs) -> bool | None:
                phases = [stack.job(job).get("progress", {}).get("phase") for job in jobs]
                return True if all(phase == "training" for phase in phases) else None

            wait_for(training, what="the trainings to run")
            asyncio.run(clients(stack.url, body, expected.content, responses[n]))
            for job in jobs:
                all_running = all_running and stack.job(job)["state"] == "running"
                stack.call("POST", f"/v1/training-jobs/{job}/cancel", 202)
            for job in jobs:
                stack.finished(job)
    alone = responses[0]
    for n, seen in responses.items():
        print(
            f"{CLIENTS} clients, {n} concurrent trainings: {len(seen.seconds)} predictions, "
            f"{seen.wrong} wrong or without a response; "
            f"p50 {seen.percentile(50):.0f} ms, p99 {seen.percentile(99):.0f} ms: "
            f"{seen.percentile(50) / alone.percentile(50):.2f} and "
            f"{seen.percentile(99) / alone.percentile(99):.2f} times the values without trainings",
            flush=True,
        )
    return all_running and not any(seen.wrong for seen in responses.values())


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
            if not parts & ({"queue"} if database == "SQLite" else {"uploads", "clients", "queue"}):
                continue
            own = folder / database
            own.mkdir()
            settings = {"COVEY_DATABASE_URL": url, "COVEY_BROKER_URL": broker}
            stack = Production(own, settings, WORKERS).start()
            try:
                if database == "PostgreSQL" and "uploads" in parts:
                    for n_mib in UPLOADS_MIB:
                        check(f"upload of {n_mib} MiB", partial(upload, stack, n_mib, own))
                if database == "PostgreSQL" and "clients" in parts:
                    check("clients", partial(predictions, stack))
                if "queue" in parts:
                    check(f"queue on {database}", partial(drain, stack, arguments.jobs, database))
            finally:
                stack.stop()
        if "recovery" in parts:
            check("recovery", partial(_recovers, folder))
    for part, right in passed.items():
        print(f"{'passed' if right else 'FAILED'}  {part}")
    return int(not all(passed.values()))


def _recovers(folder: Path) -> bool:
    print_recovery(folder)
    return True


if __name__ == "__main__":
    sys.exit(main())
