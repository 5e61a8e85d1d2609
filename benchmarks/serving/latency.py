"""The latency at half of the highest load, beside a training, and the highest load of two processes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from typing import Any

import production
from waiting import wait_for

from benchmarks.corpora import jsonl, records
from benchmarks.serving import open_loop, wrk
from benchmarks.serving.bodies import CORPUS
from benchmarks.serving.processes import Target
from benchmarks.serving.report import Goal, Values
from benchmarks.serving.service import Service
from benchmarks.serving.setup import Setup
from benchmarks.serving.trained import BINARY, LONG
from benchmarks.serving.wrk import LoadError

CONNECTIONS = 16

CLIENTS = 100
CLIENT_RATE = 3.0
"""Requests per second of each of the concurrent clients beside a training."""


def half_load(setup: Setup) -> list[Goal]:
    """Measure the latency of predictions and messages at half of their highest loads."""
    p99: dict[str, list[float]] = {}
    targets = {
        "predict, mp_boost": setup.predict(setup.sqlite, "mp_boost"),
        "message, SQLite": setup.messages(setup.sqlite),
        "message, PostgreSQL": setup.messages(setup.postgresql),
    }
    for target in targets.values():
        _run(target, 1)
    for _ in range(setup.rounds):
        for name, target in targets.items():
            rate = _run(target, setup.seconds) / 2
            latency = open_loop.measure(target, rate=rate, connections=CONNECTIONS, seconds=setup.seconds)
            _print(f"{name} at {rate:.0f}/s: {latency}")
            p99.setdefault(name, []).append(latency.p99)
    return [
        Goal(f"p99 at half of the highest load: {name}", 5.0, Values.of(values), "ms", at_least=False)
        for name, values in p99.items()
    ]


def two_processes(setup: Setup) -> list[Goal]:
    """Compare the highest load of two processes with that of one."""
    rates: dict[str, dict[int, list[float]]] = {}
    with ExitStack() as opened:
        running = {
            1: setup.postgresql,
            2: opened.enter_context(setup.start("two-processes", "--processes", "2")),
        }
        kinds = {
            "predict, mp_boost": {n: setup.predict(one, "mp_boost") for n, one in running.items()},
            "message, PostgreSQL": {n: setup.messages(one) for n, one in running.items()},
        }
        for targets in kinds.values():
            for target in targets.values():
                _run(target, 2)
        for _ in range(setup.rounds):
            for name, targets in kinds.items():
                for n, target in targets.items():
                    rate = _run(target, setup.seconds)
                    rates.setdefault(name, {}).setdefault(n, []).append(rate)
                    _print(f"{name}, {n} processes: {rate:.0f}/s")
    return [
        Goal(f"two processes, of one: {name}", 1.7, Values.ratios(own[2], own[1]))
        for name, own in rates.items()
    ]


def beside_training(setup: Setup) -> list[Goal]:
    """Compare the latency that a hundred clients see with and without a training."""
    values: dict[str, list[float]] = {"alone": [], "beside": []}
    with ExitStack() as opened:
        broker = opened.enter_context(production.valkey(setup.folder))
        running = opened.enter_context(setup.start("training", COVEY_BROKER_URL=broker))
        running.start_worker()
        dataset = _upload(running)
        target = setup.predict(running, "mp_boost")
        load: dict[str, Any] = {
            "rate": CLIENTS * CLIENT_RATE,
            "connections": CLIENTS,
            "seconds": 2 * setup.seconds,
        }
        open_loop.measure(target, **load)
        for _ in range(setup.rounds):
            alone = open_loop.measure(target, **load)
            job = _train(running, dataset)
            beside = open_loop.measure(target, **load)
            state = running.call("GET", f"/v1/training-jobs/{job}")["state"]
            if state != "running":
                raise LoadError(f"the training did not last: {state}")
            running.call("POST", f"/v1/training-jobs/{job}/cancel")
            wait_for(partial(_ended, running, job), what="the end of the training")
            _print(f"{CLIENTS} clients: {alone} alone, {beside} beside a training")
            values["alone"].append(alone.p99)
            values["beside"].append(beside.p99)
    return [
        Goal(
            f"p99 of {CLIENTS} clients beside a training, of that without",
            1.5,
            Values.ratios(values["beside"], values["alone"]),
            at_least=False,
        )
    ]


def _upload(running: Service) -> str:
    dataset: str = running.call("POST", "/v1/datasets", json={"name": "Reuters-21578"})["id"]
    path = f"/v1/datasets/{dataset}"
    headers = {"Content-Type": "application/octet-stream"}
    running.call("PUT", f"{path}/content", content=jsonl(records(CORPUS)), headers=headers)
    wait_for(lambda: running.call("GET", path)["state"] == "ready" or None, what="the data set")
    return dataset


def _train(running: Service, dataset: str) -> str:
    """Start a training that lasts, and return its id as soon as it is in its rounds."""
    body = {"model": "beside", "dataset_id": dataset, "features": BINARY, "learner": LONG}
    job: str = running.call("POST", "/v1/training-jobs", json=body)["id"]

    def training() -> bool | None:
        progress = running.call("GET", f"/v1/training-jobs/{job}").get("progress", {})
        return True if progress.get("phase") == "training" else None

    wait_for(training, what="the training")
    return job


def _ended(running: Service, job: str) -> bool | None:
    return True if running.call("GET", f"/v1/training-jobs/{job}")["state"] == "cancelled" else None


def _run(target: Target, seconds: float) -> float:
    return wrk.run(target.url, target.bodies, target.headers, seconds=seconds).rate


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
