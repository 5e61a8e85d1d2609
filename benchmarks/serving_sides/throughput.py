"""The highest load of each server, one after the other in each round."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import production
from stack import cpu_seconds, descendants

from benchmarks.serving_sides import other_servers, wrk
from benchmarks.serving_sides.processes import Target, server
from benchmarks.serving_sides.report import Goal, Run, Values
from benchmarks.serving_sides.setup import Setup

EMPTY = "empty FastAPI endpoint"
PREDICT = "predict, mp_boost, all 115 labels"
PREDICT_TOP = "predict, mp_boost, top 5"
SVM = "predict, svm, all 115 labels"
SVM_TOP = "predict, svm, top 5"
SQLITE = "message of 5 kB, SQLite"
POSTGRESQL = "message of 5 kB, PostgreSQL"
MLSERVER = "MLServer, plain scorer"
MLSERVER_TUNED = "MLServer without pool and metrics, plain scorer"
BENTOML = "BentoML, plain scorer"
ONE_VS_REST = "MLServer, scikit-learn one-vs-rest"

Sides = dict[str, tuple[Target, list[int]]]
"""Requests, and the process ids of the server."""


@contextmanager
def empty(setup: Setup) -> Iterator[tuple[Target, list[int]]]:
    """Run the empty endpoint."""
    port = production.free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        *(sys.executable, "-m", "uvicorn", "benchmarks.serving_sides.empty:app", "--port", str(port)),
        *("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"),
    ]
    with server(command, f"{url}/openapi.json", setup.folder / "empty.log") as process:
        bodies = setup.folder / "full.bodies"
        yield Target(f"{url}/predict", bodies, {"Content-Type": "application/json"}), [process.pid]


def run_side(target: Target, pids: list[int], seconds: float) -> Run:
    """Load one server for a time."""
    before = _cpu_seconds(pids)
    load = wrk.run(target.url, target.bodies, target.headers, seconds=seconds)
    used = _cpu_seconds(pids) - before
    return Run(load.rate, load.p50, load.p99, used / max(load.responses, 1) * 1e6)


def measure(setup: Setup) -> tuple[dict[str, list[Run]], list[Goal]]:
    """Load all servers, and compare them."""
    with ExitStack() as opened:
        sides: Sides = {EMPTY: opened.enter_context(empty(setup))}
        sqlite, postgresql = setup.sqlite, setup.postgresql
        sides |= {
            PREDICT: (setup.predict(sqlite, "mp_boost"), sqlite.pids),
            PREDICT_TOP: (setup.predict(sqlite, "mp_boost", top5=True), sqlite.pids),
            SVM: (setup.predict(sqlite, "svm"), sqlite.pids),
            SVM_TOP: (setup.predict(sqlite, "svm", top5=True), sqlite.pids),
            SQLITE: (setup.messages(sqlite), sqlite.pids),
            POSTGRESQL: (setup.messages(postgresql), postgresql.pids),
        }
        artifact = setup.artifacts["mp_boost"]
        try:
            for tuned in (False, True):
                targets, pids = opened.enter_context(
                    other_servers.mlserver(setup.cache, setup.folder, artifact, setup.texts, tuned=tuned)
                )
                sides[MLSERVER_TUNED if tuned else MLSERVER] = targets["plain"], pids
                if not tuned:
                    sides[ONE_VS_REST] = targets["sklearn"], pids
        except wrk.LoadError as error:
            print(f"without MLServer: {error}", file=sys.stderr, flush=True)
        try:
            targets, pids = opened.enter_context(
                other_servers.bentoml(setup.cache, setup.folder, artifact, setup.texts)
            )
            sides |= {BENTOML: (targets["plain"], pids)}
        except wrk.LoadError as error:
            print(f"without BentoML: {error}", file=sys.stderr, flush=True)
        runs: dict[str, list[Run]] = {name: [] for name in sides}
        for target, pids in sides.values():
            run_side(target, pids, 1)  # warm up
        for number in range(setup.rounds):
            for name, (target, pids) in sides.items():
                runs[name].append(run_side(target, pids, setup.seconds))
                print(f"round {number + 1}: {name}: {runs[name][-1]}", file=sys.stderr, flush=True)
    return runs, goals(runs)


def goals(runs: dict[str, list[Run]]) -> list[Goal]:
    """Return the goals that follow from the highest loads."""
    rates = {name: [run.rate for run in own] for name, own in runs.items()}
    compared = [
        (PREDICT, EMPTY, 0.45),
        (PREDICT_TOP, EMPTY, 0.45),
        (SVM, EMPTY, 0.45),
        (SVM_TOP, EMPTY, 0.45),
        (SQLITE, EMPTY, 0.25),
        (POSTGRESQL, EMPTY, 0.25),
        (PREDICT, MLSERVER, 2.0),
        (PREDICT, BENTOML, 2.0),
        (PREDICT, ONE_VS_REST, 30.0),
    ]
    return [
        Goal(f"{name}, of {base}", limit, Values.ratios(rates[name], rates[base]))
        for name, base, limit in compared
        if base in rates
    ]


def _cpu_seconds(pids: list[int]) -> float:
    return sum(cpu_seconds(one) for pid in pids for one in (pid, *descendants(pid)))
