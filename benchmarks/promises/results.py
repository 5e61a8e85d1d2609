"""The stored results, summed over seeds and corpora, and the tables of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean

from benchmarks import tables
from benchmarks.tables import Result, figure

NAME = "promises"
PAGE = tables.DOCS / "promises.md"
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
            and (group in {ALL, result["corpus"]} or (group == FRESH and not result["chose_constants"]))
        ]

    def sizes(self) -> list[int]:
        """Return all numbers of training examples."""
        return sorted({result["size"] for result in self._found})

    def groups(self) -> list[str]:
        """Return the groups of corpora."""
        chose = {result["chose_constants"] for result in self._found}
        return [ALL, FRESH] if len(chose) == 2 else [ALL]

    def corpora(self, promise: str) -> list[str]:
        """Return the names of the corpora with a result, in order; ° marks those that chose no constant."""
        return [*dict.fromkeys(result["corpus"] for result in self._found if result["promise"] == promise)]

    def title(self, corpus: str) -> str:
        """Return the name of a corpus; ° marks one that chose no constant."""
        chose = next(result["chose_constants"] for result in self._found if result["corpus"] == corpus)
        return corpus if chose else f"{corpus} °"


def rendered() -> dict[str, str]:
    """Return the tables of the page."""
    return rendered_of(tables.stored(NAME))


def rendered_of(found: Iterable[Result], learner: str = "svm", split: str = "random") -> dict[str, str]:
    """Return the tables of results, by their marks."""
    results = Results(found, learner, split)
    makers: dict[str, Callable[[Results], str]] = {
        "promises_single": single,
        "promises_precision": precision,
        "promises_precision_corpora": precision_by_corpus,
        "promises_probabilities": probabilities,
        "promises_errors": errors_by_corpus,
        "promises_agreement": agreement,
        "promises_review": review,
        "promises_unseen": unseen,
    }
    return {mark: make(results) for mark, make in makers.items()}


def _by_size(results: Results, first: Sequence[str], cells: Sequence[str]) -> list[str]:
    """Return the heads of columns that repeat for each size."""
    return [*first, *(f"{size:,}: {cell}" for size in results.sizes() for cell in cells)]


def _ratio(numerator: float, denominator: float) -> str:
    return figure(numerator / denominator) if denominator else "–"


def _mean(values: Iterable[float]) -> str:
    values = list(values)
    return figure(mean(values)) if values else "–"


def _total(results: Sequence[Result], *path: str) -> float:
    total = 0.0
    for result in results:
        value = result
        for name in path:
            value = value.get(name, {})
        total += value or 0  # type: ignore[operator]  # the end of the path is a number
    return total


def single(results: Results) -> str:
    """Return a table of the default decision for documents with one label."""
    rows = []
    for corpus in results.corpora("single"):
        row = [results.title(corpus)]
        for size in results.sizes():
            found = results.of("single", corpus, size)
            row += [_mean(value for each in found for value in each[name]) for name in ("right", "f1")]
            row += [figure(max((max(each["spread"]) for each in found), default=0.0)) if found else "–"]
            row += [_mean(value for each in found for value in each["best"])]
        rows.append(row)
    return tables.markdown(
        _by_size(results, ["corpus"], ["right sets", "micro F1", "spread", "best label"]), rows
    )


def precision(results: Results) -> str:
    """Return a table of how decisions and policies keep a precision."""
    rows = []
    for group in results.groups():
        for how, title in HOWS.items():
            for target in ("0.9", "0.95", "0.99"):
                row = [group, title, figure(float(target), 2)]
                for size in results.sizes():
                    row += _precision(results.of("precision", group, size), how, target)
                rows.append(row)
    cells = ["labels below", "precision", "recall", "runs below"]
    return tables.markdown(_by_size(results, ["corpora", "what", "target"], cells), rows)


def _precision(found: Sequence[Result], how: str, target: str) -> list[str]:
    def total(name: str) -> float:
        return _total(found, how, target, name)

    kept = [result[how][target] for result in found]
    below = f"{_ratio(total('below'), total('labels'))} of {int(total('labels')):,}"
    runs = f"{int(total('runs_below'))} of {sum(result['seeds'] for result in found)}"
    return [
        below,
        _ratio(total("right"), total("predicted")),
        _mean(each["right"] / each["positives"] for each in kept if each["positives"]),
        runs,
    ]


def precision_by_corpus(results: Results) -> str:
    """Return a table of how 95 % precision per label is kept on each corpus."""
    rows = []
    for corpus in results.corpora("precision"):
        row = [results.title(corpus)]
        for size in results.sizes():
            found = results.of("precision", corpus, size)
            row += _precision(found, "per_label", "0.95")[:3] if found else ["–"] * 3
        rows.append(row)
    return tables.markdown(_by_size(results, ["corpus"], ["labels below", "precision", "recall"]), rows)


def probabilities(results: Results) -> str:
    """Return a table of the share true among labels by their probability."""
    rows = []
    for group in results.groups():
        for name in ("≥ .99", ".95–.99", ".9–.95", ".5–.9"):
            row = [group, name]
            for size in results.sizes():
                found = results.of("probabilities", group, size)
                pairs = _total(found, "bins", name, "pairs")
                row += [_ratio(_total(found, "bins", name, part), pairs) for part in ("true", "expected")]
                row += [f"{int(pairs):,}"]
            rows.append(row)
    return tables.markdown(_by_size(results, ["corpora", "probability"], ["true", "mean p", "labels"]), rows)


def errors_by_corpus(results: Results) -> str:
    """Return a table of the expected calibration errors."""
    rows = []
    for corpus in [*results.corpora("probabilities"), *results.groups()]:
        row = [corpus if corpus in results.groups() else results.title(corpus)]
        for size in results.sizes():
            found = results.of("probabilities", corpus, size)
            row += [_mean(mean(each[name]) for each in found if each.get(name)) for name in ("pairs", "sets")]
            certain = [each["bins"]["≥ .99"] for each in found if "bins" in each]
            row += [_ratio(sum(each["true"] for each in certain), sum(each["pairs"] for each in certain))]
        rows.append(row)
    return tables.markdown(_by_size(results, ["corpus"], ["pairs", "sets", "true of p ≥ .99"]), rows)


def agreement(results: Results) -> str:
    """Return a table of how often a set is more probable than one of its decisions."""
    rows = []
    for corpus in [*results.corpora("agreement"), *results.groups()]:
        row = [corpus if corpus in results.groups() else results.title(corpus)]
        for size in results.sizes():
            found = results.of("agreement", corpus, size)
            row += [_ratio(_total(found, "above"), _total(found, "documents"))]
            largest = [value for each in found for value in each.get("largest", [])]
            row += [figure(max(largest)) if largest else "–"]
        rows.append(row)
    return tables.markdown(_by_size(results, ["corpus"], ["more probable", "by at most"]), rows)


def review(results: Results) -> str:
    """Return a table of the label sets that need no review."""
    rows = []
    for group in results.groups():
        bounds = [
            name
            for name, value in (results.of("review", group, results.sizes()[-1]) or [{}])[0].items()
            if isinstance(value, dict)
        ]
        for bound in bounds:
            row = [group, figure(float(bound), 2)]
            for size in results.sizes():
                found = results.of("review", group, size)
                row += [f"{int(_total(found, bound, 'broken'))} of {int(_total(found, bound, 'checks'))}"]
                row += [_ratio(_total(found, bound, "right"), _total(found, bound, "accepted"))]
                row += [_ratio(_total(found, bound, "accepted"), _total(found, bound, "documents"))]
            rows.append(row)
    return tables.markdown(
        _by_size(results, ["corpora", "`review_below`"], ["broken", "right", "without review"]), rows
    )


def unseen(results: Results) -> str:
    """Return a table of how certain label sets are for documents of labels without a training example."""
    rows = []
    for corpus in [*results.corpora("unseen"), *results.groups()]:
        row = [corpus if corpus in results.groups() else results.title(corpus)]
        for size in results.sizes():
            found = results.of("unseen", corpus, size)
            documents = _total(found, "documents")
            row += [_ratio(_total(found, name), documents) for name in ("certain", "routed", "labelled")]
        rows.append(row)
    return tables.markdown(
        _by_size(results, ["corpus"], ["set p ≥ .9", "of these with a label", "with a label"]), rows
    )
