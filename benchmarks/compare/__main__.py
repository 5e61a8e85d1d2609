"""Compare variants of a pipeline on corpora: features, mail fields, decisions, weights, and calibration.

    python -m benchmarks.compare NAME [--corpus NAME ...] [--variant WORDS ...]
    python -m benchmarks.compare --render

Each result is stored in ``benchmarks/stored`` as soon as it is measured. At the end, the tables are written
into the page. ``--variant`` measures only the variants whose names contain the words, also those that are
left out otherwise because they take long. ``COVEY_DATA`` is the folder of the corpora (default:
``../shared/data``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
import json
from collections.abc import Sequence

from benchmarks import tables
from benchmarks.compare import calibration, decisions, mail, texts
from benchmarks.compare.frame import KEY, Comparison

COMPARISONS = {
    "default_features": texts.DEFAULT_FEATURES,
    "text_options": texts.TEXT_OPTIONS,
    "class_weights": texts.CLASS_WEIGHTS,
    "mail_fields": mail.MAIL_FIELDS,
    "quoted_text": mail.QUOTED_TEXT,
    "decisions": decisions.DECIDED,
    "number_scaling": decisions.NUMBER_SCALING,
    "calibration": calibration.CALIBRATION,
}


def measure(name: str, comparison: Comparison, corpora: Sequence[str], words: Sequence[str]) -> None:
    """Measure, print and store the variants of a comparison."""
    for corpus in corpora:
        for variant in comparison.variants:
            named = any(each in variant for each in words)
            if not named and (words or comparison.left_out(corpus, variant)):
                continue
            result = {"corpus": corpus, "variant": variant, **comparison.measure(corpus, variant)}
            print(json.dumps(result, ensure_ascii=False), flush=True)
            tables.store(name, [result], KEY)
    tables.show(comparison.rendered(name))


def main() -> None:
    """Measure a comparison, or render all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=COMPARISONS)
    parser.add_argument("--corpus", nargs="*")
    parser.add_argument("--variant", nargs="*", default=[], metavar="WORDS")
    parser.add_argument("--render", action="store_true", help="only write the stored results into the pages")
    arguments = parser.parse_args()
    if arguments.render:
        for name, comparison in COMPARISONS.items():
            tables.show(comparison.rendered(name))
        return
    if arguments.name is None:
        parser.error("name a comparison, or use --render")
    comparison = COMPARISONS[arguments.name]
    if unknown := {*(arguments.corpus or ())} - {*comparison.corpora}:
        parser.error(f"unknown corpus {', '.join(unknown)}; the corpora are {', '.join(comparison.corpora)}")
    measure(arguments.name, comparison, arguments.corpus or [*comparison.corpora], arguments.variant)


if __name__ == "__main__":
    main()
