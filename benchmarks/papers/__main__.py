"""Reproduce the papers' tables and figures, store the results, and render ``docs/results.md`` from them.

    python -m benchmarks.papers [--url http://127.0.0.1:8000] [--long] [PART[:RESULT] …]
    python -m benchmarks.papers --quick
    python -m benchmarks.papers --render

With ``--url``, the command uses a running service and the API key in ``COVEY_API_KEY``; otherwise it starts a
service. Without parts, it measures all parts. Each result is stored as soon as it is measured. ``--quick`` prints
small versions, which takes ten minutes, and stores nothing. ``--render`` renders the page from the stored results.
``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from app.demo.service import temporary_service
from benchmarks import tables
from benchmarks.papers import defaults, results
from benchmarks.papers.bench import Bench
from benchmarks.papers.corpora import CORPORA, MissingCorpusError
from benchmarks.papers.results import PARTS


@contextmanager
def _service(url: str | None) -> Iterator[str]:
    """Yield the URL of the given service, or of a new service that stops at the end of the block."""
    if url is not None:
        yield url
    else:
        with temporary_service() as own:
            yield own


def main() -> int:
    """Measure the results and render the page. Returns 1 if a corpus is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="URL of a running service")
    parser.add_argument("--quick", action="store_true", help="print small versions")
    parser.add_argument("--render", action="store_true", help="only render the page from the stored results")
    parser.add_argument(
        "--long",
        action="store_true",
        help="also measure what takes hours: 10,000 rounds of boosting, and 100 epochs with products of features",
    )
    parser.add_argument("parts", nargs="*", metavar="PART[:RESULT]", help=", ".join(PARTS))
    arguments = parser.parse_args()
    if arguments.render:
        _render()
        return 0
    chosen = [name.partition(":") for name in arguments.parts or PARTS]
    if unknown := {part for part, _, _ in chosen} - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    if not CORPORA.is_dir():
        print(f"no {CORPORA}; set COVEY_DATA to the folder of the corpora", file=sys.stderr)
        return 1
    # SIGTERM must also stop the service that this command started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with ExitStack() as stack:
        bench = stack.enter_context(
            Bench(
                lambda: stack.enter_context(_service(arguments.url)),
                key=os.environ.get("COVEY_API_KEY"),
                quick=arguments.quick,
                long=arguments.long,
            )
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
    module = results.module_of(part)
    print(f"{part}: {module.TITLE}", file=sys.stderr, flush=True)
    long = getattr(module, "LONG", ())
    names = [only] if only else [name for name in module.RESULTS if bench.long or name not in long]
    small = results.figures_of(part)
    for name in names:
        begun = time.perf_counter()
        figures = module.RESULTS[name](bench)
        if bench.quick:
            small[name] = figures
        else:
            results.store(part, name, figures)
        print(f"  {name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    if bench.quick:
        print(results.render_part(part, small), flush=True)
    else:
        _render()


def _render() -> None:
    """Write the page, and the table of the default recipe in ``docs/learners.md``."""
    results.PAGE.write_text(results.render_page(), "utf-8")
    tables.show(defaults.PAGE, defaults.rendered())


if __name__ == "__main__":
    sys.exit(main())
