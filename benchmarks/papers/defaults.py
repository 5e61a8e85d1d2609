"""The default recipe, compared with the former one and with scikit-learn, on every corpus."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from benchmarks.calibration_scores import MEASUREMENTS, split
from benchmarks.multilabel_corpora import CORPORA
from benchmarks.papers import intervals, recipes
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.intervals import LEVEL, Values
from benchmarks.papers.recipes import DEFAULT, FORMER, N_BINS
from benchmarks.papers.results import DOCS, figures_of, table

TITLE = "The default recipe on every corpus"

SEEDS = (0, 1, 2)
SLOW = {"reuters", "20newsgroups"}
"""Corpora on which recipes with n-grams are trained with one seed only."""

SLOWEST = {"reuters"}
"""Corpora on which the recipe with n-grams has no held-out scores."""

TITLES = {
    "reuters": "Reuters-21578",
    "20newsgroups": "20 Newsgroups without headers",
    "lists": "SpamAssassin's mailing lists",
    "rcv1": "part of RCV1",
}
PAGE = DOCS / "learners.md"
"""The page that shows a smaller table of the same results."""

MEASURES = {"f1_micro": "micro F1", "subset_accuracy": "right sets", "f1_macro": "macro F1"}


def _measure(corpus: str, bench: Bench) -> Json:
    """Return the measures of each recipe, and its differences to the default recipe."""
    training, test = split(CORPORA[corpus](), "given", 0)
    counts = intervals.resamples(test.n_examples, seed=0)
    found: dict[str, list[Values]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in SEEDS[:1] if bench.quick else SEEDS:
        task = recipes.Task.of(training, test, units=corpus in MEASUREMENTS, seed=seed)
        relevant = task.relevant()
        n_grams = {} if bench.quick or (corpus in SLOW and seed != SEEDS[0]) else recipes.OF_N_GRAMS
        if corpus in SLOWEST:
            n_grams = {name: decision for name, decision in n_grams.items() if decision["kind"] == "sign"}
        for name, predictions in recipes.predict(task, n_grams=n_grams):
            found.setdefault(name, []).append(intervals.values(relevant, predictions.predicted, counts))
            seconds.setdefault(name, []).append(predictions.seconds)
    means = {name: intervals.mean(values) for name, values in found.items()}
    return {
        "training": training.n_examples,
        "test": test.n_examples,
        "labels": len(task.labels),
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


RESULTS = {corpus: partial(_measure, corpus) for corpus in CORPORA}


def render(figures: dict[str, Json]) -> str:
    """Return a table per corpus."""
    parts = "\n\n".join(_part(corpus, figures[corpus]) for corpus in CORPORA if corpus in figures)
    return f"""\
Each recipe is trained on the training part of the corpus' own split and predicts the label sets of the test part; labels without a training
example do not count. Values are means over seeds, which draw the folds of the decision and the random numbers of the learners. Brackets
contain intervals from {intervals.N_RESAMPLES:,} resamples of the test documents ({LEVEL:.0%}): they show how much the choice of the test documents
matters, and not how much that of the training documents does. Differences are those to `{DEFAULT}` on the same documents. Macro F1 is the mean over the
labels with a test example, and 0 for a label that is never predicted correctly. Time is the CPU time of a training, relative to `{DEFAULT}`.
`auto` maximizes micro F1 here; `"optimize": "subset_accuracy"` is for right sets.

- `svm`: of texts, features `pivoted` of unit length without English stop words; of numbers, unit length or, if they have different units, `max_abs`. `auto` is the default decision.
- `mp_boost`: {recipes.ROUNDS} rounds; of texts, {recipes.PER_LABEL} selected `binary` terms per label; of numbers, thresholds in {N_BINS} bins. `{FORMER}` was the recipe of the documentation before.
- `LinearSVC`: scikit-learn's, one per label with its own threshold, on sublinear TF-IDF of words, or scaled numbers; "with n-grams" adds pairs of words and 3 to 5 characters within words. With `auto`, its held-out scores get Covey's decision.

{summary(figures)}

{parts}
"""


def summary(figures: dict[str, Json]) -> str:
    """Return on how many corpora the default recipe is better or worse than each other recipe."""
    names = [name for name in _names(figures) if name != DEFAULT]
    rows = [
        [f"`{name}`", *(_wins(figures, name, measure) for measure in ("f1_micro", "subset_accuracy"))]
        for name in names
    ]
    head = ["", *(MEASURES[measure] for measure in ("f1_micro", "subset_accuracy"))]
    return (
        f"Corpora on which `{DEFAULT}` is better : worse than another recipe, with an interval of the difference"
        f" without zero, of all corpora:\n\n{table(head, rows)}"
    )


def rendered() -> dict[str, str]:
    """Return the tables of ``docs/learners.md`` by the names of their marks."""
    figures = figures_of("defaults")
    return {
        "recipes": f"{compact(figures, 'f1_micro')}\n\n{compact(figures, 'subset_accuracy')}\n\n{summary(figures)}"
    }


COMPACT = (DEFAULT, "svm, tuned_threshold", FORMER, "LinearSVC", "LinearSVC with n-grams")


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
    for measure in ("f1_micro", "subset_accuracy"):
        head += [MEASURES[measure], "difference"]
    head += [MEASURES["f1_macro"], "difference", "time", "seeds"]
    rows = [[f"`{name}`", *_cells(name, recipe)] for name, recipe in found["recipes"].items()]
    about = f"{found['training']:,} and {found['test']:,} documents, {found['labels']} labels"
    return f"### {TITLES.get(corpus, corpus)} ({about})\n\n{table(head, rows)}"


def _cells(name: str, recipe: Json) -> Iterable[str]:
    for measure in ("f1_micro", "subset_accuracy"):
        yield _interval(recipe[measure], "")
        yield "" if name == DEFAULT else _interval(recipe["difference"][measure], "+")
    # Resamples lack some rare labels, so only differences of macro F1 have a meaningful interval.
    yield _number(recipe["f1_macro"]["value"])
    yield "" if name == DEFAULT else _interval(recipe["difference"]["f1_macro"], "+")
    yield f"{recipe['time']:.2f}"
    yield str(recipe["seeds"])


def _interval(found: Json, sign: str) -> str:
    value, low, high = (_number(found[key], sign) for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def _number(value: float, sign: str = "") -> str:
    text = f"{value:{sign}.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
