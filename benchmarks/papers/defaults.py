"""The defaults, compared with scikit-learn's usual pipelines on every corpus."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from benchmarks.calibration_scores import MEASUREMENTS, split
from benchmarks.multilabel_corpora import CORPORA
from benchmarks.papers import intervals, scikit_learn
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.intervals import LEVEL, Values
from benchmarks.papers.recipes import N_BINS, ROUNDS, Predictions, Task
from benchmarks.papers.results import DOCS, figures_of, table
from models import catalog
from models.arrays import Floats
from models.boosting.mp_boost import MPBoost
from models.catalog import FeaturesConfig
from models.features import NumericFeaturesParameters
from models.measures.rankings import example_ranking_measures
from models.pipeline import Pipeline

TITLE = "The defaults on every corpus"

SEEDS = (0, 1, 2)
"""Seeds of the defaults: they draw what features are compared on, and the folds. Others have the first one."""

DEFAULT = "default"
RIGHT_SETS = "default, right sets"
WORDS = "svm, words"
BOOSTING = "mp_boost"

TITLES = {
    "reuters": "Reuters-21578",
    "20newsgroups": "20 Newsgroups without headers",
    "lists": "SpamAssassin's mailing lists",
    "rcv1": "part of RCV1",
}
PAGE = DOCS / "learners.md"
"""The page that shows a smaller table of the same results."""

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


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the measures of each recipe, and their differences to those of the defaults."""
    training, test = split(CORPORA[corpus](), "given", 0)
    counts = intervals.resamples(test.n_examples, seed=0)
    found: dict[str, list[Values]] = {}
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
            found.setdefault(name, []).append(_values(task, predictions, counts))
            seconds.setdefault(name, []).append(predictions.seconds)
    means = {name: intervals.mean(values) for name, values in found.items()}
    return {
        "training": training.n_examples,
        "test": test.n_examples,
        "labels": len(task.labels),
        "features": chosen,
        "recipes": {
            name: {
                "seeds": len(found[name]),
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
        pipelines[WORDS] = Pipeline(catalog.create_features(words), seed=task.seed)
    pipelines[BOOSTING] = Pipeline(learner=boosting, seed=task.seed)
    names = [name for name in scikit_learn.names(task) if not (quick and name in scikit_learn.N_GRAMS)]
    return {
        **{name: _covey(pipeline, task) for name, pipeline in pipelines.items()},
        **{name: scikit_learn.predict(task, name) for name in names},
    }


def _covey(pipeline: Pipeline, task: Task) -> Predictions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        pipeline.fit(task.training)
        seconds = time.process_time() - started
    scored = pipeline.scored(task.test)
    return Predictions(scored.predicted(pipeline.rule_), scored.scores, seconds)


def _name_of(parameters: FeaturesConfig) -> str:
    """Return the name of features that were chosen."""
    if isinstance(parameters, NumericFeaturesParameters):
        return parameters.scaling
    if parameters.analyzer.unit == "character":
        return "characters"
    if parameters.analyzer.character_ngrams is not None:
        return "words, pairs and parts"
    return "words"


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


RESULTS = {corpus: partial(_measure, corpus) for corpus in CORPORA}


def render(figures: dict[str, Json]) -> str:
    """Return a table per corpus."""
    parts = "\n\n".join(_part(corpus, figures[corpus]) for corpus in CORPORA if corpus in figures)
    return f"""\
Each recipe is trained on the training part of the corpus' own split and predicts the label sets of the test part; labels without a training
example do not count. "Average precision" and "first label" (its precision) judge the ranking, whatever the decision. Values of `{DEFAULT}` are
means over {len(SEEDS)} seeds, which draw the documents on which features are compared, and the folds of the decision; the others have one seed.
Brackets contain intervals from {intervals.N_RESAMPLES:,} resamples of the test documents ({LEVEL:.0%}): they show how much the choice of the test
documents matters, and not how much that of the training documents does. Differences are those to `{DEFAULT}` on the same documents. Macro F1
is the mean over the labels with a test example, and 0 for a label that is never predicted correctly. Time is the CPU time of a training with
everything that its decision needs, relative to `{DEFAULT}`.

- `{DEFAULT}`: a training that names nothing but its documents: `svm`, the features `auto`, and the decision `auto`, which maximizes micro F1.
- `{RIGHT_SETS}`: the same with `"optimize": "subset_accuracy"`.
- `{WORDS}`: the same with words only.
- `{BOOSTING}`: {ROUNDS} rounds with its default features and decision; on numbers, thresholds in {N_BINS} bins.
- `LinearSVC` and `LogisticRegression`: scikit-learn's, one per label, on sublinear TF-IDF of words, or numbers (of unit length, or divided by
  their largest values if they have different units); "pairs" are words and pairs of them, "characters" 3 to 5 characters within words. The
  label set is what has a positive score, or the best label if every training document has one.

{summary(figures)}

{parts}
"""


def summary(figures: dict[str, Json]) -> str:
    """Return how far the defaults are behind the best of scikit-learn, and by which recipes they are beaten."""
    rows = []
    for corpus in CORPORA:
        if corpus in figures:
            row = [TITLES.get(corpus, corpus), ", ".join(dict.fromkeys(figures[corpus]["features"]))]
            for measure in GOALS:
                name, difference = _best_other(figures[corpus]["recipes"], measure)
                mark = " **" if difference["value"] > MARGIN and _sign(difference) > 0 else " "
                row.append(f"{_interval(difference, '+')}{mark}{_SHORT[name]}{mark.strip()}")
            rows.append(row)
    head = ["", "features", *(MEASURES[measure] for measure in GOALS)]
    names = [name for name in _names(figures) if name != DEFAULT]
    wins = [[f"`{name}`", *(_wins(figures, name, measure) for measure in GOALS)] for name in names]
    return (
        "The best of scikit-learn's pipelines, chosen on the test part, less the defaults. Negative differences are in favour of the"
        f" defaults. Bold: better by more than {MARGIN}, with an interval without zero.\n\n{table(head, rows)}\n\n"
        f"Corpora on which `{DEFAULT}` is better : worse than another recipe, with an interval of the difference"
        f" without zero, of all corpora:\n\n{table(['', *head[2:]], wins)}"
    )


_SHORT = {
    "LinearSVC": "SVC",
    "LogisticRegression": "logistic",
    "LinearSVC, pairs": "SVC pairs",
    "LinearSVC, characters": "SVC characters",
}


def _best_other(recipes: Json, measure: str) -> tuple[str, Json]:
    """Return the recipe of scikit-learn that is best on the test part, and its difference to the defaults."""
    name = max((name for name in recipes if name in _SHORT), key=lambda name: recipes[name][measure]["value"])
    difference: Json = recipes[name]["difference"][measure]
    return name, difference


def rendered() -> dict[str, str]:
    """Return the tables of ``docs/learners.md`` by the names of their marks."""
    figures = figures_of("defaults")
    return {
        "recipes": f"{compact(figures, 'f1_micro')}\n\n{compact(figures, 'subset_accuracy')}\n\n{summary(figures)}"
    }


COMPACT = (DEFAULT, RIGHT_SETS, BOOSTING, *_SHORT)


def compact(figures: dict[str, Json], measure: str) -> str:
    """Return a table with a row per corpus; an asterisk marks differences whose interval has no zero."""
    rows = []
    for corpus in CORPORA:
        found = figures.get(corpus, {"recipes": {}})["recipes"]
        if found:
            rows.append(
                [TITLES.get(corpus, corpus), *(_compact_cell(found, name, measure) for name in COMPACT)]
            )
    return table([MEASURES[measure], *(f"`{name}`" for name in COMPACT)], rows)


def _compact_cell(found: Json, name: str, measure: str) -> str:
    if name not in found:
        return ""
    value = _number(found[name][measure]["value"])
    if name == DEFAULT:
        half = (found[name][measure]["high"] - found[name][measure]["low"]) / 2
        return f"{value} ± {_number(half)}"
    return value + "*" * bool(_sign(found[name]["difference"][measure]))


def _names(figures: dict[str, Json]) -> list[str]:
    return list(dict.fromkeys(name for found in figures.values() for name in found["recipes"]))


def _wins(figures: dict[str, Json], name: str, measure: str) -> str:
    signs = [
        _sign(found["recipes"][name]["difference"][measure])
        for found in figures.values()
        if name in found["recipes"]
    ]
    return f"{signs.count(-1)} : {signs.count(1)} of {len(signs)}"


def _sign(difference: Json) -> int:
    """Return 1 if the other recipe is better, -1 if it is worse, 0 if the interval contains zero."""
    return int(difference["low"] > 0) - int(difference["high"] < 0)


def _part(corpus: str, found: Json) -> str:
    head = ["recipe"]
    for measure in GOALS:
        head += [MEASURES[measure], "difference"]
    head += [MEASURES["f1_macro"], "difference", "time"]
    rows = [[f"`{name}`", *_cells(name, recipe)] for name, recipe in found["recipes"].items()]
    about = f"{found['training']:,} and {found['test']:,} documents, {found['labels']} labels"
    return f"### {TITLES.get(corpus, corpus)} ({about})\n\n{table(head, rows)}"


def _cells(name: str, recipe: Json) -> Iterable[str]:
    for measure in GOALS:
        yield _interval(recipe[measure], "")
        yield "" if name == DEFAULT else _interval(recipe["difference"][measure], "+")
    # Resamples lack some rare labels, so only differences of macro F1 have a meaningful interval.
    yield _number(recipe["f1_macro"]["value"])
    yield "" if name == DEFAULT else _interval(recipe["difference"]["f1_macro"], "+")
    yield f"{recipe['time']:.2f}"


def _interval(found: Json, sign: str) -> str:
    value, low, high = (_number(found[key], sign) for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _number(value: float, sign: str = "") -> str:
    text = f"{value:{sign}.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
