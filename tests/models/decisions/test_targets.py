"""The decision ``target`` and the counts of pairs above thresholds, compared with exhaustive searches."""

from __future__ import annotations

import numpy as np
import pytest

from models.arrays import Bools, Floats
from models.base.validation import as_label_matrix
from models.decisions import HeldOut, TargetDecision, cuts
from models.decisions.cuts import NEVER, PooledCuts, best_f1
from models.decisions.targets import tune_target
from models.splits import stratified_folds


def held_out(seed: int) -> HeldOut:
    """Return scores of three labels and of one that is too rare to be tuned."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((60, 4)) < [0.5, 0.3, 0.15, 0.0]
    relevant[:2, 3] = True
    # Eighths, so that sums have no rounding errors.
    scores = np.round(8 * (rng.normal(size=(60, 4)) + 1.5 * relevant)) / 8
    Y = as_label_matrix(relevant.astype(int))
    unknown = as_label_matrix(((rng.random((60, 4)) < 0.1) & ~relevant).astype(int))
    tunable = np.array([True, True, True, False])
    return HeldOut(scores, Y, unknown, stratified_folds(Y, 3, seed=seed), tunable)


def counts(scores: Floats, relevant: Bools, threshold: float) -> tuple[int, int, int]:
    predicted = scores > threshold
    tp = int((predicted & relevant).sum())
    return tp, int(predicted.sum()) - tp, int(relevant.sum()) - tp


def exhaustive(scores: Floats, relevant: Bools, measure: str, value: float) -> tuple[int, int, int] | None:
    """Return the counts of the best threshold among all scores and one below them."""
    found = [counts(scores, relevant, t) for t in sorted({*scores.tolist(), scores.min() - 1})]
    if measure == "precision":
        enough = [c for c in found if c[0] and c[0] >= value * (c[0] + c[1]) - 1e-9]
    else:
        enough = [c for c in found if c[0] >= value * (c[0] + c[2]) - 1e-9]
    # With a precision the most right predictions, with a recall any: then the fewest wrong ones.
    key = (lambda c: (-c[0], c[1])) if measure == "precision" else (lambda c: (c[1], c[0]))
    return min(enough, key=key, default=None)


@pytest.mark.parametrize("measure", ["precision", "recall"])
@pytest.mark.parametrize("value", [0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_each_label_reaches_the_target_as_closely_as_possible(measure: str, value: float, seed: int) -> None:
    data = held_out(seed)
    decision = TargetDecision.model_validate(
        {"kind": "target", "measure": measure, "value": value, "scope": "per_label"}
    )
    target = tune_target(decision, data, default=0.25, parents=None, calibrate=none)
    known, relevant = data.known(), data.relevant()
    assert known is not None
    for j in range(3):
        scores, own = data.scores[known[:, j], j], relevant[known[:, j], j]
        best = exhaustive(scores, own, measure, value)
        if best is None:
            assert target.rule.thresholds[j] == NEVER
        else:
            assert counts(scores, own, target.rule.thresholds[j]) == best
    # The last label is too rare to tell.
    assert target.rule.thresholds[3] == (NEVER if measure == "precision" else 0.25)
    assert target.unreachable.tolist() == (target.rule.thresholds == NEVER).tolist()


@pytest.mark.parametrize("measure", ["precision", "recall"])
@pytest.mark.parametrize("value", [0.6, 0.9])
def test_a_pooled_target_is_reached_by_one_threshold_of_all_labels(measure: str, value: float) -> None:
    data = held_out(3)
    decision = TargetDecision.model_validate({"kind": "target", "measure": measure, "value": value})
    target = tune_target(decision, data, default=0.0, parents=None, calibrate=none)
    included = data.tunable | (measure == "recall")  # the last label is too rare to tell its precision
    (threshold,) = set(target.rule.thresholds[included].tolist())
    assert (target.rule.thresholds[~included] == NEVER).all()
    known = data.known()
    assert known is not None
    known &= included
    scores, relevant = data.scores[known], data.relevant()[known]
    assert counts(scores, relevant, threshold) == exhaustive(scores, relevant, measure, value)


class Shifted:
    """Probabilities of labels whose scores have an offset of their own."""

    offsets = np.array([0.0, 10.0, -20.0, 5.0])

    def label_probabilities(self, scores: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-(scores - self.offsets))))

    def thresholds_at(self, probabilities: Floats) -> Floats:
        return np.asarray(self.offsets + np.log(probabilities / (1 - probabilities)))


def test_a_pooled_target_is_one_probability_of_all_labels() -> None:
    data = held_out(3)
    decision = TargetDecision(kind="target", measure="recall", value=0.8)
    alike = tune_target(decision, data, default=0.0, parents=None, calibrate=none)
    shifted = HeldOut(data.scores + Shifted.offsets, data.Y, data.unknown, data.folds, data.tunable)
    target = tune_target(decision, shifted, default=0.0, parents=None, calibrate=lambda held_out: Shifted())  # noqa: ARG005
    assert (target.rule.predicted(shifted.scores) == alike.rule.predicted(data.scores)).all()
    assert target.values == alike.values


def test_if_no_threshold_reaches_the_pooled_precision_nothing_is_predicted() -> None:
    data = held_out(5)
    reversed_scores = HeldOut(-data.scores, data.Y, data.unknown, data.folds, data.tunable)
    decision = TargetDecision(kind="target", measure="precision", value=1.0)
    target = tune_target(decision, reversed_scores, default=0.0, parents=None, calibrate=none)
    assert target.unreachable.all()
    assert not target.rule.predicted(np.full((1, 4), 1e300)).any()


def test_a_limit_of_labels_holds() -> None:
    decision = TargetDecision(kind="target", measure="recall", value=1.0, at_most=1)
    data = held_out(2)
    target = tune_target(decision, data, default=0.0, parents=None, calibrate=none)
    assert target.rule.predicted(data.scores).sum(axis=1).max() == 1
    assert target.values["recall_micro"] < 1


def none(held_out: HeldOut) -> None:
    return None


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_pairs_are_counted_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "_BLOCK", block)
    data = held_out(4)
    relevant, known = data.relevant(), data.known()
    assert known is not None
    scores = data.scores.copy()
    scores[0], scores[1] = np.inf, -np.inf
    counted = PooledCuts.of(scores, relevant, known)
    for cut in range(len(counted.tp)):
        tp, fp, _ = counts(scores[known], relevant[known], counted.threshold(cut))
        assert (counted.tp[cut], counted.fp[cut]) == (tp, fp)
    best, f1 = best_f1(counted)
    everywhere = [
        2 * tp / (2 * tp + fp + fn)
        for tp, fp, fn in (counts(scores[known], relevant[known], t) for t in np.unique(data.scores))
    ]
    assert f1 == pytest.approx(max(everywhere))
    assert np.isfinite(counted.threshold(best))
