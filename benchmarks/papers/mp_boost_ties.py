"""MP-Boost with ties that go to a random term, as a study: no learner has this option."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks.boosting_rounds import SimpleRounds
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.library import Problem
from benchmarks.papers.mp_boost import problem_of
from models.arrays import Floats, Ints, Labels, Matrix
from models.measures.evaluation import evaluate

ROUNDS = (5, 10, 20, 50, 100)
SEEDS = (0, 1, 2)
TIE = 1e-12


class RandomTies(SimpleRounds):
    """The simple round of MP-Boost, in which each label draws one of the terms with the smallest Z."""

    def __init__(self, X: Matrix, Y: Labels, smoothing: float, rng: np.random.Generator) -> None:
        super().__init__(X, Y, smoothing, together=False)
        self.D += 1 / Y.shape[0]
        self.rng = rng

    def choose_pivots(self) -> Ints:
        """Return a random one of each label's best terms."""
        super().choose_pivots()
        tied = self.Z.min(axis=0) + TIE >= self.Z
        terms, labels = tied.nonzero()
        keys = self.rng.random(len(terms))
        order = np.lexsort((keys, labels))
        first = np.unique(labels[order], return_index=True)[1]
        return np.asarray(terms[order[first]])

    def constants(self, pivots: Ints) -> tuple[Floats, Floats]:
        """Return the predictions of each label's pivot for documents without and with the term."""
        columns = np.arange(len(pivots))
        chosen = [side[pivots, columns] + self.smoothing for side in self.W]
        return 0.5 * np.log(chosen[0] / chosen[1]), 0.5 * np.log(chosen[2] / chosen[3])


def random_ties(bench: Bench) -> Json:
    """Measure MP-Boost on all terms of Reuters-21578, with ties that go to a random term in every round.

    Returns:
        ``rounds``, and by name a list with a list for each seed: ``pivots``, ``pivots_of_test_labels``,
        ``f1_micro`` and ``f1_macro``.
    """
    problem = problem_of("reuters", "full")
    rounds = ROUNDS[:2] if bench.quick else ROUNDS
    names = ("pivots", "pivots_of_test_labels", "f1_micro", "f1_macro")
    found: Json = {"rounds": list(rounds), **{name: [] for name in names}}
    with threadpool_limits(1):
        for seed in SEEDS[:1] if bench.quick else SEEDS:
            run = _run(problem, rounds, np.random.default_rng(seed))
            for name in names:
                found[name].append(run[name])
    return found


def _run(problem: Problem, rounds: tuple[int, ...], rng: np.random.Generator) -> dict[str, list[float]]:
    g, m = problem.Y.shape
    state = RandomTies(problem.X, problem.Y, 1 / (g * m), rng)
    tested = np.asarray(problem.Y_test.sum(axis=0)).ravel() > 0
    test_columns = problem.X_test.T.tocsr()
    scores = np.zeros((problem.X_test.shape[0], m))
    used: list[set[int]] = [set() for _ in range(m)]
    found: dict[str, list[float]] = {
        name: [] for name in ("pivots", "pivots_of_test_labels", "f1_micro", "f1_macro")
    }
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
            found["pivots"].append(float(sizes.mean()))
            found["pivots_of_test_labels"].append(float(sizes[tested].mean()))
            found["f1_micro"].append(measures["f1_micro"])
            found["f1_macro"].append(measures["f1_macro"])
    return found
