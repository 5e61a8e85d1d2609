"""Measure the options of text features with the recommended learner.

    python -m benchmarks.text_options [--corpus NAME ...] [--option NAME ...]

The recipe is ``svm`` on pivoted weights of unit length with the decision ``auto`` and the defaults of the
analyzer. Each option changes what its name states. Stores micro- and macro-averaged F1 on the test part (1
for labels without positives and predictions), the number of features, and CPU seconds of the training, and
writes a table of micro F1 into ``docs/learners.md``.

Corpora: the messages of ``covey demo`` in three languages, the German ones alone, the mailing lists of
SpamAssassin, Reuters-21578, and the part of RCV1 (names of binary features, so without words). The first two
are small: their figures are means over ten splits. Options that take long are measured only on these, unless
``--option`` names them.
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

from benchmarks import tables
from benchmarks.tables import Result
from models import catalog
from models.data.examples import Examples
from models.mail.language import detect_language
from models.pipeline import Pipeline

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
CORPORA = {
    "demo": "demo",
    "demo_german": "demo, German",
    "spamassassin_lists": "mailing lists",
    "reuters21578": "Reuters",
    "rcv1subset1": "RCV1 part",
}
NAME = "text_options"
PAGE = tables.DOCS / "learners.md"
RECIPE: dict[str, Any] = {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
ENGLISH = {"stop_words": "english"}
STEMS = {"stop_words": "english", "stemmer": "english"}
AUTO = {"stop_words": "auto", "stemmer": "auto"}
OPTIONS: dict[str, dict[str, Any]] = {
    "the recipe": {},
    "`smooth_idf`": {"smooth_idf": True},
    "`tfidf`": {"weighting": "tfidf"},
    "`min_df` 2": {"min_df": 2},
    "English stop words": {"analyzer": ENGLISH},
    "English stop words and stems": {"analyzer": STEMS},
    "stop words and stems `auto`": {"analyzer": AUTO},
    "`character_ngrams` 3 to 5": {"analyzer": {"character_ngrams": [3, 5]}},
    "`unit: character`, 3 to 5": {"analyzer": {"unit": "character", "ngrams": [3, 5]}},
    "`unit: spectrum`, 4": {"analyzer": {"unit": "spectrum", "ngrams": [4, 4]}},
    "`hashing` to 2^18": {"hashing": {}},
    "bigrams": {"analyzer": {"ngrams": [1, 2]}},
    "bigrams, `min_df` 2": {"analyzer": {"ngrams": [1, 2]}, "min_df": 2},
    "bigrams, `min_df` 2, `smooth_idf`": {"analyzer": {"ngrams": [1, 2]}, "min_df": 2, "smooth_idf": True},
}
SLOW = ("`character_ngrams` 3 to 5", "`unit: character`, 3 to 5", "`unit: spectrum`, 4")
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
            yield json.loads(line)


def _demo(*, german: bool) -> Iterator[dict[str, Any]]:
    for line in (files("app.demo") / "messages.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        text = f"{record['email']['subject']}\n{record['email']['text']}"
        if not german or detect_language(text) == "de":
            yield {**record, "text": text}


def measure(corpus: str, option: str) -> Result:
    """Train and evaluate once, or ten times on a small corpus."""
    texts, labels, given = read(corpus)
    results = []
    for seed in range(SEEDS if corpus.startswith("demo") else 1):
        train = np.array(given)
        if corpus.startswith("demo"):
            train = np.random.default_rng(seed).permutation(len(texts)) < len(texts) // 2
        results.append(_measure(texts, labels, train, {**RECIPE, **OPTIONS[option]}))
    means = {name: float(np.mean([result[name] for result in results])) for name in results[0]}
    return {"corpus": corpus, "option": option, **{name: round(mean, 5) for name, mean in means.items()}}


def _measure(
    texts: list[str],
    labels: list[tuple[str, ...]],
    train: NDArray[np.bool_],
    features: dict[str, Any],
) -> dict[str, float]:
    def part(rows: NDArray[np.intp]) -> Examples:
        return Examples("text", [texts[i] for i in rows], [labels[i] for i in rows])

    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "auto"}),
    )
    start = time.process_time()
    pipeline.fit(part(np.flatnonzero(train)))
    seconds = time.process_time() - start
    measures = pipeline.evaluate(part(np.flatnonzero(~train))).measures
    return {
        "f1_micro": measures["f1_micro"],
        "f1_macro": measures["f1_macro"],
        "features": len(pipeline.features_.names_),
        "seconds": seconds,
    }


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    found = {(result["corpus"], result["option"]): result["f1_micro"] for result in tables.stored(NAME)}
    rows = []
    for option in OPTIONS:
        cells = [option]
        for corpus in CORPORA:
            value, recipe = found.get((corpus, option)), found.get((corpus, "the recipe"))
            if value is None or recipe is None:
                cells.append("")
            elif option == "the recipe":
                cells.append(tables.figure(value))
            else:
                difference = round(value - recipe, 3)
                sign = "−" if difference < 0 else "+"
                cells.append(sign + tables.figure(abs(difference)))
        rows.append(cells)
    return {"text_options": tables.markdown(["", *CORPORA.values()], rows)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=[*CORPORA], choices=[*CORPORA])
    parser.add_argument("--option", nargs="*", choices=[*OPTIONS])
    arguments = parser.parse_args()
    for corpus_name in arguments.corpus:
        for option_name in arguments.option or OPTIONS:
            if corpus_name == "rcv1subset1" and "analyzer" in OPTIONS[option_name]:
                continue
            if not (arguments.option or corpus_name.startswith("demo")) and option_name in SLOW:
                continue
            measured = measure(corpus_name, option_name)
            print(measured, flush=True)
            tables.store(NAME, [measured], ("corpus", "option"))
    tables.show(PAGE, rendered())
