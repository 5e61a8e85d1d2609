"""AdaBoost.MH and MP-Boost against their formulas, written as loops, and against the theorems' bounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, fsum, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparse_cases import features, frozen, noncanonical, problem_of

from models.base import Context, State, Step
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.booster import Booster
from models.boosting.mp_boost import MPBoost

Rows = list[list[float]]
Candidate = tuple[int, float]

TIE = 1e-12
modest = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Prediction:
    """The part of a weak hypothesis that concerns one label: the pivot and the two predictions."""

    pivot: Candidate
    absent: float
    present: float


@dataclass
class Literal:
    """Figure 1 and algorithms 1 and 2 of the paper, statement by statement."""

    X: Rows
    Y: list[list[int]]
    variant: str
    stump: str
    smoothing: float
    together: bool
    allowed: list[list[bool]] | None = None

    def __post_init__(self) -> None:
        self.g, self.k = len(self.X), len(self.Y[0])
        share = 1 / (self.g * self.k) if self.together else 1 / self.g
        self.D = [[share] * self.k for _ in range(self.g)]
        self.rounds: list[dict[int, Prediction]] = []
        self.normalisers: list[dict[int, float]] = []
        self.learning = set(range(self.k))

    def candidates(self) -> list[Candidate]:
        found: list[Candidate] = []
        for f in range(len(self.X[0])):
            column = sorted({row[f] for row in self.X})
            if self.stump == "presence":
                found += [(f, 0.0)] if any(column) else []
            else:
                found += [(f, (a + b) / 2) for a, b in pairwise(column)]
        return found

    def side(self, candidate: Candidate, row: list[float]) -> int:
        f, threshold = candidate
        return int(row[f] != 0 if self.stump == "presence" else row[f] > threshold)

    def weight(self, candidate: Candidate, label: int, side: int, relevant: int) -> float:
        """W of equation 5."""
        return fsum(
            self.D[i][label]
            for i in range(self.g)
            if self.side(candidate, self.X[i]) == side and self.Y[i][label] == relevant
        )

    def discrete_loss(self, candidate: Candidate, labels: list[int]) -> float:
        """1 − r = Σ (W₊ + W₋ − |W₊ − W₋|) of the discrete variant."""
        W = [
            (self.weight(candidate, j, x, 1), self.weight(candidate, j, x, 0)) for j in labels for x in (0, 1)
        ]
        return fsum(2 * min(plus, minus) for plus, minus in W)

    def Z(self, candidate: Candidate, labels: list[int]) -> float:  # noqa: N802
        if self.variant == "discrete":
            loss = self.discrete_loss(candidate, labels)
            return sqrt(loss * (2 - loss))
        terms = []
        for j in labels:
            for x in (0, 1):
                plus, minus = self.weight(candidate, j, x, 1), self.weight(candidate, j, x, 0)
                abstains = self.variant == "real_abstaining" and x == 0
                terms.append(plus + minus if abstains else 2 * sqrt(plus * minus))
        return fsum(terms)

    def predictions(self, candidate: Candidate, label: int, labels: list[int]) -> list[float]:
        e = self.smoothing
        predicted = []
        for x in (0, 1):
            plus, minus = self.weight(candidate, label, x, 1), self.weight(candidate, label, x, 0)
            if self.variant == "discrete":
                loss = self.discrete_loss(candidate, labels)
                sign = 0 if abs(plus - minus) <= TIE * (plus + minus) else (1 if plus > minus else -1)
                predicted.append(sign * 0.5 * log((2 - loss + e) / (loss + e)))
            elif self.variant == "real_abstaining" and x == 0:
                predicted.append(0.0)
            else:
                predicted.append(0.5 * log((plus + e) / (minus + e)))
        return predicted

    def round(self) -> bool:
        """Takes one round; returns False if no search reduces its Z."""
        searches = [sorted(self.learning)] if self.together else [[j] for j in sorted(self.learning)]
        taken: dict[int, Prediction] = {}
        for labels in searches:
            candidates = [
                c for c in self.candidates() if self.allowed is None or self.allowed[c[0]][labels[0]]
            ]
            Z = [self.Z(c, labels) for c in candidates]
            if not candidates or min(Z) >= 1 - TIE:
                self.learning -= set(labels)
                continue
            pivot = next(c for c, z in zip(candidates, Z, strict=True) if z <= min(Z) + TIE)
            for j in labels:
                taken[j] = Prediction(pivot, *self.predictions(pivot, j, labels))
        if not taken:
            return False
        for j, prediction in taken.items():
            for i, row in enumerate(self.X):
                predicted = prediction.present if self.side(prediction.pivot, row) else prediction.absent
                self.D[i][j] *= exp(-(1 if self.Y[i][j] else -1) * predicted)
        normalisers = {}
        for labels in searches:
            Z_true = fsum(self.D[i][j] for i in range(self.g) for j in labels)
            for j in labels:
                normalisers[j] = Z_true
                for i in range(self.g):
                    self.D[i][j] /= Z_true
        self.rounds.append(taken)
        self.normalisers.append({j: normalisers[j] for j in taken})
        return True

    def score(self, row: list[float], label: int) -> float:
        predictions = [one[label] for one in self.rounds if label in one]
        return fsum(a.present if self.side(a.pivot, row) else a.absent for a in predictions)

    def hamming_loss(self) -> float:
        wrong = sum(
            (self.score(self.X[i], j) > 0) != bool(self.Y[i][j]) for i in range(self.g) for j in range(self.k)
        )
        return wrong / (self.g * self.k)

    def bound(self) -> float:
        """Π Z* if the labels share their pivots, otherwise (1/m) Σ Π Z*."""
        products = [1.0] * self.k
        for normalisers in self.normalisers:
            for j, z in normalisers.items():
                products[j] *= z
        return sum(products) / self.k


@st.composite
def problems(draw: st.DrawFn) -> tuple[Rows, list[list[int]]]:
    """Small problems: rare and equal columns, empty and repeated rows, ties, labels never or always on."""
    r, k = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    values: list[float] = draw(
        st.sampled_from([[0, 1], [0, 0, 0, 1], [0, 1, 2], [-2, -1, 0, 0.5, 3], [1, 2]])
    )
    row = st.lists(st.sampled_from(values), min_size=r, max_size=r)
    some = draw(
        st.lists(row, min_size=1, max_size=7)
        | st.integers(1, 7).flatmap(lambda n: features(n, r)).map(lambda X: X.tolist())
    )
    rows = [*some, *some[: draw(st.integers(0, 2))]]
    if draw(st.booleans()):
        rows.append([0] * r)
    chances = draw(st.sampled_from([[0, 1], [0, 0, 0, 1], [0], [1]]))
    Y = [draw(st.lists(st.sampled_from([0, 1]), min_size=k, max_size=k)) for _ in rows]
    edge = draw(st.integers(0, k - 1))
    for labels in Y:
        labels[edge] = draw(st.sampled_from(chances))
    return [[float(v) for v in row] for row in rows], Y


def pivots_by_round(
    learner: Booster, X: Any, Y: Any, context: Context | None = None
) -> list[dict[int, Prediction]]:
    """The weak hypothesis of each round, from the differences between longer and longer trainings."""
    steps: list[tuple[int, State]] = []

    def note(step: Step, /) -> None:
        steps.append((step.completed, step.snapshot()))

    learner.fit_problem(problem_of(X, Y, context), monitor=note)
    rounds: list[dict[int, Prediction]] = []
    before: dict[tuple[int, Candidate], tuple[float, float]] = {}
    for completed, snapshot in steps:
        so_far = type(learner)(**{**learner.get_params(), "rounds": completed})
        so_far.fit_problem(problem_of(X, Y, context), resume=snapshot)
        h = so_far.hypothesis_
        now = {
            (j, (f, t)): (a, p)
            for j, f, t, a, p in zip(
                h.labels.tolist(),
                h.features.tolist(),
                h.thresholds.tolist(),
                h.absent.tolist(),
                h.present.tolist(),
                strict=True,
            )
        }
        changes = {}
        for (j, pivot), (absent, present) in now.items():
            old = before.get((j, pivot), (0.0, 0.0))
            if (absent, present) != before.get((j, pivot)):
                changes[j] = Prediction(pivot, absent - old[0], present - old[1])
        rounds.append(changes)
        before = now
    return rounds


def check_against_literal(learner: Booster, literal: Literal, context: Context | None = None) -> None:
    for _ in range(learner.rounds):
        if not literal.round():
            break
    X, Y = frozen(noncanonical(np.array(literal.X), seed=literal.g)), np.array(literal.Y)
    rounds = pivots_by_round(learner, X, Y, context)
    assert len(rounds) == len(literal.rounds)
    for actual, expected in zip(rounds, literal.rounds, strict=True):
        for j, prediction in expected.items():
            if j not in actual:  # predictions of 0 do not change the sums
                assert abs(prediction.absent) < 1e-9
                assert abs(prediction.present) < 1e-9
                continue
            assert actual[j].pivot == pytest.approx(prediction.pivot)
            assert actual[j].absent == pytest.approx(prediction.absent, abs=1e-9)
            assert actual[j].present == pytest.approx(prediction.present, abs=1e-9)
    scores = np.array([[literal.score(row, j) for j in range(literal.k)] for row in literal.X])
    np.testing.assert_allclose(learner.decision_function(X).reshape(scores.shape), scores, rtol=0, atol=1e-9)


VARIANTS = ["real", "real_abstaining", "discrete"]


@pytest.mark.parametrize("stump", ["presence", "threshold"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
@given(problem=problems(), rounds=st.integers(1, 6), smoothing=st.sampled_from([None, 0.1]))
@modest
def test_training_equals_the_literal_version(
    learner: type[Booster],
    variant: Any,
    stump: str,
    problem: tuple[Rows, list[list[int]]],
    rounds: int,
    smoothing: float | None,
) -> None:
    X, Y = problem
    literal = Literal(
        X, Y, variant, stump, smoothing or 1 / (len(Y) * len(Y[0])), together=learner is AdaBoostMH
    )
    check_against_literal(learner(rounds=rounds, variant=variant, smoothing=smoothing, stump=stump), literal)


@pytest.mark.parametrize("stump", ["presence", "threshold"])
@given(problem=problems(), data=st.data())
@modest
def test_local_selection_restricts_each_label_to_its_features(
    stump: str, problem: tuple[Rows, list[list[int]]], data: st.DataObject
) -> None:
    X, Y = problem
    r, k = len(X[0]), len(Y[0])
    allowed = [data.draw(st.lists(st.booleans(), min_size=k, max_size=k)) for _ in range(r)]
    literal = Literal(X, Y, "real", stump, 1 / (len(Y) * k), together=False, allowed=allowed)
    context = Context(candidates=frozen(noncanonical(np.array(allowed), seed=len(Y), duplicates=False)))
    check_against_literal(MPBoost(rounds=4, stump=stump), literal, context)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
@given(problem=problems())
@modest
def test_hamming_loss_is_below_the_bound_in_every_round(
    learner: type[Booster], variant: Any, problem: tuple[Rows, list[list[int]]]
) -> None:
    X, Y = problem
    g, k = len(Y), len(Y[0])
    literal = Literal(X, Y, variant, "presence", 1 / (g * k), together=learner is AdaBoostMH)
    steps: list[Step] = []
    learner(rounds=5, variant=variant, stump="presence").fit_problem(
        problem_of(np.array(X), np.array(Y)), monitor=steps.append
    )
    for step in steps:
        so_far = learner(rounds=step.completed, variant=variant, stump="presence")
        so_far.fit(np.array(X), np.array(Y))
        scores = so_far.decision_function(np.array(X)).reshape(g, k)
        loss = float(((scores > 0) != (np.array(Y) > 0)).mean())
        assert loss <= step.measures["loss_bound"] * (1 + 1e-9)
        assert literal.round()
        assert step.measures["loss_bound"] == pytest.approx(literal.bound(), rel=1e-9)
