"""Measure the costs of learners and features.

    python -m benchmarks.learners [--quick] [--only WORDS]
    python -m benchmarks.learners threads|stored_weights|threshold_bins|single_document
    python -m benchmarks.learners partial_fit [--quality lists] [--size 600]

Without a name, it measures the ratios of ``ratios.py`` with one thread and prints them with their goals;
``--quick`` uses fewer rounds, terms and repeats, and its figures are inaccurate. The studies of the second
line store their results and write them into the documentation. The third one prints how long partial fits
take, or with ``--quality`` how good their versions are on a corpus. ``COVEY_DATA`` is the folder of the
corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse

from threadpoolctl import threadpool_limits

from benchmarks import tables
from benchmarks.corpora import EXAMPLES
from benchmarks.learners import partial_fits, ratios
from benchmarks.learners.studies import STUDIES


def main() -> None:
    """Measure the ratios or a study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="?", choices=[*STUDIES, "partial_fit"])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, terms and repeats")
    parser.add_argument("--only", default="", metavar="WORDS", help="only the ratios with these words")
    parser.add_argument("--quality", choices=sorted(EXAMPLES), help="a corpus of texts")
    parser.add_argument("--size", type=int, default=600, help="number of documents (default: 600)")
    arguments = parser.parse_args()
    if arguments.study == "partial_fit":
        if arguments.quality:
            partial_fits.print_quality(arguments.quality, arguments.size)
        else:
            partial_fits.print_times()
    elif arguments.study is not None:
        study = STUDIES[arguments.study]
        for result in study.measure(1 if arguments.quick else study.repeats):
            print(result, flush=True)
            if not arguments.quick:
                tables.store(arguments.study, [result], ("case",))
        tables.show({arguments.study: study.table(tables.stored(arguments.study))})
    else:
        with threadpool_limits(1):
            for case in ratios.CASES:
                if arguments.only in case.name:
                    print(case.row(case.measure(arguments.quick)), flush=True)


if __name__ == "__main__":
    main()
