"""The highest load of each server, one after the other in each round, and many texts in one request."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice

import httpx
import production
from stack import cpu_seconds, descendants

from app.api.structs import to_json
from benchmarks.serving import other_servers, wrk
from benchmarks.serving.processes import Target, server
from benchmarks.serving.report import Goal, Run, Values
from benchmarks.serving.setup import Setup
from models import artifact

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

TEXTS, TOP = 1000, 5
"""Number of texts of a large request, and of labels of each."""

Sides = dict[str, tuple[Target, list[int]]]
"""Requests, and the process ids of the server."""


@contextmanager
def empty(setup: Setup) -> Iterator[tuple[Target, list[int]]]:
    """Run the empty endpoint."""
    port = production.free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        *(sys.executable, "-m", "uvicorn", "benchmarks.serving.empty:app", "--port", str(port)),
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


def batch(setup: Setup) -> list[Goal]:
    """Compare the documents per second of one large request and of ``Pipeline.predict``."""
    texts = list(islice(cycle(setup.texts), TEXTS))
    body = to_json({"instances": [{"text": text} for text in texts], "top": TOP})
    goals = []
    running = setup.sqlite
    for model in ("mp_boost", "svm"):
        pipeline = artifact.load(setup.artifacts[model])
        headers = {"Content-Type": "application/json", **running.headers}
        seconds: dict[str, list[float]] = {"service": [], "library": []}
        with httpx.Client(headers=headers, timeout=300, trust_env=False) as client:
            for number in range(2 * setup.rounds + 1):
                began = time.perf_counter()
                client.post(f"{running.urls[0]}/v1/models/{model}/predict", content=body).raise_for_status()
                between = time.perf_counter()
                pipeline.predictions(texts, top=TOP)
                if number:  # the first round warms up
                    seconds["service"].append(between - began)
                    seconds["library"].append(time.perf_counter() - between)
        print(f"{model}: seconds for {TEXTS} texts: {seconds}", file=sys.stderr, flush=True)
        text = f"{TEXTS:,} texts in one request, documents/s of Pipeline.predict: {model}, top {TOP}"
        goals.append(Goal(text, 1.0, Values.ratios(seconds["library"], seconds["service"])))
    return goals


def _cpu_seconds(pids: list[int]) -> float:
    return sum(cpu_seconds(one) for pid in pids for one in (pid, *descendants(pid)))
