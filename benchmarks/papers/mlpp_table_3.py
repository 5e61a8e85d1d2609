"""MLPP, table III: the ranking losses on Reuters-21578, yeast and scene."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.corpora import (
    Json,
    folds,
    indicator,
    jsonl,
    labelled_reuters,
    labels_of,
    mulan_rows,
    text_problem,
)
from benchmarks.papers import dual
from benchmarks.papers.bench import GIVEN, Bench
from benchmarks.papers.frame import Part, Tables, table
from benchmarks.papers.mlpp import LOSSES, NAMES, configuration, scaled
from models.arrays import Bools
from models.measures import rankings
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron
from models.splits import stratified_folds


@dataclass(frozen=True)
class Corpus:
    """A data set with its number of folds.

    Attributes:
        title: name of the data set.
        rows: returns the records.
        features: the features.
        folds: number of folds; 1 means the data set's own split.
        shuffled: whether examples are shuffled in each epoch.
    """

    title: str
    rows: Callable[[], list[Json]]
    features: Json
    folds: int
    shuffled: bool = False


PRODUCTS: Json = {"kind": "numeric", "interactions": 2}

CORPORA = {
    "reuters": Corpus(
        "Reuters-21578",
        labelled_reuters,
        {
            "kind": "text",
            "weighting": "tfidf",
            "scaling": "unit",
            "analyzer": {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"},
            "selection": {"kind": "document_frequency", "count": 10_000},
        },
        folds=10,
    ),
    "yeast": Corpus("yeast", lambda: mulan_rows("yeast"), PRODUCTS, folds=10),
    "scene": Corpus("scene", lambda: mulan_rows("scene"), PRODUCTS, folds=1, shuffled=True),
}

PAPER = {
    "reuters": {
        "is_error": (17.46, 17.83, 22.18),
        "error_set_size": (1.691, 2.974, 12.38),
        "margin": (1.399, 2.565, 9.602),
        "average_precision": (90.77, 90.20, 84.45),
    },
    "yeast": {
        "is_error": (74.43, 77.33, 79.07),
        "error_set_size": (6.456, 7.887, 8.581),
        "margin": (4.396, 5.188, 5.553),
        "average_precision": (75.15, 71.39, 70.41),
    },
    "scene": {
        "is_error": (25.22, 26.30, 26.21),
        "error_set_size": (0.392, 0.412, 0.430),
        "margin": (0.391, 0.410, 0.430),
        "average_precision": (86.43, 85.82, 85.64),
    },
}
"""The paper's figures of MLPP, MMP and BR."""

LEARNERS: dict[str, type[MLPP | MMP | BinaryRelevancePerceptron]] = {
    "mlpp": MLPP,
    "mmp": MMP,
    "binary_relevance_perceptron": BinaryRelevancePerceptron,
}

N_FOLDS = 10
EPOCHS = 10
LONG_EPOCHS = 100
"""The paper's number of epochs for yeast and scene."""

LEVEL = 0.05

Values = dict[str, dict[str, list[float]]]
"""Losses of the folds by algorithm and measure."""


def _summary(values: Values) -> Json:
    """Return means, standard deviations, and which of two algorithms is better by which losses.

    Returns:
        ``values``: the losses of each fold. ``means`` and ``deviations`` by algorithm and measure; no
        deviations with one split. ``better``: winner, loser, and the losses by which the winner is
        significantly and not significantly better.
    """
    several = len(values["mmp"]["margin"]) > 1
    better = []
    for pair in combinations(LEARNERS, 2):
        for winner, loser in (pair, pair[::-1]):
            result: tuple[list[str], list[str]] = ([], [])
            for measure in LOSSES:
                sign = -1 if measure == "average_precision" else 1
                gains = sign * (np.array(values[loser][measure]) - np.array(values[winner][measure]))
                if gains.mean() > 0:
                    sure = several and float(wilcoxon(gains, alternative="greater").pvalue) < LEVEL
                    result[not sure].append(measure)
            if any(result):
                better.append([winner, loser, *result])
    summary: Json = {"values": values, "better": better, "means": _of_folds(np.mean, values)}
    return {**summary, "deviations": _of_folds(partial(np.std, ddof=1), values)} if several else summary


def _of_folds(statistic: Callable[[list[float]], Any], values: Values) -> Json:
    return {a: {m: float(statistic(each)) for m, each in values[a].items()} for a in LEARNERS}


def _divided(rows: list[Json], held_out: Bools) -> tuple[list[Json], list[Json]]:
    """Return the records that are not held out, and those that are."""
    parts: tuple[list[Json], list[Json]] = ([], [])
    for row, held in zip(rows, held_out.tolist(), strict=True):
        parts[held].append(row)
    return parts


def _measure(key: str, bench: Bench) -> Json:
    """Return the losses of each fold by algorithm and measure, measured over HTTP."""
    corpus = CORPORA[key]
    rows, epochs, n_folds = corpus.rows(), EPOCHS, corpus.folds
    if bench.quick:
        rows, epochs, n_folds = rows[::4][:600], 1, min(n_folds, 2)
    bodies = folds(rows, n_folds) if n_folds > 1 else [jsonl(rows)]
    datasets = [
        bench.dataset(f"{corpus.title}, {len(rows)} examples, {place} of {n_folds}", partial(bytes, body))
        for place, body in enumerate(bodies, start=1)
    ]
    requests = [
        {
            "dataset_id": dataset,
            "split": GIVEN,
            **configuration(algorithm, corpus.features, epochs=epochs, shuffle=corpus.shuffled),
        }
        for algorithm in LEARNERS
        for dataset in datasets
    ]
    versions = [bench.version(job) for job in bench.train(requests)]
    tests = [version["metrics"]["test"] for version in versions]
    values: Values = {
        algorithm: {m: [test[m] for test in tests[place : place + len(datasets)]] for m in LOSSES}
        for place, algorithm in zip(range(0, len(tests), len(datasets)), LEARNERS, strict=True)
    }
    about = versions[0]["facts"]
    return {
        "examples": len(rows),
        "labels": about["labels"],
        "features": about["features"],
        "folds": n_folds,
        "epochs": epochs,
        **_summary(values),
    }


def _library(
    key: str, measure: Callable[[Json, Bools, str], dict[str, float]], bench: Bench
) -> tuple[Json, Values]:
    """Measure folds with the library.

    Args:
        key: the corpus.
        measure: returns the losses of an algorithm from records, and which of them are in the fold.
        bench: tells whether a small version is wanted.
    """
    rows = CORPORA[key].rows()
    labels = labels_of(rows)
    fold_of = stratified_folds(indicator(rows, labels), N_FOLDS, seed=0)
    values: Values = {algorithm: {m: [] for m in LOSSES} for algorithm in LEARNERS}
    for fold in range(2 if bench.quick else N_FOLDS):
        for algorithm in LEARNERS:
            for name, value in measure({"rows": rows, "labels": labels}, fold_of == fold, algorithm).items():
                values[algorithm][name].append(value)
    return {"examples": len(rows), "labels": len(labels)}, values


def _reuters_tenth(bench: Bench) -> Json:
    """Train on each tenth of the stories and test on the other nine, with all labels of the collection.

    Uses the library: labels without training examples are columns of zeros.
    """
    present, sizes = [], []

    def measure(about: Json, fold: Bools, algorithm: str) -> dict[str, float]:
        test, training = _divided(about["rows"], fold)
        problem = text_problem(training, test, CORPORA["reuters"].features, about["labels"])
        present.append(int((problem.Y.sum(axis=0) > 0).sum()))
        sizes.append(len(training))
        machine = LEARNERS[algorithm](epochs=1 if bench.quick else EPOCHS).fit(problem.X, problem.Y)
        scores = machine.decision_function(problem.X_test)
        return {name: getattr(rankings, name)(problem.Y_test, scores) for name in LOSSES}

    about, values = _library("reuters", measure, bench)
    more = {
        "training_examples": float(np.mean(sizes)),
        "labels_with_training_examples": float(np.mean(present)),
    }
    return {**about, **more, **_summary(values)}


def _long(key: str, bench: Bench) -> Json:
    """Return the losses of ten folds after the paper's number of epochs, in dual form."""
    epochs = 1 if bench.quick else LONG_EPOCHS
    training = dual.Training(epochs, shuffle=CORPORA[key].shuffled)

    def measure(about: Json, test: Bools, algorithm: str) -> dict[str, float]:
        rows = about["rows"]
        names = sorted({name for row in rows for name in row["features"]})
        X = np.array([[row["features"].get(name, 0.0) for name in names] for row in rows])
        Y = indicator(rows, about["labels"])
        relevant = Y.toarray() != 0
        scores = dual.scores(algorithm, dual.products, X[~test], relevant[~test], X[test], training)
        return {name: getattr(rankings, name)(Y[test], scores) for name in LOSSES}

    about, values = _library(key, measure, bench)
    return {**about, "folds": N_FOLDS, "epochs": epochs, **_summary(values)}


def _variants(bench: Bench) -> Json:
    """Return MMP's IsErr on Reuters-21578 with other features, epochs and splits."""
    rows = CORPORA["reuters"].rows()
    first = stratified_folds(indicator(rows, labels_of(rows)), N_FOLDS, seed=0) == 0
    date = np.arange(len(rows)) * N_FOLDS // len(rows)  # folds of consecutive stories
    latest = np.array([row["split"] == "test" for row in rows])

    def is_error(test: Bools, epochs: int = EPOCHS, **features: str) -> float:
        problem = text_problem(*_divided(rows, test), {**CORPORA["reuters"].features, **features})
        machine = MMP(epochs=epochs).fit(problem.X, problem.Y)
        return rankings.is_error(problem.Y_test, machine.decision_function(problem.X_test))

    if bench.quick:
        return {"first_fold": is_error(first, 1)}
    return {
        "first_fold": is_error(first),
        "unscaled": is_error(first, scaling="none"),
        "presence": is_error(first, weighting="binary", scaling="none"),
        "one_epoch": is_error(first, 1),
        "consecutive": [is_error(date == fold) for fold in (0, 3, 6, 9)],
        "latest": is_error(latest),
    }


def _tables(figures: Json) -> Tables:
    for name in ("reuters", "reuters_tenth", "yeast", "yeast_long", "scene", "scene_long"):
        result, paper = figures[name], PAPER[name.partition("_")[0]]
        rows = []
        for measure, (title, _, form) in LOSSES.items():
            cells = []
            for place, algorithm in enumerate(LEARNERS):
                shown = scaled(measure, result["means"][algorithm][measure])
                if "deviations" in result:
                    shown += f" ± {scaled(measure, result['deviations'][algorithm][measure])}"
                cells.append(f"{shown} ({form.format(paper[measure][place])})")
            rows.append([title, *cells])
        yield table(["", *(NAMES[algorithm] for algorithm in LEARNERS)], rows)


PARTS = {
    "mlpp_table_3": Part(
        {
            "reuters": partial(_measure, "reuters"),
            "reuters_variants": _variants,
            "reuters_tenth": _reuters_tenth,
            "yeast": partial(_measure, "yeast"),
            "yeast_long": partial(_long, "yeast"),
            "scene": partial(_measure, "scene"),
            "scene_long": partial(_long, "scene"),
        },
        _tables,
    )
}
