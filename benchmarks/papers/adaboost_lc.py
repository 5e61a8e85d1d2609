"""Shared by the figures of the AdaBoost.LC paper: the corpora and the trainings with each covering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json

COVERINGS: dict[str, Json] = {
    "ZO": {"kind": "zero_one"},
    "HM": {"kind": "hamming"},
    "TS": {"kind": "two_sets"},
    "WP": {"kind": "weighted_positive", "weight": 6},
    "WN": {"kind": "weighted_negative", "weight": 4},
}
"""The five coverings of the paper, in the order of its figures."""

RANKINGS = ("one_error", "coverage", "average_precision")

PAPER_DOCUMENTS_PER_TERM = 590_000 / 6_270
PAPER_BEST_ZERO_ONE = 0.567


@dataclass(frozen=True)
class Corpus:
    """A corpus, the analyzer for its text, and the number of terms that each label selects."""

    title: str
    name: str
    content: Callable[[], bytes]
    analyzer: Json
    per_label: int = 100


RCV1 = Corpus("RCV1 part", "RCV1 part", corpora.rcv1, {})
REUTERS = Corpus(
    "Reuters-21578",
    "Reuters-21578",
    corpora.reuters,
    {"lowercase": True, "drop_numbers": True, "stop_words": "english"},
)
THREE_TERMS = Corpus("RCV1 part, three terms per topic", "RCV1 part", corpora.rcv1, {}, per_label=3)
ONE_TERM = Corpus("RCV1 part, one term per topic", "RCV1 part", corpora.rcv1, {}, per_label=1)


def features(corpus: Corpus) -> Json:
    """Pivoted tf-idf of the terms with the highest Rocchio scores for each label (section 4)."""
    return {
        "kind": "text",
        "weighting": "pivoted",
        "analyzer": corpus.analyzer,
        "selection": {"kind": "rocchio", "per_label": corpus.per_label},
    }


def experiment(bench: Bench, corpus: Corpus, rounds: int) -> Json:
    """The report of five trainings, one with each covering, each measured by all five covering errors."""
    return bench.experiment(
        {
            "name": f"AdaBoost.LC on {corpus.title}, {rounds} rounds",
            "dataset_id": bench.dataset(corpus.name, corpus.content),
            "split": {"kind": "given"},
            "configurations": [
                {
                    "name": name,
                    "features": features(corpus),
                    "learner": {"algorithm": "adaboost_lc", "rounds": rounds, "covering": covering},
                    "decision": {"kind": "sign"},
                }
                for name, covering in COVERINGS.items()
            ],
            "measures": list(RANKINGS),
            "coverings": COVERINGS,
        }
    )


def error_measure(name: str) -> str:
    """The name of a covering's error as a measure."""
    return f"covering_error.{name}"


def by_round(report: Json, part: str) -> dict[tuple[str, str], dict[int, float]]:
    """Covering errors by (covering of the training, covering of the error) and round.

    Args:
        report: from ``experiment``.
        part: ``within_folds`` for the training part, ``out_of_folds`` for the test part.
    """
    names = list(COVERINGS)
    return {
        (names[curve["configuration"]], name): dict(zip(curve["steps"], curve[part], strict=True))
        for curve in report["curves"]
        for name in names
        if curve["measure"] == error_measure(name)
    }


def lowest_on_diagonal(errors: dict[tuple[str, str], dict[int, float]], at: int) -> list[str]:
    """The coverings whose own training has the lowest error after ``at`` rounds."""
    return [
        name
        for name in COVERINGS
        if errors[name, name][at] <= min(errors[other, name][at] for other in COVERINGS)
    ]


def common_rounds(errors: dict[tuple[str, str], dict[int, float]]) -> list[int]:
    """The rounds at which all five trainings were measured."""
    return sorted(set.intersection(*(set(line) for line in errors.values())))


def count_of_five(names: list[str]) -> str:
    """How many of the five coverings these are, and which.

    >>> count_of_five(["ZO", "HM"]), count_of_five([])
    ('2 of 5 (ZO, HM)', '0 of 5')
    """
    return f"{len(names)} of {len(COVERINGS)}" + (f" ({', '.join(names)})" if names else "")
