"""Reproduce the papers' tables and figures through the HTTP API, and write them into ``docs/results.md``.

    python -m benchmarks.papers [--url http://127.0.0.1:8000] [PART …]
    python -m benchmarks.papers --quick

With ``--url``, the command uses a running service and the API key in ``COVEY_API_KEY``; otherwise it starts a
service. Without parts, it generates all parts. ``--quick`` prints small versions, which takes ten minutes, and
does not write the page. ``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from app.demo.service import temporary_service
from benchmarks.papers import results
from benchmarks.papers.bench import Bench
from benchmarks.papers.corpora import CORPORA, MissingCorpusError

PARTS = (
    "every_learner",
    "mp_boost_table_1",
    "mp_boost_table_2",
    "mp_boost_figure_2",
    "adaboost_lc_figure_3",
    "adaboost_lc_figure_4",
    "h_m3_table_1",
    "h_m3_learning_curve",
    "cos424_curves",
    "cos424_words",
    "cos424_confusion",
    "cos424_errors",
    "mlpp_table_2",
    "mlpp_table_3",
    "mlpp_learning_curve",
    "mlpp_epochs",
    "mlpp_table_4",
    "mlpp_quick_voting",
)
"""The modules in the order of the page."""


@contextmanager
def _service(url: str | None) -> Iterator[str]:
    """Yield the URL of the given service, or of a new service that stops at the end of the block."""
    if url is not None:
        yield url
    else:
        with temporary_service() as own:
            yield own


def main() -> int:
    """Generate the parts. Returns 1 if a corpus is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="URL of a running service")
    parser.add_argument("--quick", action="store_true", help="print small versions")
    parser.add_argument(
        "--long",
        action="store_true",
        help="also compute what takes hours: 10,000 rounds of boosting, and 100 epochs with products of features",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    if not CORPORA.is_dir():
        print(f"no {CORPORA}; set COVEY_DATA to the folder of the corpora", file=sys.stderr)
        return 1
    # SIGTERM must also stop the service that this command started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with (
        _service(arguments.url) as url,
        Bench(url, key=os.environ.get("COVEY_API_KEY"), quick=arguments.quick, long=arguments.long) as bench,
    ):
        for name in parts:
            module = importlib.import_module(f"benchmarks.papers.{name}")
            print(f"{name}: {module.TITLE}", file=sys.stderr, flush=True)
            begun = time.perf_counter()
            try:
                text = module.run(bench)
            except MissingCorpusError as error:
                print(error, file=sys.stderr)
                return 1
            if arguments.quick:
                print(f"## {module.TITLE}\n\n{text}\n", flush=True)
            else:
                results.write(name, module.TITLE, text, order=PARTS)
            print(f"  {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
