"""The tables and the figure of the MP-Boost paper: AdaBoost.MH and MP-Boost after several rounds.

The tables use the library, so that a training of 10,000 rounds is measured after each of the paper's numbers
of rounds, and times are CPU times without a service.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks.corpora import Json, Problem, jsonl, rcv1, records, text_problem
from benchmarks.papers.bench import Bench, curves
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.frame import Part, Tables, table, with_paper
from benchmarks.plain_rounds import RandomTies
from models.base import Step
from models.base.training import Problem as LearningProblem
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.hypothesis import Hypothesis
from models.boosting.mp_boost import MPBoost
from models.measures.evaluation import evaluate


@dataclass(frozen=True)
class Corpus:
    """A corpus with its analyzer and sets of terms; ``per_label`` keeps about a tenth of the terms."""

    title: str
    rows: Callable[[], list[Json]]
    analyzer: Json
    per_label: int


LEARNERS = {"adaboost_mh": AdaBoostMH, "mp_boost": MPBoost}
ALGORITHMS = tuple(LEARNERS)

CORPORA = {
    "reuters": Corpus(
        "Reuters-21578",
        lambda: list(records("reuters21578")),
        {"lowercase": True, "drop_numbers": True, "stop_words": "english", "stemmer": "porter"},
        per_label=48,
    ),
    "rcv1": Corpus("RCV1 part", rcv1, {}, per_label=1),
}

KEYS = [(corpus, terms) for corpus in CORPORA for terms in ("full", "reduced")]
"""Corpus and set of terms of each group of trainings."""

COLUMNS = [(*key, algorithm) for key in KEYS for algorithm in ALGORITHMS]

ROUNDS = (5, 10, 20, 50, 100, 200, 500, 1_000, 10_000)
TIES_ROUNDS = ROUNDS[:5]
SEEDS = (0, 1, 2)

MEASURES = {
    "f1_micro": ("f1_micro", "{:.3f}"),
    "f1_macro_one": ("f1_macro_one", "{:.3f}"),
    "training_seconds": ("training s", "{:.1f}"),
    "test_seconds": ("test s", "{:.3f}"),
}
"""Head and format of the columns of table 2 by the name of the measure."""

PAPER_PIVOTS = {
    ("reuters", "full", "adaboost_mh"): (5, 10, 20, 50, 98, 192, 433, 766),
    ("reuters", "full", "mp_boost"): (4.5, 8.4, 15.0, 30.6, 50.1, 79.8, 136.6, 191.7),
    ("reuters", "reduced", "adaboost_mh"): (5, 10, 20, 50, 98, 192, 433, 703),
    ("reuters", "reduced", "mp_boost"): (4.5, 8.4, 15.1, 31.3, 51.1, 81.4, 134.7, 181.5),
    ("rcv1", "full", "adaboost_mh"): (5, 10, 20, 50, 95, 191, 479, 950),
    ("rcv1", "full", "mp_boost"): (4.9, 9.7, 19.1, 46.2, 88.6, 163.7, 338.9, 533.7),
    ("rcv1", "reduced", "adaboost_mh"): (5, 10, 20, 50, 95, 191, 483, 946),
    ("rcv1", "reduced", "mp_boost"): (4.9, 9.7, 19.2, 46.6, 89.0, 165.4, 344.0, 538.2),
}
"""Table 1, Δ after 5, 10, 20, 50, 100, 200, 500 and 1,000 rounds; for MP-Boost the mean over labels."""

PAPER: dict[tuple[str, str, str], dict[str, tuple[float, ...]]] = {
    ("reuters", "full", "adaboost_mh"): {
        "f1_micro": (0.416, 0.483, 0.611, 0.723, 0.776, 0.798, 0.811, 0.811, 0.81),
        "f1_macro_one": (0.235, 0.271, 0.325, 0.392, 0.454, 0.461, 0.485, 0.482, 0.497),
        "training_seconds": (12.1, 24.2, 48.4, 96.8, 193.6, 387.1, 774.2, 1548.4, 15483.9),
        "test_seconds": (0.1, 0.1, 0.1, 0.2, 0.4, 0.8, 2, 3.7, 10),
    },
    ("reuters", "full", "mp_boost"): {
        "f1_micro": (0.704, 0.759, 0.795, 0.822, 0.837, 0.843, 0.848, 0.846, 0.844),
        "f1_macro_one": (0.529, 0.556, 0.586, 0.589, 0.608, 0.6, 0.604, 0.603, 0.602),
        "training_seconds": (13.2, 26.4, 52.8, 105.7, 211.3, 422.7, 845.3, 1690.6, 16906.2),
        "test_seconds": (0.2, 0.3, 0.5, 1.1, 1.7, 3.1, 6.3, 9.2, 20.6),
    },
    ("reuters", "reduced", "adaboost_mh"): {
        "f1_micro": (0.416, 0.483, 0.611, 0.723, 0.773, 0.79, 0.811, 0.806),
        "f1_macro_one": (0.235, 0.271, 0.325, 0.392, 0.457, 0.474, 0.485, 0.484),
        "training_seconds": (9.3, 18.5, 37.1, 74.1, 148.3, 296.5, 593, 1186),
        "test_seconds": (0.1, 0.1, 0.1, 0.2, 0.4, 0.7, 1.9, 3.2),
    },
    ("reuters", "reduced", "mp_boost"): {
        "f1_micro": (0.704, 0.76, 0.794, 0.826, 0.839, 0.845, 0.846, 0.839),
        "f1_macro_one": (0.515, 0.56, 0.567, 0.596, 0.614, 0.623, 0.617, 0.619),
        "training_seconds": (10.2, 20.4, 40.7, 81.4, 162.9, 325.8, 651.5, 1303),
        "test_seconds": (0.2, 0.3, 0.5, 1, 1.7, 2.9, 5.8, 8.2),
    },
    ("rcv1", "full", "adaboost_mh"): {
        "f1_micro": (0.361, 0.406, 0.479, 0.587, 0.65, 0.701, 0.735, 0.745, 0.754),
        "f1_macro_one": (0.037, 0.07, 0.131, 0.239, 0.333, 0.396, 0.435, 0.442, 0.459),
        "training_seconds": (34.5, 69.1, 138.1, 276.2, 552.4, 1104.8, 2209.7, 4419.3, 44192.3),
        "test_seconds": (21.8, 25.5, 32.7, 54.6, 87.5, 161.5, 516.1, 1014.4, 2831.4),
    },
    ("rcv1", "full", "mp_boost"): {
        "f1_micro": (0.519, 0.588, 0.646, 0.7, 0.726, 0.745, 0.761, 0.768, 0.765),
        "f1_macro_one": (0.306, 0.367, 0.418, 0.455, 0.474, 0.487, 0.495, 0.496, 0.485),
        "training_seconds": (37.3, 74.7, 149.4, 298.7, 597.5, 1194.9, 2389.9, 4779.7, 47796.2),
        "test_seconds": (54, 91.8, 148.5, 286.2, 472.5, 837, 1698.3, 2478.6, 5772.4),
    },
    ("rcv1", "reduced", "adaboost_mh"): {
        "f1_micro": (0.361, 0.406, 0.479, 0.587, 0.65, 0.701, 0.734, 0.747),
        "f1_macro_one": (0.037, 0.07, 0.131, 0.239, 0.333, 0.396, 0.431, 0.445),
        "training_seconds": (28.2, 56.4, 112.7, 225.4, 450.9, 901.8, 1803.5, 3607),
        "test_seconds": (21.1, 24.4, 31.2, 54.6, 84.6, 154.4, 495.9, 974.7),
    },
    ("rcv1", "reduced", "mp_boost"): {
        "f1_micro": (0.519, 0.587, 0.646, 0.701, 0.727, 0.744, 0.76, 0.764),
        "f1_macro_one": (0.307, 0.365, 0.416, 0.458, 0.478, 0.493, 0.503, 0.505),
        "training_seconds": (30.5, 61, 122.1, 244.2, 488.4, 976.8, 1953.5, 3907),
        "test_seconds": (49.6, 78, 125.6, 247.4, 442.3, 896.9, 2133.1, 3500.6),
    },
}
"""Table 2 after 5, 10, 20, 50, 100, 200, 500, 1,000 and, with all terms, 10,000 rounds."""


def _features(corpus: str, terms: str) -> Json:
    """Return features for the presence of terms, as in the paper."""
    about, selection = CORPORA[corpus], {"kind": "none"}
    if terms == "reduced":
        selection = {"kind": "information_gain", "policy": "round_robin", "per_label": about.per_label}  # type: ignore[dict-item]
    return {"kind": "text", "weighting": "binary", "analyzer": about.analyzer, "selection": selection}


def _column(corpus: str, terms: str) -> str:
    """Return the name of a corpus and its features in tables."""
    n = CORPORA[corpus].per_label
    few = f"{n} term{'s' if n > 1 else ''} per label"
    return f"{CORPORA[corpus].title}, {'all terms' if terms == 'full' else few}"


@lru_cache(maxsize=2)
def _problem(corpus: str, terms: str) -> Problem:
    """Return the matrices of a corpus with a set of terms."""
    rows = CORPORA[corpus].rows()
    training, test = ([row for row in rows if row["split"] == part] for part in ("train", "test"))
    return text_problem(training, test, _features(corpus, terms))


@lru_cache(maxsize=16)
def _measured(corpus: str, terms: str, algorithm: str, rounds: tuple[int, ...]) -> Json:
    """Train once, and measure the model that the training has after each number of rounds.

    Returns:
        By name, a list with a value for each number of rounds: ``rounds``, ``f1_micro`` and ``f1_macro_one``
        on the test part, ``pivots`` (mean over labels), ``pivots_of_test_labels`` (mean over the labels that
        also occur in the test part), ``training_seconds`` and ``test_seconds`` (CPU time with one thread);
        and the numbers of ``terms``, ``features``, ``labels`` and ``test_labels``.
    """
    problem = _problem(corpus, terms)
    tested = problem.Y_test.sum(axis=0) > 0
    points: list[dict[str, float]] = []
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
            "f1_macro_one": measures["f1_macro_one"],
            "pivots": float(distinct.mean()),
            "pivots_of_test_labels": float(distinct[tested].mean()),
            "test_seconds": seconds,
        }

    def note(step: Step) -> None:
        nonlocal spent
        if step.completed in rounds:
            begun = time.process_time()
            assert step.scores is not None
            hypotheses = step.scores.args[0]  # type: ignore[attr-defined]
            shape = (problem.X.shape[1], problem.Y.shape[1])
            result = measure(Hypothesis.compressed(shape, hypotheses, by_presence=True))
            points.append({"rounds": step.completed, "training_seconds": begun - start - spent, **result})
            spent += time.process_time() - begun

    with threadpool_limits(1):
        LEARNERS[algorithm](rounds=rounds[-1]).fit_problem(
            LearningProblem(problem.X, problem.Y), monitor=note
        )
    return {
        **{name: [point[name] for point in points] for name in points[0]},
        "terms": problem.n_terms,
        "features": int(problem.X.shape[1]),
        "labels": len(problem.labels),
        "test_labels": int(tested.sum()),
    }


def _random_ties(bench: Bench) -> Json:
    """Measure MP-Boost on all terms of Reuters-21578, with ties that go to a random term in every round.

    Returns:
        ``rounds``, and by name a list with a list for each seed: ``pivots``, ``pivots_of_test_labels``,
        ``f1_micro`` and ``f1_macro_one``.
    """
    problem = _problem("reuters", "full")
    rounds = TIES_ROUNDS[:2] if bench.quick else TIES_ROUNDS
    with threadpool_limits(1):
        runs = [_run(problem, rounds, seed) for seed in (SEEDS[:1] if bench.quick else SEEDS)]
    names = ("pivots", "pivots_of_test_labels", "f1_micro", "f1_macro_one")
    return {
        "rounds": list(rounds),
        **{name: [[point[place] for point in run] for run in runs] for place, name in enumerate(names)},
    }


def _run(problem: Problem, rounds: tuple[int, ...], seed: int) -> list[list[float]]:
    """Return both numbers of pivots and both F1 after each of the numbers of rounds."""
    state = RandomTies(problem.X, problem.Y, np.random.default_rng(seed))
    tested = np.asarray(problem.Y_test.sum(axis=0)).ravel() > 0
    test_columns = problem.X_test.T.tocsr()
    scores = np.zeros(problem.Y_test.shape)
    used: list[set[int]] = [set() for _ in problem.labels]
    points = []
    for number in range(1, rounds[-1] + 1):
        pivots = state.choose_pivots()
        absent, present = state.constants(pivots)
        scores += np.where(test_columns[pivots].toarray().T != 0, present, absent)
        state.boost(pivots)
        for label, pivot in enumerate(pivots.tolist()):
            used[label].add(pivot)
        if number in rounds:
            measures = evaluate(problem.Y_test, csr_array(scores > 0), scores, problem.labels).measures
            sizes = np.array([len(some) for some in used])
            points.append(
                [
                    float(sizes.mean()),
                    float(sizes[tested].mean()),
                    measures["f1_micro"],
                    measures["f1_macro_one"],
                ]
            )
    return points


def _results(names: Sequence[str]) -> dict[str, Callable[[Bench], Json]]:
    """Return what measures each training, with only some of the figures, and the random ties."""

    def measure(corpus: str, terms: str, algorithm: str, bench: Bench) -> Json:
        result = _measured(corpus, terms, algorithm, ROUNDS[: 4 if bench.quick else 9 if bench.long else 8])
        return {name: result[name] for name in names}

    return {"_".join(key): partial(measure, *key) for key in COLUMNS} | {"random_ties": _random_ties}


def _table_1_tables(figures: Json) -> Tables:
    def cell(key: tuple[str, str, str], place: int, n: int) -> str:
        result = figures["_".join(key)]
        if n not in result["rounds"]:
            return "–"
        return with_paper(result["pivots"][result["rounds"].index(n)], PAPER_PIVOTS[key], place, "{:.1f}")

    rounds = figures["_".join(COLUMNS[0])]["rounds"]
    yield table(
        ["rounds", *(f"{_column(corpus, terms)}: `{algorithm}`" for corpus, terms, algorithm in COLUMNS)],
        [[f"{n:,}", *(cell(key, place, n) for key in COLUMNS)] for place, n in enumerate(rounds)],
    )
    result, ties = figures["reuters_full_mp_boost"], figures["random_ties"]
    counts = {"pivots": result["labels"], "pivots_of_test_labels": result["test_labels"]}
    head = [
        f"{how}, {n} labels" for how in ("ties to the first term", "random ties") for n in counts.values()
    ]
    rows = []
    for at, n in enumerate(ties["rounds"]):
        first = [f"{result[name][at]:.1f}" for name in counts]
        drawn = [_range([seed[at] for seed in ties[name]]) for name in counts]
        rows.append([f"{n:,}", *first, *drawn, f"{PAPER_PIVOTS['reuters', 'full', 'mp_boost'][at]:.1f}"])
    yield table(["rounds", *head, "paper"], rows)


def _range(values: Sequence[float]) -> str:
    """Return the smallest and the largest value, or one of them if they are shown alike."""
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _table_2_tables(figures: Json) -> Tables:
    for corpus, terms in KEYS:
        result = {algorithm: figures[f"{corpus}_{terms}_{algorithm}"] for algorithm in ALGORITHMS}
        columns = [(algorithm, measure) for algorithm in ALGORITHMS for measure in MEASURES]
        rounds = max((each["rounds"] for each in result.values()), key=len)
        rows = []
        for place, n in enumerate(rounds):
            cells = [
                with_paper(
                    result[algorithm][measure][place],
                    PAPER[corpus, terms, algorithm][measure],
                    place,
                    MEASURES[measure][1],
                )
                if place < len(result[algorithm]["rounds"])
                else "–"
                for algorithm, measure in columns
            ]
            rows.append([f"{n:,}", *cells])
        yield table(
            ["rounds", *(f"`{algorithm}` {MEASURES[measure][0]}" for algorithm, measure in columns)], rows
        )


def _figure_2(bench: Bench) -> Json:
    """Draw the curves of both learners on held-out documents with all terms, and count who is ahead."""
    names = {"f1_micro": "micro-averaged F1", "f1_macro_one": "macro-averaged F1"}
    rounds = ROUNDS[3 if bench.quick else 7]
    panels = []
    ahead: Json = {}
    for corpus, about in CORPORA.items():
        report = bench.experiment(
            bench.dataset(about.title, lambda about=about: jsonl(about.rows())),  # type: ignore[misc]
            [
                {
                    "features": _features(corpus, "full"),
                    "learner": {"algorithm": algorithm, "rounds": rounds},
                    "decision": {"kind": "sign"},
                }
                for algorithm in ALGORITHMS
            ],
            list(names),
        )
        result = curves(report)
        lines = [
            Line(
                f"{ALGORITHMS[place]}, {names[measure]}",
                line,
                place,
                "-" if measure == "f1_micro" else "--",
            )
            for (place, measure), line in result.items()
        ]
        panels.append(Panel(about.title, lines, "rounds", "F1 on the test part", logarithmic=True))
        for measure, name in names.items():
            one, other = result[0, measure], result[1, measure]
            common = set(one) & set(other)
            ahead[f"{about.title}, {name}"] = [sum(other[at] > one[at] for at in common), len(common)]
    bench.draw("mp-boost-figure-2", panels)
    return {"ahead": ahead}


PARTS = {
    "mp_boost_table_1": Part(
        _results(("rounds", "pivots", "pivots_of_test_labels", "labels", "test_labels")), _table_1_tables
    ),
    "mp_boost_table_2": Part(_results(("rounds", *MEASURES, "terms", "features", "labels")), _table_2_tables),
    "mp_boost_figure_2": Part({"curves": _figure_2}, lambda _: []),
}
