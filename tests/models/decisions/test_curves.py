"""Held-out curves: thresholds that follow from goals, compared with an exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.arrays import Bools, Floats
from models.base.validation import as_label_matrix
from models.decisions import HeldOut
from models.decisions.apply import NEVER
from models.decisions.curves import (
    MAX_POINTS,
    Goal,
    HeldOutCurves,
    LeastCost,
    TargetPrecision,
    TargetRecall,
)
from models.errors import ArtifactError
from models.measures.intervals import wilson

SHARES = st.floats(min_value=0.01, max_value=1.0)
GOALS = st.one_of(
    SHARES.map(TargetPrecision),
    SHARES.map(TargetRecall),
    st.builds(LeastCost, st.sampled_from([0.5, 1.0, 7.0]), st.sampled_from([0.25, 1.0, 10.0])),
)


def held_out(seed: int, n: int, *, unknown: bool) -> HeldOut:
    """Return scores of two labels that can be tuned, and of one that cannot."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 3)) < [0.5, 0.2, 0.1]
    relevant[0] = True
    scores = np.round(4 * (rng.normal(size=(n, 3)) + relevant)) / 4  # with ties
    unsure = (rng.random((n, 3)) < 0.2) & ~relevant
    return HeldOut(
        scores,
        as_label_matrix(relevant.astype(int)),
        as_label_matrix(unsure.astype(int)) if unknown else None,
        np.arange(n) % 3,
        np.array([True, True, False]),
    )


def counts(data: HeldOut, label: int, threshold: float) -> tuple[int, int, int]:
    """Return right, wrong and missed predictions of a label among the examples for which it is known."""
    known = data.known()
    scores: Floats = data.scores[:, label]
    relevant: Bools = data.relevant()[:, label]
    predicted = scores > threshold
    if known is not None:
        predicted &= known[:, label]
    tp = int((predicted & relevant).sum())
    return tp, int(predicted.sum()) - tp, int(relevant.sum()) - tp


def probabilities(data: HeldOut) -> Floats:
    return np.asarray(1 / (1 + np.exp(-4 * data.scores)))


def mean_probability(data: HeldOut, label: int, threshold: float) -> float:
    """Return the mean probability of what is predicted for examples for which the label is known."""
    above = data.scores[:, label] > threshold
    known = data.known()
    if known is not None:
        above &= known[:, label]
    return float(probabilities(data)[above, label].mean()) if above.any() else 0.0


def below_relevant_scores(data: HeldOut, label: int) -> list[float]:
    """Return the thresholds just below the score of an example with the label."""
    relevant, known = data.relevant()[:, label], data.known()
    scores = data.scores[:, label]
    counted = scores if known is None else scores[known[:, label]]
    return [float(max(counted[counted < score], default=score - 1)) for score in scores[relevant]]


def loss(goal: Goal, found: tuple[int, int, int], probability: float) -> float:
    """Return what a goal minimizes; infinity if the target is not reached."""
    tp, fp, missed = found
    match goal:
        case TargetPrecision(value):
            z = (probability - value) * np.sqrt((tp + fp) / max(value * (1 - value), 1e-300))
            return missed if tp and z >= 1.2815515655446004 else np.inf
        case TargetRecall(value):
            return fp if tp >= value * (tp + missed) - 1e-9 else np.inf
        case LeastCost(false_label, missed_label):
            return false_label * fp + missed_label * missed


@given(st.integers(0, 10_000), st.integers(3, 60), st.booleans(), GOALS)
@settings(max_examples=150, deadline=None)
def test_the_chosen_threshold_is_the_best_of_all(seed: int, n: int, unknown: bool, goal: Goal) -> None:
    data = held_out(seed, n, unknown=unknown)
    curves = HeldOutCurves.of(data, probabilities(data))
    for label in (0, 1):
        choice = curves.choose(label, goal)
        assert choice is not None
        thresholds = [*data.scores[:, label].tolist(), data.scores[:, label].min() - 1]
        if isinstance(goal, TargetPrecision):  # more wrong ones make it surer, but are no cut of a curve
            thresholds = below_relevant_scores(data, label)
        best = min(
            loss(goal, counts(data, label, threshold), mean_probability(data, label, threshold))
            for threshold in thresholds
        )
        if best == np.inf:
            assert choice.threshold == NEVER
            continue
        found = counts(data, label, choice.threshold)
        assert found == (choice.tp, choice.n_predicted - choice.tp, choice.positives - choice.tp)
        mean = mean_probability(data, label, choice.threshold)
        assert loss(goal, found, mean) == pytest.approx(best)
        if choice.precision is not None:
            assert choice.precision == pytest.approx(mean)
            assert choice.precision_interval == pytest.approx(wilson(mean, choice.n_predicted))


def test_a_label_that_cannot_be_tuned_keeps_its_threshold_or_is_never_predicted() -> None:
    data = held_out(0, 30, unknown=False)
    curves = HeldOutCurves.of(data, probabilities(data))
    assert curves.judged.tolist() == [True, True, False]
    choice = curves.choose(2, TargetPrecision(0.5))
    assert choice is not None
    assert (choice.threshold, choice.precision, choice.tp) == (NEVER, None, 0)
    assert curves.choose(2, TargetRecall(0.5)) is None
    assert curves.choose(2, LeastCost(1.0, 1.0)) is None


@pytest.mark.parametrize("target", [0.5, 0.9, 0.99])
def test_long_curves_are_cut_and_still_reach_their_targets(target: float) -> None:
    data = held_out(1, 5000, unknown=False)
    scores = data.scores + np.random.default_rng(2).normal(size=data.scores.shape)
    data = HeldOut(scores, data.Y, None, data.folds, data.tunable)
    curves = HeldOutCurves.of(data, probabilities(data))
    assert np.diff(curves.starts).tolist() == [MAX_POINTS, MAX_POINTS, 0]
    for label in (0, 1):
        recall = curves.choose(label, TargetRecall(target))
        assert recall is not None
        assert recall.recall is not None
        assert target <= recall.recall <= target + 0.02
        # The share of examples with label 0 is about a half, so all predictions together reach less than 0.9.
        precision = curves.choose(label, TargetPrecision(target))
        assert precision is not None
        assert precision.threshold == NEVER or (precision.precision or 0) >= target


def test_curves_are_restored_from_their_state_and_forged_ones_are_rejected() -> None:
    data = held_out(3, 40, unknown=False)
    curves = HeldOutCurves.of(data, probabilities(data))
    state = curves.get_state()
    restored = HeldOutCurves.from_state(state, 3)
    assert restored.choose(1, LeastCost(1.0, 2.0)) == curves.choose(1, LeastCost(1.0, 2.0))
    forged = {
        "starts": state["starts"][::-1].copy(),
        "tp": state["tp"] + 1000,
        "fp": state["fp"] - 1000,
        "expected": state["expected"] + 1000,
        "positives": -state["positives"],
        "thresholds": state["thresholds"][:-1],
    }
    for name, array in forged.items():
        with pytest.raises(ArtifactError):
            HeldOutCurves.from_state({**state, name: array}, 3)
