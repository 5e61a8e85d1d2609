"""Compare decisions of ``svm``: what each of them expects of itself, and what it gives on the test part.

    python -m benchmarks.decisions [--corpus NAME ...]

Each corpus is trained once, with held-out folds. All decisions use these scores. Stores the results and
writes a table into ``docs/learners.md``. ``COVEY_DATA`` is the folder of the corpora (default:
``../shared/data``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
from collections.abc import Iterator
from typing import Any

from benchmarks import tables
from benchmarks.calibration_scores import split
from benchmarks.multilabel_corpora import CORPORA
from benchmarks.papers import recipes
from benchmarks.tables import Result, figure
from models.decisions.values import SetCounts

NAME = "decisions"
PAGE = tables.DOCS / "learners.md"
KEY = ("corpus", "decision")

DECISIONS: dict[str, dict[str, Any]] = {
    "`auto`": {"kind": "auto"},
    "`auto`, `subset_accuracy`": {"kind": "auto", "optimize": "subset_accuracy"},
    "`auto`, a missed label costs 5": {"kind": "auto", "optimize": {"kind": "cost", "missed_label": 5.0}},
    "95 % precision": {"kind": "target", "measure": "precision", "value": 0.95},
    "95 % precision per label": {
        "kind": "target",
        "measure": "precision",
        "value": 0.95,
        "scope": "per_label",
    },
    "95 % recall": {"kind": "target", "measure": "recall", "value": 0.95},
}

MEASURES = {
    "precision_micro": "precision",
    "recall_micro": "recall",
    "f1_micro": "micro F1",
    "subset_accuracy": "right sets",
}
CORPUS_TITLES = {
    "reuters": "Reuters-21578",
    "20newsgroups": "20 Newsgroups",
    "lists": "mailing lists",
    "ohsumed": "ohsumed",
}
"""The corpora, with their names in the table."""


def measure(corpus: str) -> Iterator[Result]:
    """Yield a result for each decision."""
    training, test = split(CORPORA[corpus](), "given", 0)
    task = recipes.Task.of(training, test, units=False, seed=0)
    features = recipes.PIVOTED if task.is_text else {"kind": "numeric", "scaling": "unit"}
    trained = recipes.train(task, features, {"algorithm": "svm"})
    for name, parameters in DECISIONS.items():
        fitted = recipes.decide(task, trained, parameters)
        assert fitted.report is not None
        assert fitted.report.chosen is not None
        held_out = fitted.report.chosen.values.model_dump()
        values = SetCounts.of(fitted.rule.predicted(trained.test), task.relevant(), None).values()
        yield {
            "corpus": corpus,
            "decision": name,
            "held_out": {name: round(held_out[name], 4) for name in MEASURES},
            "test": {name: round(values[name], 4) for name in MEASURES},
        }


def rendered() -> dict[str, str]:
    """Return the table of the page."""
    rows = []
    for result in tables.stored(NAME):
        pairs = [(result["test"][name], result["held_out"][name]) for name in MEASURES]
        cells = [f"{figure(test)} ({figure(held_out)})" for test, held_out in pairs]
        rows.append([CORPUS_TITLES[result["corpus"]], result["decision"], *cells])
    return {"decision_values": tables.markdown(["corpus", "decision", *MEASURES.values()], rows)}


def main() -> None:
    """Measure the corpora, store the results, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=list(CORPUS_TITLES), choices=CORPUS_TITLES)
    for corpus in parser.parse_args().corpus:
        for result in measure(corpus):
            print(result, flush=True)
            tables.store(NAME, [result], KEY)
    tables.show(PAGE, rendered())


if __name__ == "__main__":
    main()
