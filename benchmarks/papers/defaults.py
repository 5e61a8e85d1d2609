"""The defaults, compared with scikit-learn's usual pipelines on every corpus."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from benchmarks import intervals
from benchmarks.corpora import EXAMPLES, MEASUREMENTS, Json, split
from benchmarks.intervals import Values
from benchmarks.papers import scikit_learn
from benchmarks.papers.bench import Bench
from benchmarks.papers.frame import Part, Tables, figures_of, table
from benchmarks.papers.scikit_learn import TERMS, WORDS, Predictions
from benchmarks.recipes import N_BINS, ROUNDS, Task, timed_fit
from benchmarks.tables import figure, interval
from models import catalog
from models.arrays import Floats
from models.boosting.mp_boost import MPBoost
from models.catalog import FeaturesConfig
from models.features import NumericFeaturesParameters
from models.measures.rankings import example_ranking_measures
from models.pipeline import Pipeline

SEEDS = (0, 1, 2)
"""Seeds of the defaults, which draw what features are compared on, and the folds. Others have the first."""

DEFAULT = "default"
RIGHT_SETS = "default, right sets"
BOOSTING = "mp_boost"

TITLES = {
    "reuters": "Reuters-21578",
    "20newsgroups": "20 Newsgroups without headers",
    "lists": "SpamAssassin's mailing lists",
    "rcv1": "part of RCV1",
}
MEASURES = {
    "f1_micro": "micro F1",
    "subset_accuracy": "right sets",
    "average_precision": "average precision",
    "first_label": "first label",
    "f1_macro": "macro F1",
}
GOALS = ("f1_micro", "subset_accuracy", "average_precision", "first_label")
"""Measures in which the defaults should not be behind."""

MARGIN = 0.005
"""Differences that do not matter."""

SHORT = {
    "LinearSVC": "SVC",
    "LogisticRegression": "logistic",
    "LinearSVC, pairs": "SVC pairs",
    "LinearSVC, characters": "SVC characters",
}
COMPACT = (DEFAULT, RIGHT_SETS, BOOSTING, *SHORT)


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the measures of each recipe, and their differences to those of the defaults."""
    training, test = split(EXAMPLES[corpus]())
    counts = intervals.resamples(test.n_examples, seed=0)
    result: dict[str, list[Values]] = {}
    seconds: dict[str, list[float]] = {}
    chosen: list[str] = []
    for seed in SEEDS[:1] if bench.quick else SEEDS:
        task = Task.of(training, test, units=corpus in MEASUREMENTS, seed=seed)
        pipeline = Pipeline(seed=seed)
        predicted = {DEFAULT: _covey(pipeline, task)}
        chosen.append(_name_of(pipeline.features_.parameters))
        if seed == SEEDS[0]:
            predicted |= _others(task, pipeline, quick=bench.quick)
        for name, predictions in predicted.items():
            result.setdefault(name, []).append(_values(task, predictions, counts))
            seconds.setdefault(name, []).append(predictions.seconds)
    means = {name: intervals.mean(values) for name, values in result.items()}
    return {
        "training": training.n_examples,
        "test": test.n_examples,
        "labels": len(task.labels),
        "features": chosen,
        "recipes": {
            name: {
                "seeds": len(result[name]),
                "time": round(float(np.mean(seconds[name]) / np.mean(seconds[DEFAULT])), 2),
                **{measure: intervals.summary(values[measure]) for measure in MEASURES},
                "difference": {
                    measure: intervals.summary(of_measure)
                    for measure, of_measure in intervals.difference(values, means[DEFAULT]).items()
                },
            }
            for name, values in means.items()
        },
    }


def _others(task: Task, default: Pipeline, *, quick: bool) -> dict[str, Predictions]:
    """Return what the other recipes predict, by name.

    Args:
        task: the task.
        default: the fitted default, whose features one of the recipes shares.
        quick: whether to leave out n-grams.
    """
    decision = {"kind": "auto", "optimize": "subset_accuracy"}
    boosting = MPBoost(rounds=ROUNDS, bins=None if task.is_text else N_BINS, random_state=task.seed)
    pipelines = {RIGHT_SETS: Pipeline(clone(default.features_), decision=decision, seed=task.seed)}
    if task.is_text:
        words = catalog.resolve_features(default.learner_, None, task.training.kind)
        pipelines["svm, words"] = Pipeline(catalog.create_features(words), seed=task.seed)
    pipelines[BOOSTING] = Pipeline(learner=boosting, seed=task.seed)
    names = TERMS if task.is_text and not quick else WORDS
    return {
        **{name: _covey(pipeline, task) for name, pipeline in pipelines.items()},
        **{name: scikit_learn.predict(task, name) for name in names},
    }


def _covey(pipeline: Pipeline, task: Task) -> Predictions:
    seconds = timed_fit(pipeline, task.training)
    scored = pipeline.scored(task.test)
    return Predictions(scored.predicted(pipeline.rule_), scored.scores, seconds)


def _name_of(parameters: FeaturesConfig) -> str:
    """Return the name of features that were chosen."""
    if isinstance(parameters, NumericFeaturesParameters):
        return parameters.scaling
    if parameters.analyzer.unit == "character":
        return "characters"
    return "words" if parameters.analyzer.character_ngrams is None else "words, pairs and parts"


def _values(task: Task, predictions: Predictions, counts: Floats) -> Values:
    """Return the measures for each resample of the test documents.

    Rankings count for documents with a label that has a training example.
    """
    relevant = task.relevant()
    values = intervals.values(relevant, predictions.predicted, counts)
    of_documents = example_ranking_measures(csr_array(relevant.astype(np.int8)), predictions.scores)
    labelled = relevant.any(axis=1)
    counted = counts[:, labelled]
    for measure, of_each in (
        ("average_precision", of_documents["average_precision"]),
        ("first_label", 1 - of_documents["one_error"]),
    ):
        values[measure] = counted @ of_each[labelled] / counted.sum(axis=1)
    return values


def _tables(figures: Json) -> Tables:
    """Yield the best of scikit-learn, on how many corpora the defaults are better, and each corpus."""
    rows = []
    for corpus, result in figures.items():
        row = [TITLES.get(corpus, corpus), ", ".join(dict.fromkeys(result["features"]))]
        for measure in GOALS:
            recipes = {name: result["recipes"][name] for name in result["recipes"] if name in SHORT}
            name = max(recipes, key=lambda name: recipes[name][measure]["value"])
            difference = recipes[name]["difference"][measure]
            mark = "**" if difference["value"] > MARGIN and _sign(difference) > 0 else ""
            row.append(f"{interval(difference, sign='+')} {mark}{SHORT[name]}{mark}")
        rows.append(row)
    head = [MEASURES[measure] for measure in GOALS]
    yield table(["", "features", *head], rows)
    names = dict.fromkeys(
        name for result in figures.values() for name in result["recipes"] if name != DEFAULT
    )
    yield table(
        ["", *head], [[f"`{name}`", *(_wins(figures, name, measure) for measure in GOALS)] for name in names]
    )
    columns = [column for measure in GOALS for column in (MEASURES[measure], "difference")]
    for result in figures.values():
        yield table(
            ["recipe", *columns, MEASURES["f1_macro"], "difference", "time"],
            [[f"`{name}`", *_cells(name, recipe)] for name, recipe in result["recipes"].items()],
        )


def _wins(figures: Json, name: str, measure: str) -> str:
    recipes = [result["recipes"][name] for result in figures.values() if name in result["recipes"]]
    signs = [_sign(recipe["difference"][measure]) for recipe in recipes]
    return f"{signs.count(-1)} : {signs.count(1)} of {len(signs)}"


def _sign(difference: Json) -> int:
    """Return 1 if the other recipe is better, -1 if it is worse, 0 if the interval contains zero."""
    return int(difference["low"] > 0) - int(difference["high"] < 0)


def _cells(name: str, recipe: Json) -> Tables:
    for measure in (*GOALS, "f1_macro"):
        # Resamples lack some rare labels, so only differences of macro F1 have a meaningful interval.
        yield figure(recipe[measure]["value"]) if measure == "f1_macro" else interval(recipe[measure])
        yield "" if name == DEFAULT else interval(recipe["difference"][measure], sign="+")
    yield f"{recipe['time']:.2f}"


def rendered() -> dict[str, str]:
    """Return the tables of the recipes by the names of their marks."""
    figures = figures_of("defaults")
    best, wins, *_ = _tables(figures)
    return {
        "recipes f1_micro": _compact(figures, "f1_micro"),
        "recipes subset_accuracy": _compact(figures, "subset_accuracy"),
        "recipes best": best,
        "recipes wins": wins,
    }


def _compact(figures: Json, measure: str) -> str:
    """Return a table with a row per corpus; an asterisk marks differences whose interval has no zero."""

    def cell(recipes: Json, name: str) -> str:
        if name not in recipes:
            return ""
        result = recipes[name][measure]
        if name == DEFAULT:
            return f"{figure(result['value'])} ± {figure((result['high'] - result['low']) / 2)}"
        return figure(result["value"]) + "*" * bool(_sign(recipes[name]["difference"][measure]))

    return table(
        [MEASURES[measure], *(f"`{name}`" for name in COMPACT)],
        [
            [TITLES.get(corpus, corpus), *(cell(result["recipes"], name) for name in COMPACT)]
            for corpus, result in figures.items()
        ],
    )


PARTS = {"defaults": Part({corpus: partial(_measure, corpus) for corpus in EXAMPLES}, _tables)}
