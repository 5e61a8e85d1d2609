"""Shared code of the MP-Boost parts: trainings by corpus, terms and learner, measured after several rounds.

The trainings use the library, so that a training of 10,000 rounds is measured after each of the paper's numbers
of rounds, and times are CPU times without a service.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.library import Problem, text_problem
from models.base import Step
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.hypothesis import Hypothesis
from models.boosting.mp_boost import MPBoost
from models.measures.evaluation import evaluate


@dataclass(frozen=True)
class Corpus:
    """A corpus with its analyzer and sets of terms; ``per_label`` keeps about a tenth of the terms."""

    title: str
    content: Callable[[], bytes]
    analyzer: Json
    per_label: int


LEARNERS = {"adaboost_mh": AdaBoostMH, "mp_boost": MPBoost}
ALGORITHMS = tuple(LEARNERS)

CORPORA = {
    "reuters": Corpus(
        "Reuters-21578",
        corpora.reuters,
        {"lowercase": True, "drop_numbers": True, "stop_words": "english", "stemmer": "porter"},
        per_label=48,
    ),
    "rcv1": Corpus("RCV1 part", corpora.rcv1, {}, per_label=1),
}

KEYS = [(corpus, terms) for corpus in CORPORA for terms in ("full", "reduced")]
"""Corpus and set of terms of each group of trainings."""

ROUNDS = (5, 10, 20, 50, 100, 200, 500, 1_000, 10_000)
QUICK_ROUNDS = ROUNDS[:4]
SHORT_ROUNDS = ROUNDS[:8]


def features(corpus: str, terms: str) -> Json:
    """Return features for the presence of terms, as in the paper."""
    selection: Json = {"kind": "none"}
    if terms == "reduced":
        per_label = CORPORA[corpus].per_label
        selection = {"kind": "information_gain", "policy": "round_robin", "per_label": per_label}
    return {
        "kind": "text",
        "weighting": "binary",
        "analyzer": CORPORA[corpus].analyzer,
        "selection": selection,
    }


def column(corpus: str, terms: str) -> str:
    """Return the name of a corpus and its features in tables."""
    n = CORPORA[corpus].per_label
    few = f"{n} term{'s' if n > 1 else ''} per label"
    return f"{CORPORA[corpus].title}, {'all terms' if terms == 'full' else few}"


def dataset(bench: Bench, corpus: str) -> str:
    """Upload the corpus and return the id of the data set."""
    return bench.dataset(CORPORA[corpus].title, CORPORA[corpus].content)


def name_of(corpus: str, terms: str, algorithm: str) -> str:
    """Return the name of the result of a training."""
    return f"{corpus}_{terms}_{algorithm}"


def measurements(
    chosen: Callable[[Json], Json],
) -> dict[str, Callable[[Bench], Json]]:
    """Return functions that measure each training; ``chosen`` selects from the result of ``measured``."""
    return {
        name_of(corpus, terms, algorithm): partial(_measured, chosen, corpus, terms, algorithm)
        for corpus, terms in KEYS
        for algorithm in ALGORITHMS
    }


def _measured(chosen: Callable[[Json], Json], corpus: str, terms: str, algorithm: str, bench: Bench) -> Json:
    rounds = QUICK_ROUNDS if bench.quick else ROUNDS if bench.long else SHORT_ROUNDS
    return chosen(measured(corpus, terms, algorithm, rounds))


@lru_cache(maxsize=2)
def problem_of(corpus: str, terms: str) -> Problem:
    """Return the matrices of a corpus with a set of terms."""
    rows = [json.loads(line) for line in CORPORA[corpus].content().splitlines()]
    training, test = ([row for row in rows if row["split"] == part] for part in ("train", "test"))
    return text_problem(training, test, features(corpus, terms))


@lru_cache(maxsize=16)
def measured(corpus: str, terms: str, algorithm: str, rounds: tuple[int, ...]) -> Json:
    """Train once, and measure the model that the training has after each number of rounds.

    Returns:
        By name, a list with a value for each number of rounds: ``rounds``, ``f1_micro`` and ``f1_macro`` on the
        test part, ``pivots`` (mean over labels), ``pivots_of_test_labels`` (mean over the labels that also occur
        in the test part), ``training_seconds`` and ``test_seconds`` (CPU time with one thread); and the numbers
        of ``terms``, ``features``, ``labels`` and ``test_labels``.
    """
    problem = problem_of(corpus, terms)
    tested = problem.Y_test.sum(axis=0) > 0
    names = ("f1_micro", "f1_macro", "pivots", "pivots_of_test_labels", "training_seconds", "test_seconds")
    found: Json = {"rounds": [], **{name: [] for name in names}}
    spent = 0.0  # CPU time of measuring, which is not part of the training
    start = time.process_time()

    def measure(hypothesis: Hypothesis) -> dict[str, float]:
        begun = time.process_time()
        scores = hypothesis.scores(problem.X_test)
        seconds = time.process_time() - begun
        measures = evaluate(problem.Y_test, csr_array(scores > 0), scores, problem.labels).measures
        distinct = hypothesis.distinct_pivots()
        return {
            "f1_micro": measures["f1_micro"],
            "f1_macro": measures["f1_macro"],
            "pivots": float(distinct.mean()),
            "pivots_of_test_labels": float(distinct[tested].mean()),
            "test_seconds": seconds,
        }

    def note(step: Step) -> None:
        nonlocal spent
        if step.completed in rounds:
            begun = time.process_time()
            found["rounds"].append(step.completed)
            found["training_seconds"].append(begun - start - spent)
            assert step.scores is not None
            hypotheses = step.scores.args[0]  # type: ignore[attr-defined]
            shape = (problem.X.shape[1], problem.Y.shape[1])
            for name, value in measure(Hypothesis.compressed(shape, hypotheses, by_presence=True)).items():
                found[name].append(value)
            spent += time.process_time() - begun

    with threadpool_limits(1):
        learner = LEARNERS[algorithm](rounds=rounds[-1]).fit(problem.X, problem.Y, monitor=note)
    return {
        **found,
        "rounds_taken": int(learner.summary_.facts["rounds"]),
        "terms": problem.n_terms,
        "features": int(problem.X.shape[1]),
        "labels": len(problem.labels),
        "test_labels": int(tested.sum()),
    }
