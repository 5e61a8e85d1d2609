"""Measure what clients notice while dependencies are slow or away; part of ``benchmarks/chaos.py``."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import fault_injection
import httpx
import numpy as np
from dependencies import Dependencies, dependencies
from stack import Stack, departments
from waiting import LIMIT_SECONDS

QUICK = {"algorithm": "mp_boost", "rounds": 10}
BODY = {"instances": [{"text": fault_injection.TEXTS[0]}]}
PREDICTIONS = 400
"""Number of predictions in each condition."""
MAX_P99_MS = 100.0
"""Longest 99th percentile of predictions while the broker and the storage are away."""
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
    """Train while the broker is away and workers are killed and start; returns whether all trainings end."""
    folder.mkdir()
    waits: list[float] = []
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
                job = stack.finished(stack.train(dataset, model="desk", learner=QUICK)["id"])
                assert job["state"] == "succeeded", job
                waits.append(time.monotonic() - began)
                time.sleep(max(0.0, min(TRAININGS_EVERY_SECONDS - waits[-1], end - time.monotonic())))
        finally:
            servers.heal()
            stack.stop()
    print(
        f"broker away for {seconds:.0f} s (refusing, then mute), {killed} workers killed and started again: "
        f"{len(waits)} trainings succeeded, from request to end median {np.median(waits):.1f} s, "
        f"longest {max(waits):.1f} s",
        flush=True,
    )
    return True
