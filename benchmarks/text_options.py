"""Measure the options of text features with the recommended learner.

    python benchmarks/text_options.py [--corpus NAME] [--option NAME] [--decision KIND] [--cache FILE]

The learner is ``svm`` on pivoted weights of unit length. The first line of a corpus has the defaults of the
analyzer; each other line changes what its name states. Figures are micro- and macro-averaged F1 on the test
part, with 1 for labels without positives and predictions, the difference of micro F1 to the first line, the
number of features, and CPU seconds of the training.

Corpora: Reuters-21578, 20 Newsgroups without headers, the mailing lists of SpamAssassin, the part of RCV1
(names of binary features, so without words), the messages of ``covey demo`` in three languages, and the
German ones alone. The last two are small: their figures are means over ten splits.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import catalog
from models.data.examples import Examples
from models.mail.language import detect_language
from models.pipeline import Pipeline

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
CORPORA = ("reuters21578", "20newsgroups", "spamassassin_lists", "rcv1subset1", "demo", "demo_german")
RECIPE: dict[str, Any] = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
ENGLISH = {"stop_words": "english"}
STEMS = {"stop_words": "english", "stemmer": "english"}
AUTO = {"stop_words": "auto", "stemmer": "auto"}
OPTIONS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "smooth_idf": {"smooth_idf": True},
    "tfidf": {"weighting": "tfidf"},
    "tfidf, sublinear": {"weighting": "tfidf", "sublinear_tf": True},
    "tfidf, sublinear, smooth_idf": {"weighting": "tfidf", "sublinear_tf": True, "smooth_idf": True},
    "min_df 2": {"min_df": 2},
    "stop words": {"analyzer": ENGLISH},
    "stop words, stems": {"analyzer": STEMS},
    "stop words and stems by language": {"analyzer": AUTO},
    "words and 3- to 5-grams": {"analyzer": {"character_ngrams": [3, 5]}},
    "the same, min_df 2": {"analyzer": {"character_ngrams": [3, 5]}, "min_df": 2},
    "3- to 5-grams": {"analyzer": {"unit": "character", "ngrams": [3, 5]}},
    "spectrum of 4": {"analyzer": {"unit": "spectrum", "ngrams": [4, 4]}},
    "hashing to 2^18": {"hashing": {}},
    "hashing to 2^14": {"hashing": {"n_features": 2**14}},
    "bigrams": {"analyzer": {"ngrams": [1, 2]}},
    "bigrams, min_df 2": {"analyzer": {"ngrams": [1, 2]}, "min_df": 2},
    "bigrams, min_df 2, smooth_idf": {"analyzer": {"ngrams": [1, 2]}, "min_df": 2, "smooth_idf": True},
}
SEEDS = 10


@cache
def read(corpus: str) -> tuple[list[str], list[tuple[str, ...]], list[bool]]:
    """Return the texts of a corpus, their labels, and whether they are in the training part."""
    records = [*(_demo(german=corpus == "demo_german") if corpus.startswith("demo") else _read(corpus))]
    return (
        [record["text"] for record in records],
        [tuple(record["labels"]) for record in records],
        [record["split"] == "train" for record in records],
    )


def _read(corpus: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if corpus == "20newsgroups":
                record["text"] = record["text"].partition("\n\n")[2]
            yield record


def _demo(*, german: bool) -> Iterator[dict[str, Any]]:
    for line in (files("app.demo") / "messages.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        text = f"{record['email']['subject']}\n{record['email']['text']}"
        if not german or detect_language(text) == "de":
            yield {**record, "text": text}


def measure(corpus: str, option: str, decision: str) -> dict[str, float]:
    """Train and evaluate once, or ten times on a small corpus."""
    texts, labels, given = read(corpus)
    results = []
    for seed in range(SEEDS if corpus.startswith("demo") else 1):
        train = np.array(given)
        if corpus.startswith("demo"):
            train = np.random.default_rng(seed).permutation(len(texts)) < len(texts) // 2
        results.append(_measure(texts, labels, train, {**RECIPE, **OPTIONS[option]}, decision))
    return {name: float(np.mean([result[name] for result in results])) for name in results[0]}


def _measure(
    texts: list[str],
    labels: list[tuple[str, ...]],
    train: NDArray[np.bool_],
    features: dict[str, Any],
    decision: str,
) -> dict[str, float]:
    def part(rows: NDArray[np.intp]) -> Examples:
        return Examples("text", [texts[i] for i in rows], [labels[i] for i in rows])

    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
    )
    start = time.process_time()
    pipeline.fit(part(np.flatnonzero(train)))
    seconds = time.process_time() - start
    measures = pipeline.evaluate(part(np.flatnonzero(~train))).measures
    return {
        "f1_micro": measures["f1_micro"],
        "f1_macro": measures["f1_macro"],
        "features": len(pipeline.features.names_),
        "seconds": seconds,
    }


def main() -> None:
    """Print a line for each option and corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", choices=CORPORA, action="append")
    parser.add_argument("--option", choices=[*OPTIONS], action="append")
    parser.add_argument("--decision", default="tuned_threshold")
    parser.add_argument("--cache", type=Path, help="file that stores results, so that they are measured once")
    arguments = parser.parse_args()
    stored: dict[str, dict[str, float]] = {}
    if arguments.cache and arguments.cache.exists():
        stored = json.loads(arguments.cache.read_text(encoding="utf-8"))
    for corpus in arguments.corpus or CORPORA:
        print(f"\n{corpus}, {arguments.decision}")
        print(f"{'option':<34}{'micro F1':>9}{'gain':>8}{'macro F1':>10}{'features':>10}{'seconds':>9}")
        first = None
        for option in arguments.option or OPTIONS:
            if corpus == "rcv1subset1" and "analyzer" in OPTIONS[option]:
                continue
            key = f"{corpus}, {arguments.decision}: {option}"
            if key not in stored:
                stored[key] = measure(corpus, option, arguments.decision)
                if arguments.cache:
                    arguments.cache.write_text(json.dumps(stored, indent=1), encoding="utf-8")
            result = stored[key]
            first = first or result
            print(
                f"{option:<34}{result['f1_micro']:>9.4f}{result['f1_micro'] - first['f1_micro']:>+8.4f}"
                f"{result['f1_macro']:>10.4f}{result['features']:>10.0f}{result['seconds']:>9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
