"""Measure what clients notice while dependencies are slow or away; part of ``benchmarks/chaos.py``."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import fault_injection
import httpx
import numpy as np
from dependencies import Dependencies, dependencies
from stack import Stack, departments
from waiting import LIMIT_SECONDS, wait_for

QUICK = {"algorithm": "mp_boost", "rounds": 10}
BODY = {"instances": [{"text": fault_injection.TEXTS[0]}]}
PREDICTIONS = 400
"""Number of predictions in each condition."""
MAX_P99_MS = 100.0
"""Longest 99th percentile of predictions while the broker and the storage are away."""
MAX_START_SECONDS = 35.0
"""Longest time from the return of the broker until a job starts: Celery waits for up to 32 s in between."""
MAX_REQUEST_MS = 100.0
"""Largest median of the times until a job is accepted without the broker."""
TRAININGS_EVERY_SECONDS = 5.0
KILLS_EVERY_SECONDS = 20.0

CONDITIONS: dict[str, Callable[[Dependencies], None]] = {
    "all healthy": lambda servers: servers.heal(),
    "broker refuses": lambda servers: servers.broker.refuse(),
    "broker mute": lambda servers: servers.broker.mute(),
    "broker delayed by 10 s": lambda servers: servers.broker.delay(10.0),
    "storage refuses": lambda servers: servers.storage.refuse(),
    "storage mute": lambda servers: servers.storage.mute(),
    "storage delayed by 10 s": lambda servers: servers.storage.delay(10.0),
    "both refuse": lambda servers: _both(servers, "refuse"),
    "both mute": lambda servers: _both(servers, "mute"),
}


def _both(servers: Dependencies, condition: str) -> None:
    for proxy in (servers.broker, servers.storage):
        getattr(proxy, condition)()


def predictions(folder: Path) -> bool:
    """Print the latency of predictions of a loaded model in each condition; returns whether it is short.

    A training waits or runs meanwhile.
    """
    folder.mkdir()
    passed = True
    with dependencies(folder) as servers:
        stack = Stack(folder / "data", {"COVEY_LOG_LEVEL": "warning", **servers.settings}).start()
        try:
            dataset = stack.dataset(departments(200))["id"]
            assert (
                stack.finished(stack.train(dataset, model="desk", learner=QUICK)["id"])["state"]
                == "succeeded"
            )
            stack.call("POST", "/v1/models/desk/predict", 200, json=BODY)
            for name, begin in CONDITIONS.items():
                begin(servers)
                job = stack.train(dataset, model="beside", learner=QUICK)["id"]
                milliseconds, wrong = _measure(stack)
                servers.heal()
                state = stack.finished(job)["state"]
                p50, p99 = np.percentile(milliseconds, [50, 99])
                print(
                    f"{name}: {len(milliseconds)} predictions, {wrong} without a response 200; "
                    f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {max(milliseconds):.1f} ms; "
                    f"the training {state} afterwards",
                    flush=True,
                )
                passed = passed and p99 < MAX_P99_MS and not wrong and state == "succeeded"
        finally:
            servers.heal()
            stack.stop()
    return passed


def _measure(stack: Stack) -> tuple[list[float], int]:
    milliseconds, wrong = [], 0
    with httpx.Client(base_url=stack.url, timeout=LIMIT_SECONDS, trust_env=False) as client:
        for _ in range(PREDICTIONS):
            began = time.monotonic()
            wrong += client.post("/v1/models/desk/predict", json=BODY).status_code != 200
            milliseconds.append(1000 * (time.monotonic() - began))
            time.sleep(0.02)
    return milliseconds, wrong


def broker(folder: Path, seconds: float) -> bool:
    """Queue trainings while the broker is away and workers are killed; then let it return.

    Returns:
        whether requests were answered soon, every training ended once, and the first one started in time.
    """
    folder.mkdir()
    requests: list[float] = []
    jobs: list[str] = []
    killed = 0
    with dependencies(folder) as servers:
        stack = Stack(folder / "data", {"COVEY_LOG_LEVEL": "warning", **servers.settings}).start()
        try:
            dataset = stack.dataset(departments(200))["id"]
            servers.broker.refuse()
            end = time.monotonic() + seconds
            next_kill = time.monotonic() + KILLS_EVERY_SECONDS
            mute = False
            while time.monotonic() < end:
                if not mute and time.monotonic() > end - seconds / 2:
                    servers.broker.heal()
                    servers.broker.mute()
                    mute = True
                if time.monotonic() > next_kill:
                    for worker in stack.worker_pids():
                        os.kill(worker, signal.SIGKILL)
                        killed += 1
                    next_kill += KILLS_EVERY_SECONDS
                began = time.monotonic()
                jobs.append(stack.train(dataset, model="desk", learner=QUICK)["id"])
                requests.append(1000 * (time.monotonic() - began))
                time.sleep(max(0.0, min(TRAININGS_EVERY_SECONDS, end - time.monotonic())))
            servers.heal()
            healed = time.monotonic()
            started = wait_for(
                lambda: _started(stack, jobs, healed), what="the first start", seconds=LIMIT_SECONDS
            )
            ended = [stack.finished(job) for job in jobs]
        finally:
            servers.heal()
            stack.stop()
    right = sum((job["state"], job["attempt"]) == ("succeeded", 1) for job in ended)
    print(
        f"broker away for {seconds:.0f} s (refusing, then mute), {killed} workers killed: "
        f"{len(jobs)} trainings accepted in {np.median(requests):.0f} ms (longest {max(requests):.0f}),"
        f" the first started {started:.1f} s after the broker was back, "
        f"{right} succeeded at the first attempt",
        flush=True,
    )
    return right == len(jobs) and started < MAX_START_SECONDS and bool(np.median(requests) < MAX_REQUEST_MS)


def _started(stack: Stack, jobs: Sequence[str], healed: float) -> float | None:
    """Return the time since the broker was back, once a job has started."""
    if any(stack.job(job)["state"] != "queued" for job in jobs):
        return time.monotonic() - healed
    return None
