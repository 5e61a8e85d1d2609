"""What writing responses together saves: the CPU time of a prediction with and without it.

``covey api`` runs twice on one database, once with uvicorn's own transport instead of the one of
``app/server/collected_writes.py``. The ratio is the median of the ratios of the rounds, with its quartiles.
"""

from __future__ import annotations

import statistics
import sys

import production

from benchmarks import tables
from benchmarks.serving.processes import server
from benchmarks.serving.report import Goal
from benchmarks.serving.setup import Setup
from benchmarks.serving.throughput import run_side

NAME = "collected_writes"
TOGETHER, ALONE = "written together", "written alone"

PLAIN_API = """
import sys
from app.cli.entry import main
from app.server import protocol
protocol.CollectingTransport = lambda transport, _: transport
sys.argv[0] = "covey"
main()
"""
"""Runs ``covey`` with uvicorn's own transport."""


def measure(setup: Setup) -> list[Goal]:
    """Measure both ways of writing in turns, store the results, and write the table. It has no goals.

    A quick run, which has one round, stores nothing.
    """
    running = setup.sqlite
    url = f"http://127.0.0.1:{production.free_port()}"
    with server(
        [sys.executable, "-c", PLAIN_API, "api", "--port", url.rpartition(":")[2]],
        f"{url}/health/live",
        setup.folder / "plain.log",
        environment=running.environment,
    ) as plain:
        target = setup.predict(running, "mp_boost")
        sides = {
            TOGETHER: (target, running.pids),
            ALONE: (target.at(url), [plain.pid]),
        }
        micros: dict[str, list[float]] = {TOGETHER: [], ALONE: []}
        for number in range(2 * setup.rounds + 1):
            for side in list(sides)[:: 1 if number % 2 else -1]:
                used = run_side(*sides[side], setup.seconds).cpu_us
                if number:  # the first round warms up
                    micros[side].append(used)
    results = []
    for side, own in micros.items():
        ratios = [one / base for one, base in zip(own, micros[TOGETHER], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        quartiles = f"{low:.2f} to {high:.2f}"
        results.append(
            {
                "side": side,
                "micros": round(statistics.median(own)),
                "ratio": round(middle, 3),
                "quartiles": quartiles,
            }
        )
    print(results, file=sys.stderr, flush=True)
    if setup.rounds > 1:
        tables.store(NAME, results, ("side",))
        tables.show(rendered())
    return []


def rendered() -> dict[str, str]:
    """Return the table of the stored results."""
    rows = [
        [result["side"], f"{result['micros']:,.0f} µs", f"{result['ratio']:.2f}", result["quartiles"]]
        for result in tables.stored(NAME)
    ]
    return {NAME: tables.markdown(("responses", "CPU time of a prediction", "ratio", "quartiles"), rows)}
