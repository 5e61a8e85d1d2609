"""Compare scalings of numeric features, and values of C, for ``svm``.

    python -m benchmarks.number_scaling [--corpus NAME ...] [--seeds N]

Each variant is trained on the training part of a corpus with the decision ``auto``, and measured on the test
part and on the held-out examples of the training part. Seeds draw the folds. Stores the results and writes
tables into ``docs/learners.md``. ``COVEY_DATA`` is the folder of the corpora (default: ``../shared/data``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy starts its threads

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.calibration_scores import MEASUREMENTS, split
from benchmarks.multilabel_corpora import CORPORA
from benchmarks.papers import intervals, recipes
from benchmarks.papers.intervals import Values
from benchmarks.tables import Result, figure
from models.data.examples import FeatureRows
from models.features import NumericFeatures, NumericFeaturesParameters
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import read_documents

NAME = "number_scaling"
PAGE = tables.DOCS / "learners.md"
KEY = ("corpus", "scaling", "C")
MEASURES = {"f1_micro": "micro F1", "subset_accuracy": "right sets"}

BOTH = "max_abs, then unit"
"""Features are scaled first, and documents then. Covey has no such option: the script scales the features,
with the same divisors in all folds."""

VARIANTS: list[tuple[str, float]] = [
    ("max_abs", 1.0),
    ("max_abs", 0.1),
    ("standard", 1.0),
    ("standard", 0.01),
    ("unit", 1.0),
    ("unit", 10.0),
    (BOTH, 1.0),
]
"""Scaling and C. The first one is that to which the others are compared."""


def measure(corpus: str, seeds: range) -> list[Result]:
    """Return a result for each variant."""
    training, test = split(CORPORA[corpus](), "given", 0)
    counts = intervals.resamples(test.n_examples, seed=0)
    reference: Values | None = None
    results = []
    for scaling, C in VARIANTS:
        found: list[Values] = []
        held_out: list[dict[str, float]] = []
        for seed in seeds:
            task = recipes.Task.of(training, test, units=True, seed=seed)
            if scaling == BOTH:
                task = _scaled(task)
            parameters = {"kind": "numeric", "scaling": "unit" if scaling == BOTH else scaling}
            trained = recipes.train(task, parameters, {"algorithm": "svm", "C": C})
            decision = recipes.decide(task, trained, {"kind": "auto"})
            assert decision.report is not None
            assert decision.report.chosen is not None
            held_out.append(decision.report.chosen.values.model_dump())
            found.append(intervals.values(task.relevant(), decision.rule.predicted(trained.test), counts))
        mean = intervals.mean(found)
        reference = reference or mean
        difference = intervals.difference(mean, reference)
        results.append(
            {
                "corpus": corpus,
                "scaling": scaling,
                "C": C,
                "seeds": len(seeds),
                **{measure: intervals.summary(mean[measure]) for measure in MEASURES},
                "held_out": {
                    measure: round(float(np.mean([each[measure] for each in held_out])), 4)
                    for measure in MEASURES
                },
                "difference": {measure: intervals.summary(difference[measure]) for measure in MEASURES},
            }
        )
    return results


def _scaled(task: recipes.Task) -> recipes.Task:
    """Return a task whose features are divided by their largest absolute values in the training part."""
    features = NumericFeatures(NumericFeaturesParameters(kind="numeric", scaling="max_abs"))
    Y = indicator_matrix(task.training.labels, task.labels)
    X = features.fit_transform([read_documents(task.training.documents)], Y)
    X_test = features.transform(read_documents(task.test.documents))
    return replace(
        task,
        training=replace(task.training, documents=FeatureRows(features.names_, X)),
        test=replace(task.test, documents=FeatureRows(features.names_, X_test)),
    )


def rendered() -> dict[str, str]:
    """Return the tables of the page."""
    results = {tuple(result[field] for field in KEY): result for result in tables.stored(NAME)}
    corpora = list(dict.fromkeys(corpus for corpus, _, _ in results))

    def part(measure: str, cell: Callable[[Result, str], str]) -> str:
        rows = []
        for corpus in corpora:
            cells = [cell(results[corpus, *variant], measure) for variant in VARIANTS]
            rows.append([corpus, str(results[corpus, *VARIANTS[0]]["seeds"]), *cells])
        head = [MEASURES[measure], "seeds", *(_title(*variant) for variant in VARIANTS)]
        return tables.markdown(head, rows)

    return {NAME: "\n\n".join(part(measure, _cell) for measure in MEASURES)}


def _title(scaling: str, C: float) -> str:
    names = " then ".join(f"`{name}`" for name in scaling.split(", then "))
    return names if C == 1 else f"{names}, C {C:g}"


def _cell(result: Result, measure: str) -> str:
    difference: dict[str, Any] = result["difference"][measure]
    differs = difference["low"] > 0 or difference["high"] < 0
    return f"{figure(result[measure]['value'])}{'*' * differs} ({figure(result['held_out'][measure])})"


def main() -> None:
    """Measure the corpora, store the results, and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", nargs="*", default=sorted(MEASUREMENTS), choices=sorted(MEASUREMENTS))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for corpus in arguments.corpus:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = measure(corpus, range(arguments.seeds))
        for result in results:
            print(result, flush=True)
        tables.store(NAME, results, KEY)
    tables.show(PAGE, rendered())


if __name__ == "__main__":
    main()
