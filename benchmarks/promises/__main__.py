"""Measure whether what Covey promises about its decisions and probabilities holds.

    python -m benchmarks.promises [--corpus NAME ...] [--size N ...] [--seeds N] [--promise NAME ...]
        [--learner svm|mp_boost] [--split random|given] [--dry-run]
    python -m benchmarks.promises --quick

Trains on stratified samples of each corpus with the default decision, and compares what is promised with a
test part. With the split "random", the test documents are like those of the training, which every promise
assumes; "given" is the corpus' own, which can differ. Stores the results of each corpus and size as sums over
seeds, and writes the tables into ``docs/background/promises.md``. ``--dry-run`` only prints the tables.
``--quick`` is a dry run of few corpora with one seed. ``COVEY_DATA`` is the folder of the corpora (default:
``../shared/data``). Corpora that are not on this machine are skipped.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
import time
from collections.abc import Sequence

from benchmarks import tables
from benchmarks.corpora import MissingCorpusError
from benchmarks.promises import measurements
from benchmarks.promises.corpora import CORPORA, FULL, QUICK
from benchmarks.promises.library import LEARNERS
from benchmarks.promises.results import KEY, NAME, rendered, rendered_of
from benchmarks.tables import Result

SIZES = (100, 345, 1000)


def main() -> None:
    """Measure, store and show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", choices=CORPORA)
    parser.add_argument("--size", nargs="*", type=int, default=SIZES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--promise", nargs="*", default=list(measurements.PROMISES), choices=measurements.PROMISES
    )
    parser.add_argument("--learner", default="svm", choices=LEARNERS)
    parser.add_argument("--split", default="random", choices=("random", "given"))
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    quick = arguments.quick
    found = measure(
        arguments.corpus or (QUICK if quick else FULL),
        arguments.size,
        1 if quick else arguments.seeds,
        arguments.promise,
        arguments.learner,
        arguments.split,
        store=not (quick or arguments.dry_run),
    )
    for mark, table in rendered_of(found, arguments.learner, arguments.split).items():
        print(f"\n{mark}\n\n{table}")


def measure(
    corpora: Sequence[str],
    sizes: Sequence[int],
    seeds: int,
    promises: Sequence[str],
    learner: str,
    split: str,
    *,
    store: bool,
) -> list[Result]:
    """Return a result for each promise, corpus and size."""
    found: list[Result] = []
    for corpus in corpora:
        started = time.perf_counter()
        try:
            results = measurements.measure(corpus, sizes, range(seeds), promises, learner, split)
        except MissingCorpusError as error:
            print(f"{corpus} is skipped: {error}", flush=True)
            continue
        print(f"{corpus}: {time.perf_counter() - started:.0f} s", flush=True)
        found += results
        if store:
            tables.store(NAME, results, KEY)
            tables.show(rendered())
    return found


if __name__ == "__main__":
    main()
