"""Reproduce the papers' tables and figures, store the results, and render ``results.md`` from them.

    python -m benchmarks.papers [--url http://127.0.0.1:8000] [--long] [PART[:RESULT] …]
    python -m benchmarks.papers --quick
    python -m benchmarks.papers --render

With ``--url``, the command uses a running service and the API key in ``COVEY_API_KEY``; otherwise it starts a
service. Without parts, it measures all parts. Each result is stored as soon as it is measured. ``--quick``
prints small versions, which takes ten minutes, and stores nothing. ``--render`` renders the tables from the
stored results. ``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from contextlib import ExitStack

from app.demo.service import temporary_service
from benchmarks import tables
from benchmarks.corpora import FOLDER, MissingCorpusError
from benchmarks.papers import (
    adaboost_lc,
    cos424,
    defaults,
    every_learner,
    frame,
    h_m3,
    mlpp,
    mlpp_table_3,
    mp_boost,
    perceptron_variants,
)
from benchmarks.papers.bench import Bench

MODULES = (
    *(defaults, every_learner, mp_boost, adaboost_lc, h_m3, cos424, mlpp, mlpp_table_3),
    perceptron_variants,
)
PARTS = {name: part for module in MODULES for name, part in module.PARTS.items()}


def rendered() -> dict[str, str]:
    """Return the tables of ``docs/background/results.md`` by their marks."""
    return {
        mark: text
        for name, part in PARTS.items()
        for mark, text in part.marked(name, frame.figures_of(name)).items()
    }


def main() -> int:
    """Measure the results and render the page. Returns 1 if a corpus is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="URL of a running service")
    parser.add_argument("--quick", action="store_true", help="print small versions")
    parser.add_argument("--render", action="store_true", help="only render the page from the stored results")
    parser.add_argument(
        "--long", action="store_true", help="also measure 10,000 rounds of boosting, for hours"
    )
    parser.add_argument("parts", nargs="*", metavar="PART[:RESULT]", help=", ".join(PARTS))
    arguments = parser.parse_args()
    if arguments.render:
        _render()
        return 0
    chosen = [name.partition(":") for name in arguments.parts or PARTS]
    if unknown := {part for part, _, _ in chosen} - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    if not FOLDER.is_dir():
        print(f"no {FOLDER}; set COVEY_DATA to the folder of the corpora", file=sys.stderr)
        return 1
    # SIGTERM must also stop the service that this command started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with ExitStack() as stack:
        bench = Bench(
            lambda: arguments.url or stack.enter_context(temporary_service()),
            key=os.environ.get("COVEY_API_KEY"),
            quick=arguments.quick,
            long=arguments.long,
        )
        for part, _, only in chosen:
            try:
                _measure(bench, part, only)
            except MissingCorpusError as error:
                print(error, file=sys.stderr)
                return 1
    return 0


def _measure(bench: Bench, part: str, only: str) -> None:
    """Measure the results of a part, or only one of them. Store them, or print a small version."""
    results = PARTS[part].results
    small = frame.figures_of(part)
    for name in [only] if only else results:
        begun = time.perf_counter()
        figures = results[name](bench)
        if bench.quick:
            small[name] = figures
        else:
            frame.store(part, name, figures, results)
            _render()
        print(f"{part}, {name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    if bench.quick:
        print("\n\n".join([part, *PARTS[part].tables(small)]), flush=True)


def _render() -> None:
    """Write the tables of the page, and those of the default recipe."""
    tables.show(rendered() | defaults.rendered())


if __name__ == "__main__":
    sys.exit(main())
