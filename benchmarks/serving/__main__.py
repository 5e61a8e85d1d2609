"""Measure serving: the real service, an empty endpoint and other servers, in alternation in one run.

    python -m benchmarks.serving --cache ../serving-cache
    python -m benchmarks.serving --cache ../serving-cache --only changes --rounds 2
    python -m benchmarks.serving --cache ../serving-cache --write

Each server is a process of its own on loopback. The service runs as ``covey api``, requires API keys, and
serves models that it has trained on Reuters-21578. The load generator is ``wrk`` with one thread and 16
connections, which must be installed; latencies at a fixed rate come from ``open_loop.py``. MLServer and
BentoML are installed from the package index into virtual environments in the cache folder; if that fails, the
script says so and goes on without them. The whole takes 25 minutes, ``--quick`` three.

Prints tables of the servers, the goals and the layers of a request. ``--write`` writes them into
``docs/background/serving.md``. The exit status is 1 if a part fails or a goal is not met. ``COVEY_DATA`` is
the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from app.version import __version__
from benchmarks import tables
from benchmarks.corpora import FOLDER
from benchmarks.serving import changes, latency, layers, memory, report, throughput, writes
from benchmarks.serving.report import Goal
from benchmarks.serving.setup import Setup
from benchmarks.serving.wrk import LoadError

PARTS: dict[str, Callable[[Setup], list[Goal]]] = {
    "half-load": latency.half_load,
    "processes": latency.two_processes,
    "batch": throughput.batch,
    "training": latency.beside_training,
    "changes": changes.measure,
    "first-requests": changes.first_requests,
    "memory": memory.measure,
    "writes": writes.measure,
}
"""The parts between ``throughput``, which also returns the table of servers, and ``layers``."""


def main() -> int:
    """Run the measurements, and print or write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ("throughput", *PARTS, "layers")
    parser.add_argument(
        "--cache", type=Path, required=True, help="folder for models and environments, which are made once"
    )
    parser.add_argument("--only", action="append", choices=names, help="part to run; can be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each measurement (5)")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of one measurement (5)")
    parser.add_argument("--quick", action="store_true", help="one round of one second")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    arguments = parser.parse_args()
    if arguments.write and arguments.only:
        parser.error("--write writes all parts; omit --only")
    if not FOLDER.is_dir():
        print(f"no {FOLDER}; set COVEY_DATA to the folder of the corpora", file=sys.stderr)
        return 1
    # SIGTERM must also stop the servers that this script started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    rounds, seconds = (1, 1.0) if arguments.quick else (arguments.rounds, arguments.seconds)
    selected = [name for name in names if name in (arguments.only or names)]
    arguments.cache.mkdir(parents=True, exist_ok=True)
    head = (
        f"Version {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores for the servers, "
        f"their databases and the load generator; medians of {rounds} rounds of {seconds:g} s.\n"
    )
    texts = [head]
    goals: list[Goal] = []
    failed: list[str] = []
    profile = ""
    with (
        tempfile.TemporaryDirectory(prefix="run-", dir=arguments.cache) as name,
        Setup(arguments.cache.resolve(), Path(name).resolve(), rounds=rounds, seconds=seconds) as setup,
    ):
        for part in selected:
            began = time.perf_counter()
            try:
                if part == "throughput":
                    runs, reached = throughput.measure(setup)
                    texts.append(report.loads_table(runs, throughput.EMPTY) + "\n")
                    goals += reached
                elif part == "layers":
                    profile = report.layers_table(layers.measure(setup))
                else:
                    goals += PARTS[part](setup)
            except (LoadError, httpx.HTTPError, TimeoutError) as error:
                print(f"{part} failed: {error}", file=sys.stderr, flush=True)
                failed.append(part)
            print(f"{part}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    texts += [report.goals_table(goals) + "\n", profile]
    print("\n".join(texts))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    if arguments.write:
        tables.show({"measured": "\n".join(texts)})
    return int(not all(goal.met for goal in goals))


if __name__ == "__main__":
    sys.exit(main())
