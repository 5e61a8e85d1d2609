"""Shared code of the MP-Boost parts: trainings by corpus, features and rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json


@dataclass(frozen=True)
class Corpus:
    """A corpus with its analyzer and sets of terms."""

    title: str
    content: Callable[[], bytes]
    analyzer: Json
    sets: tuple[str, ...]


ALGORITHMS = ("adaboost_mh", "mp_boost")

CORPORA = {
    "reuters": Corpus(
        "Reuters-21578",
        corpora.reuters,
        {"lowercase": True, "drop_numbers": True, "stop_words": "english", "stemmer": "porter"},
        ("full", "reduced"),
    ),
    "rcv1": Corpus("RCV1 part", corpora.rcv1, {}, ("full",)),
}

SETS: dict[str, tuple[str, Json]] = {
    "full": ("all terms", {"kind": "none"}),
    "reduced": ("48 terms per label", {"kind": "information_gain", "policy": "round_robin", "per_label": 48}),
}

KEYS = [(corpus, terms) for corpus in CORPORA for terms in CORPORA[corpus].sets]
"""Corpus and set of terms of each group of trainings."""

ROUNDS = (5, 10, 20, 50, 100, 200, 500, 1000)

Trainings = dict[tuple[str, str, str, int], Json]


def rounds(bench: Bench) -> tuple[int, ...]:
    """Return the paper's numbers of rounds. The largest is included only with ``--long``."""
    if bench.quick:
        return ROUNDS[:4]
    return (*ROUNDS, 10_000) if bench.long else ROUNDS


def dataset(bench: Bench, corpus: str) -> str:
    """Upload the corpus and return the id of the data set."""
    return bench.dataset(CORPORA[corpus].title, CORPORA[corpus].content)


def features(corpus: str, terms: str) -> Json:
    """Return features for the presence of terms, as in the paper."""
    return {
        "kind": "text",
        "weighting": "binary",
        "analyzer": CORPORA[corpus].analyzer,
        "selection": SETS[terms][1],
    }


def trainings(bench: Bench) -> Trainings:
    """Train both learners, and return the versions by corpus, features, algorithm and rounds."""
    keys = [(*key, algorithm, n) for key in KEYS for n in rounds(bench) for algorithm in ALGORITHMS]
    jobs = bench.train(
        [
            {
                "dataset_id": dataset(bench, corpus),
                "features": features(corpus, terms),
                "learner": {"algorithm": algorithm, "rounds": n},
            }
            for corpus, terms, algorithm, n in keys
        ]
    )
    return {key: bench.version(job) for key, job in zip(keys, jobs, strict=True)}


def column(corpus: str, terms: str) -> str:
    """Return the name of a corpus and its features in tables."""
    return f"{CORPORA[corpus].title}, {SETS[terms][0]}"
