"""The stored results, summed over seeds and corpora, and the tables of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import Any

from benchmarks import tables
from benchmarks.promises.corpora import ABOUT, NO_CONSTANT
from benchmarks.tables import Result, figure

NAME = "promises"
KEY = ("promise", "learner", "split", "corpus", "size")

HOWS = {"per_label": "decision, per label", "pooled": "decision, pooled", "router": "policy of a router"}
ALL = "all"
FRESH = "no constant"
"""The corpora on which no constant was chosen."""


def add(first: Result, second: Result) -> Result:
    """Add results of two seeds: numbers are summed, and lists joined.

    >>> add({"n": 1, "x": {"share": [0.5]}}, {"n": 2, "x": {"share": [0.25]}})
    {'n': 3, 'x': {'share': [0.5, 0.25]}}
    """
    return {
        name: add(first[name], second[name])
        if isinstance(first.get(name), dict) and isinstance(second.get(name), dict)
        else first[name] + second[name]
        if name in first and name in second
        else first.get(name, second.get(name))
        for name in {**first, **second}
    }


class Results:
    """Results of one learner and split, which the tables select from."""

    def __init__(self, found: Iterable[Result], learner: str, split: str) -> None:
        self._found = [
            result for result in found if result["learner"] == learner and result["split"] == split
        ]

    def of(self, promise: str, group: str, size: int) -> list[Result]:
        """Return the results of a promise, of a group of corpora or of one corpus."""
        return [
            result
            for result in self._found
            if result["promise"] == promise
            and result["size"] == size
            and (group in {ALL, result["corpus"]} or (group == FRESH and result["corpus"] in NO_CONSTANT))
        ]

    def sizes(self) -> list[int]:
        """Return all numbers of training examples."""
        return sorted({result["size"] for result in self._found})

    def groups(self) -> list[str]:
        """Return the groups of corpora."""
        return [ALL, FRESH] if any(result["corpus"] in NO_CONSTANT for result in self._found) else [ALL]

    def corpora(self, promise: str | None = None) -> list[str]:
        """Return the names of the corpora with a result."""
        found = {result["corpus"] for result in self._found if promise in {None, result["promise"]}}
        return [corpus for corpus in ABOUT if corpus in found]

    def seeds(self, promise: str) -> str:
        """Return the number of seeds in words."""
        n = max((result["seeds"] for result in self._found if result["promise"] == promise), default=0)
        return "1 seed" if n == 1 else f"{n} seeds"


def title(corpus: str) -> str:
    """Return the name of a corpus; ° marks one that chose no constant."""
    return f"{corpus} °" if corpus in NO_CONSTANT else corpus


def rendered() -> dict[str, str]:
    """Return the tables of the page."""
    return rendered_of(tables.stored(NAME))


def rendered_of(found: Iterable[Result], learner: str = "svm", split: str = "random") -> dict[str, str]:
    """Return the tables of results, by their marks."""
    results = Results(found, learner, split)
    makers = (
        *(
            corpora,
            single,
            precision,
            precision_by_corpus,
            probabilities,
            errors_by_corpus,
            agreement,
            review,
            unseen,
        ),
        *(partial_fit, if_better, self_training),
    )
    return {f"promises_{make.__name__}": make(results) for make in makers}


def corpora(results: Results) -> str:
    """Return a table of what the corpora are."""
    rows = [[title(corpus), ABOUT[corpus]] for corpus in results.corpora()]
    return tables.markdown(["corpus", "documents"], rows)


def single(results: Results) -> str:
    """Return a table of the default decision for documents with one label."""

    def cells(found: Sequence[Result]) -> list[str]:
        right, f1, best = (_mean(_values(found, name)) for name in ("right", "f1", "best"))
        return [f"{right} ({f1})", _largest(_values(found, "spread")), best]

    head = ["right sets (micro F1)", "largest spread", "best label only"]
    return _by_corpus(results, "single", head, cells, with_groups=False)


def precision(results: Results) -> str:
    """Return a table of how decisions and policies keep a precision."""
    rows = []
    for group in results.groups():
        for how, title in HOWS.items():
            for target in ("0.9", "0.95", "0.99"):
                row = [group, title, figure(float(target), 2)]
                for size in results.sizes():
                    found = results.of("precision", group, size)
                    runs = int(_total(found, how, target, "runs_below"))
                    row += [*_precision(found, how, target), f"{runs} of {_seeds(found)}"]
                rows.append(row)
    head = ["labels below", "precision (recall)", "runs below"]
    return tables.markdown(_by_size(results, ["corpora", "what", "target"], head), rows)


def _precision(found: Sequence[Result], how: str, target: str) -> list[str]:
    def total(name: str) -> float:
        return _total(found, how, target, name)

    return [
        f"{_ratio(total('below'), total('labels'))} of {int(total('labels')):,}",
        f"{_ratio(total('right'), total('predicted'))} ({_ratio(total('right'), total('positives'))})",
    ]


def precision_by_corpus(results: Results) -> str:
    """Return a table of how 95 % precision per label is kept on each corpus."""
    return _by_corpus(
        results,
        "precision",
        ["labels below", "precision (recall)"],
        lambda found: _precision(found, "per_label", "0.95"),
        with_groups=False,
    )


def probabilities(results: Results) -> str:
    """Return a table of the share true among labels by their probability."""
    rows = []
    for group in results.groups():
        for name in ("≥ .99", ".95–.99", ".9–.95", ".5–.9"):
            row = [group, name]
            for size in results.sizes():
                found = results.of("probabilities", group, size)
                n, true, expected = (
                    _total(found, "bins", name, part) for part in ("pairs", "true", "expected")
                )
                row += [f"{_ratio(true, n)} ({_ratio(expected, n)}) of {int(n):,}"]
            rows.append(row)
    return tables.markdown(_by_size(results, ["corpora", "probability"], ["true (mean p)"]), rows)


def errors_by_corpus(results: Results) -> str:
    """Return a table of the expected calibration errors."""

    def cells(found: Sequence[Result]) -> list[str]:
        n, true = (_total(found, "bins", "≥ .99", part) for part in ("pairs", "true"))
        return [*(_mean(map(mean, _lists(found, name))) for name in ("pairs", "sets")), _ratio(true, n)]

    return _by_corpus(results, "probabilities", ["pairs", "sets", "true of p ≥ .99"], cells)


def agreement(results: Results) -> str:
    """Return a table of how often a set is more probable than one of its decisions."""

    def cells(found: Sequence[Result]) -> list[str]:
        share = _ratio(_total(found, "above"), _total(found, "documents"))
        return [f"{share} ({_largest([max(value, 0.0) for value in _values(found, 'largest')])})"]

    return _by_corpus(results, "agreement", ["more probable (by at most)"], cells)


def review(results: Results) -> str:
    """Return a table of the label sets that need no review."""
    rows = []
    for group in results.groups():
        for bound in ("0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99"):
            row = [group, figure(float(bound), 2)]
            for size in results.sizes():
                found = results.of("review", group, size)
                broken, checks, right, accepted, documents = (
                    int(_total(found, bound, name))
                    for name in ("broken", "checks", "right", "accepted", "documents")
                )
                row += [f"{broken} of {checks}", f"{_ratio(right, accepted)} ({_ratio(accepted, documents)})"]
            rows.append(row)
    head = ["broken", "right (without review)"]
    return tables.markdown(_by_size(results, ["corpora", "`review_below`"], head), rows)


def unseen(results: Results) -> str:
    """Return a table of how certain label sets are for documents of labels without a training example."""

    def cells(found: Sequence[Result]) -> list[str]:
        n = _total(found, "documents")
        certain, routed, labelled = (
            _ratio(_total(found, name), n) for name in ("certain", "routed", "labelled")
        )
        return [f"{certain} ({routed})", labelled]

    return _by_corpus(results, "unseen", ["set p ≥ .9 (with a label)", "any label"], cells)


def partial_fit(results: Results) -> str:
    """Return a table of versions before and after a partial fit, and of new trainings."""
    rows = []
    for learner in ("naive_bayes", "binary_relevance_perceptron", "mmp", "mlpp"):
        for measure, title in (("f1", "micro F1"), ("wrong", "wrong sets")):
            row = [f"`{learner}`", title]
            for size in results.sizes():
                found = [
                    result[learner] for result in results.of("partial_fit", ALL, size) if learner in result
                ]
                row += [
                    _mean(mean(result[name][measure]) for result in found)
                    for name in ("before", "after", "again")
                ]
            rows.append(row)
    head = ["before", "after", "new training"]
    return tables.markdown(
        _by_size(results, [f"learner ({results.seeds('partial_fit')})", "mean"], head), rows
    )


def if_better(results: Results) -> str:
    """Return a table of promotions of versions that are not better."""

    def cells(found: Sequence[Result]) -> list[str]:
        tries, promoted, no_better, series = (
            int(_total(found, name)) for name in ("tries", "promoted", "no_better", "with_promotion")
        )
        return [_ratio(promoted, tries), f"{series} of {_seeds(found)}", f"{no_better} of {promoted}"]

    return _by_corpus(results, "if_better", ["tries", "series", "no better"], cells)


def self_training(results: Results) -> str:
    """Return a table of trainings on predictions."""
    titles = {
        "before": "nothing",
        "predicted": "predicted labels",
        "routed": "the same, only if set p ≥ .9",
        "true": "correct labels",
    }
    rows = []
    for name, title in titles.items():
        row = [title]
        for size in results.sizes():
            found = [result for result in results.of("self_training", ALL, size) if name in result]
            documents, wrong, routed, routed_wrong = (
                _total(found, name, part) for part in ("documents", "wrong", "routed", "routed_wrong")
            )
            error = _mean(mean(result[name]["sets"]) for result in found if result[name].get("sets"))
            row += [_ratio(wrong, documents), f"{_ratio(routed_wrong, routed)} ({_ratio(routed, documents)})"]
            row += [error]
        rows.append(row)
    head = ["wrong sets", "wrong without review (share)", "set error"]
    return tables.markdown(_by_size(results, [f"added ({results.seeds('self_training')})"], head), rows)


def _by_corpus(
    results: Results,
    promise: str,
    head: Sequence[str],
    cells: Callable[[Sequence[Result]], list[str]],
    *,
    with_groups: bool = True,
) -> str:
    """Return a table with a row for each corpus, and for all of them."""
    rows = []
    for corpus in [*results.corpora(promise), *(results.groups() if with_groups else [])]:
        row = [corpus if corpus in {ALL, FRESH} else title(corpus)]
        for size in results.sizes():
            found = results.of(promise, corpus, size)
            row += cells(found) if found else ["–"] * len(head)
        rows.append(row)
    return tables.markdown(_by_size(results, ["corpus"], head), rows)


def _by_size(results: Results, first: Sequence[str], cells: Sequence[str]) -> list[str]:
    """Return the heads of columns that repeat for each size."""
    return [*first, *(f"{size:,}: {cell}" for size in results.sizes() for cell in cells)]


def _ratio(numerator: float, denominator: float) -> str:
    return figure(numerator / denominator) if denominator else "–"


def _mean(values: Iterable[float]) -> str:
    values = list(values)
    return figure(mean(values)) if values else "–"


def _largest(values: Sequence[float]) -> str:
    return figure(max(values)) if values else "–"


def _lists(found: Sequence[Result], name: str) -> list[list[float]]:
    return [result[name] for result in found if result.get(name)]


def _values(found: Sequence[Result], name: str) -> list[float]:
    return [value for values in _lists(found, name) for value in values]


def _seeds(found: Sequence[Result]) -> int:
    return sum(result["seeds"] for result in found)


def _total(found: Sequence[Result], *path: str) -> float:
    """Return the sum of a number, which some results can lack."""
    total = 0.0
    for result in found:
        value: Any = result
        for name in path:
            value = value.get(name, {})
        total += value or 0
    return total
