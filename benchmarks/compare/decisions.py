"""Comparisons of decisions on the same scores, and of scalings of numeric features, for ``svm``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks import intervals
from benchmarks.compare.frame import Comparison, Stored
from benchmarks.corpora import EXAMPLES, MEASUREMENTS, Json, split
from benchmarks.intervals import Values
from benchmarks.recipes import PIVOTED, Task, Trained, decide_task, train
from benchmarks.tables import Result, figure, markdown
from models.data.examples import FeatureRows
from models.decisions.tune import FittedDecision
from models.decisions.values import SetCounts
from models.features import NumericFeatures, NumericFeaturesParameters
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import read_documents


def _expected(decision: FittedDecision) -> dict[str, float]:
    """Return the values of the held-out examples, which a decision expects of itself."""
    assert decision.report is not None
    assert decision.report.chosen is not None
    values: dict[str, float] = decision.report.chosen.values.model_dump()
    return values


# Decisions

PRECISION = {"kind": "target", "measure": "precision", "value": 0.95}
DECISIONS: dict[str, Json] = {
    "`auto`": {"kind": "auto"},
    "`auto`, `subset_accuracy`": {"kind": "auto", "optimize": "subset_accuracy"},
    "`auto`, a missed label costs 5": {"kind": "auto", "optimize": {"kind": "cost", "missed_label": 5.0}},
    "95 % precision": PRECISION,
    "95 % precision per label": {**PRECISION, "scope": "per_label"},
    "95 % recall": {"kind": "target", "measure": "recall", "value": 0.95},
}
MEASURES = {
    "precision_micro": "precision",
    "recall_micro": "recall",
    "f1_micro": "micro F1",
    "subset_accuracy": "right sets",
}


@cache
def _trained(corpus: str) -> tuple[Task, Trained]:
    task = Task.of(*split(EXAMPLES[corpus]()), units=False, seed=0)
    features = PIVOTED if task.is_text else {"kind": "numeric", "scaling": "unit"}
    return task, train(task, features, {"algorithm": "svm"})


def _decided(corpus: str, variant: str) -> Result:
    task, trained = _trained(corpus)
    decision = decide_task(task, trained, DECISIONS[variant])
    values = SetCounts.of(decision.rule.predicted(trained.test), task.relevant(), None).values()
    expected = _expected(decision)
    return {
        "held_out": {name: round(expected[name], 4) for name in MEASURES},
        "test": {name: round(values[name], 4) for name in MEASURES},
    }


def _decided_tables(stored: Stored) -> Mapping[str, str]:
    rows = [
        [
            DECIDED.corpora[corpus],
            decision,
            *(f"{figure(result['test'][name])} ({figure(result['held_out'][name])})" for name in MEASURES),
        ]
        for (corpus, decision), result in stored.items()
    ]
    return {"decision_values": markdown(["corpus", "decision", *MEASURES.values()], rows)}


DECIDED = Comparison(
    {
        "reuters": "Reuters-21578",
        "20newsgroups": "20 Newsgroups",
        "lists": "mailing lists",
        "ohsumed": "ohsumed",
    },
    list(DECISIONS),
    _decided,
    _decided_tables,
)


# Scalings of numeric features, and values of C

SHOWN = {"f1_micro": "micro F1", "subset_accuracy": "right sets"}
SEEDS = 3

BOTH = "max_abs, then unit"
"""Features are scaled first, and documents then. Covey has no such option: the features are scaled before,
with the same divisors in all folds."""

SCALINGS: dict[str, tuple[str, float]] = {
    "`max_abs`": ("max_abs", 1.0),
    "`max_abs`, C 0.1": ("max_abs", 0.1),
    "`standard`": ("standard", 1.0),
    "`standard`, C 0.01": ("standard", 0.01),
    "`unit`": ("unit", 1.0),
    "`unit`, C 10": ("unit", 10.0),
    "`max_abs` then `unit`": (BOTH, 1.0),
}
"""Scaling and C. The first one is that to which the others are compared."""


@cache
def _scaled(corpus: str, variant: str) -> tuple[Values, dict[str, float]]:
    """Return the resampled measures of the test part, and what the decision expects, as means over seeds."""
    scaling, C = SCALINGS[variant]
    training, test = split(EXAMPLES[corpus]())
    counts = intervals.resamples(test.n_examples, seed=0)
    values, expected = [], []
    for seed in range(SEEDS):
        task = Task.of(training, test, units=True, seed=seed)
        if scaling == BOTH:
            task = _scaled_first(task)
        parameters = {"kind": "numeric", "scaling": "unit" if scaling == BOTH else scaling}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trained = train(task, parameters, {"algorithm": "svm", "C": C})
            decision = decide_task(task, trained, {"kind": "auto"})
        expected.append(_expected(decision))
        values.append(intervals.values(task.relevant(), decision.rule.predicted(trained.test), counts))
    means = {name: round(float(np.mean([each[name] for each in expected])), 4) for name in SHOWN}
    return intervals.mean(values), means


def _scaled_first(task: Task) -> Task:
    """Return a task whose features are divided by their largest absolute values in the training part."""
    features = NumericFeatures(NumericFeaturesParameters(kind="numeric", scaling="max_abs"))
    Y = indicator_matrix(task.training.labels, task.labels)
    X = features.fit_transform(read_documents(task.training.documents), Y)
    X_test = features.transform(read_documents(task.test.documents))
    return replace(
        task,
        training=replace(task.training, documents=FeatureRows(features.names_, X)),
        test=replace(task.test, documents=FeatureRows(features.names_, X_test)),
    )


def _scaling(corpus: str, variant: str) -> Result:
    values, expected = _scaled(corpus, variant)
    difference = intervals.difference(values, _scaled(corpus, next(iter(SCALINGS)))[0])
    return {
        "seeds": SEEDS,
        **{name: intervals.summary(values[name]) for name in SHOWN},
        "held_out": expected,
        "difference": {name: intervals.summary(difference[name]) for name in SHOWN},
    }


def _scaling_tables(stored: Stored) -> Mapping[str, str]:
    texts = []
    for name, title in SHOWN.items():
        rows = []
        for corpus in dict.fromkeys(corpus for corpus, _ in stored):
            results = [stored[corpus, variant] for variant in SCALINGS]
            cells = []
            for result in results:
                difference = result["difference"][name]
                differs = difference["low"] > 0 or difference["high"] < 0
                cells.append(
                    f"{figure(result[name]['value'])}{'*' * differs} ({figure(result['held_out'][name])})"
                )
            rows.append([corpus, str(results[0]["seeds"]), *cells])
        texts.append(markdown([title, "seeds", *SCALINGS], rows))
    return {"number_scaling": "\n\n".join(texts)}


NUMBER_SCALING = Comparison(
    {corpus: corpus for corpus in sorted(MEASUREMENTS)}, list(SCALINGS), _scaling, _scaling_tables
)
