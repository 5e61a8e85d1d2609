"""The decision ``target`` and the counts of pairs above thresholds, compared with exhaustive searches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from models.arrays import Bools, Floats
from models.base.validation import as_label_matrix
from models.calibration import fit_label_calibration
from models.decisions import HeldOut, TargetDecision, curves
from models.decisions.apply import NEVER
from models.decisions.auto import LabelSetSizes
from models.decisions.curves import Cuts, best_f1
from models.decisions.rules import SignDecision
from models.decisions.tune import FittedDecision, LearnerScores, fit_decision, tune_target
from models.measures.intervals import wilson
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


class Logistic:
    """Probabilities whose logits are the scores minus an offset of the label."""

    def __init__(self, offsets: Floats) -> None:
        self.offsets = offsets

    def label_probabilities(self, scores: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-(scores - self.offsets))))

    def thresholds_at(self, probabilities: Floats) -> Floats:
        return np.asarray(self.offsets + np.log(probabilities / (1 - probabilities)))


ALIKE = Logistic(np.zeros(4))


def exhaustive_recall(scores: Floats, relevant: Bools, value: float) -> tuple[int, int, int]:
    """Return the counts of the best threshold among all scores and one below them."""
    found = [counts(scores, relevant, t) for t in sorted({*scores.tolist(), scores.min() - 1})]
    return min((c for c in found if c[0] >= value * (c[0] + c[2]) - 1e-9), key=lambda c: (c[1], c[0]))


def exhaustive_precision(scores: Floats, relevant: Bools, value: float) -> tuple[int, int, int] | None:
    """Return the counts of the lowest threshold that surely has a precision, None if there is none.

    The value must be below the two-sided interval of the level 80 %.
    """
    probabilities, best = 1 / (1 + np.exp(-scores)), None
    for score in sorted(scores[relevant].tolist(), reverse=True):
        above = probabilities[scores >= score]
        z = (above.mean() - value) / np.sqrt(value * (1 - value) / len(above))
        if z >= 1.2815515655446004:
            best = counts(scores, relevant, score - 1e-9)
    return best


@pytest.mark.parametrize(
    ("measure", "value"),
    [("precision", 0.5), ("precision", 0.7), ("precision", 0.95), ("recall", 0.5), ("recall", 1.0)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_each_label_reaches_the_target_as_closely_as_possible(measure: str, value: float, seed: int) -> None:
    data = held_out(seed)
    decision = TargetDecision.model_validate(
        {"kind": "target", "measure": measure, "value": value, "scope": "per_label"}
    )
    target = tune_target(decision, data, default=0.25, parents=None, calibrate=lambda _: ALIKE)
    thresholds, (known, relevant) = target.rule.thresholds, (data.known(), data.relevant())
    assert known is not None
    for j in range(3):
        scores, own = data.scores[known[:, j], j], relevant[known[:, j], j]
        found = target.found.of_labels[j]
        if measure == "recall":
            assert counts(scores, own, thresholds[j]) == exhaustive_recall(scores, own, value)
        elif (best := exhaustive_precision(scores, own, value)) is None:
            assert thresholds[j] == NEVER
            assert (found.precision, found.precision_interval, found.recall) == (None, None, 0.0)
            continue
        else:
            assert counts(scores, own, thresholds[j]) == best
        above = 1 / (1 + np.exp(-scores[scores > thresholds[j]]))
        assert found.precision == pytest.approx(above.mean())
        assert found.precision_interval == pytest.approx(wilson(above.mean(), len(above)))
    # The last label is too rare to tell.
    assert thresholds[3] == (NEVER if measure == "precision" else 0.25)
    assert target.found.judged.tolist() == [True, True, True, False]


@pytest.mark.parametrize(("measure", "value"), [("precision", 0.6), ("precision", 0.7), ("recall", 0.8)])
def test_a_pooled_target_is_one_probability_of_all_labels(measure: str, value: float) -> None:
    data = held_out(3)
    decision = TargetDecision.model_validate({"kind": "target", "measure": measure, "value": value})
    target = tune_target(decision, data, default=0.0, parents=None, calibrate=lambda _: ALIKE)
    included = data.tunable | (measure == "recall")  # the last label is too rare to tell its precision
    thresholds = target.rule.thresholds[included]
    assert thresholds == pytest.approx(thresholds[0])
    assert (target.rule.thresholds[~included] == NEVER).all()
    known = data.known()
    assert known is not None
    known &= included
    exhaustive = exhaustive_recall if measure == "recall" else exhaustive_precision
    best = exhaustive(data.scores[known], data.relevant()[known], value)
    assert counts(data.scores[known], data.relevant()[known], thresholds[0]) == best

    offsets = np.array([0.0, 10.0, -20.0, 5.0])
    shifted = HeldOut(data.scores + offsets, data.Y, data.unknown, data.folds, data.tunable)
    of_shifted = tune_target(
        decision, shifted, default=0.0, parents=None, calibrate=lambda _: Logistic(offsets)
    )
    assert (of_shifted.rule.predicted(shifted.scores) == target.rule.predicted(data.scores)).all()
    assert of_shifted.values == target.values


def draw(rng: np.random.Generator, n: int, shares: Floats, shifts: Floats) -> tuple[Floats, Bools]:
    relevant = rng.random((n, len(shares))) < shares
    return rng.normal(size=relevant.shape) + shifts * relevant, relevant


def test_few_labels_are_significantly_below_their_precision_on_new_documents() -> None:
    rng, value, labels, below, below_of_counts = np.random.default_rng(0), 0.9, 0, 0, 0
    decision = TargetDecision(kind="target", measure="precision", value=value, scope="per_label")
    for seed in range(3):
        shares, shifts = rng.uniform(0.05, 0.3, 30), rng.uniform(2.0, 4.5, 30)
        scores, relevant = draw(rng, 345, shares, shifts)
        Y = as_label_matrix(relevant.astype(int))
        data = HeldOut(scores, Y, None, stratified_folds(Y, 3, seed=seed), relevant.sum(axis=0) >= 3)
        target = tune_target(decision, data, default=0.0, parents=None, calibrate=fit_label_calibration)
        new_scores, new = draw(rng, 5000, shares, shifts)
        for j in target.found.of_labels:
            threshold = target.rule.thresholds[j]
            tp, fp, _ = counts(new_scores[:, j], new[:, j], threshold)
            labels += bool(tp + fp)
            below += bool(tp + fp) and binom.cdf(tp, tp + fp, value) <= 0.05
            # The lowest threshold with this share of right held-out predictions is too low for many labels.
            found = [(t, counts(scores[:, j], relevant[:, j], t)) for t in scores[:, j]]
            lowest = min((t for t, (r, w, _) in found if r and r >= value * (r + w)), default=np.inf)
            tp, fp, _ = counts(new_scores[:, j], new[:, j], lowest)
            below_of_counts += bool(tp + fp) and binom.cdf(tp, tp + fp, value) <= 0.05
    assert labels >= 40
    assert below <= 0.05 * labels
    assert below_of_counts >= 15


@pytest.mark.parametrize("scope", ["pooled", "per_label"])
def test_if_no_threshold_reaches_the_precision_nothing_is_predicted(scope: str) -> None:
    decision = TargetDecision.model_validate(
        {"kind": "target", "measure": "precision", "value": 1.0, "scope": scope}
    )
    fitted = fit(decision, held_out(5))
    assert not fitted.rule.predicted(np.full((1, 4), 1e300)).any()
    assert fitted.report is not None
    assert fitted.report.unreachable_labels == 4
    (warning,) = fitted.warnings
    assert warning.startswith("no label surely reaches the precision 1 ")


def test_a_label_whose_probability_is_never_so_high_is_not_predicted() -> None:
    data = held_out(3)

    class Bounded(Logistic):
        def label_probabilities(self, scores: Floats) -> Floats:
            return np.minimum(super().label_probabilities(scores), [1.0, 1.0, 0.55, 1.0])

        def thresholds_at(self, probabilities: Floats) -> Floats:
            return super().thresholds_at(np.minimum(probabilities, [1.0, 1.0, 0.55, 1.0]))

    decision = TargetDecision(kind="target", measure="precision", value=0.8)
    target = tune_target(decision, data, default=0.0, parents=None, calibrate=lambda _: Bounded(np.zeros(4)))
    assert (target.rule.thresholds == NEVER).tolist() == [False, False, True, True]


@pytest.mark.parametrize("measure", ["precision", "recall"])
@pytest.mark.parametrize("scope", ["pooled", "per_label"])
def test_what_cannot_be_judged_is_a_warning(measure: str, scope: str) -> None:
    decision = TargetDecision.model_validate(
        {"kind": "target", "measure": measure, "value": 0.6, "scope": scope}
    )
    fitted = fit(decision, None)
    assert f"the {measure} cannot be judged" in fitted.warnings[0]
    predicted = fitted.rule.predicted(np.ones((1, 4)))
    assert predicted.all() == (measure == "recall")
    assert predicted.any() == (measure == "recall")
    fitted = fit(decision, held_out(5))
    unjudged = [text for text in fitted.warnings if "too few examples to judge" in text]
    assert [text.endswith(": d") for text in unjudged] == [True] * ((measure, scope) != ("recall", "pooled"))
    assert fitted.report is not None
    labels = [estimate.label for estimate in fitted.report.estimates]
    assert sorted(labels, key=str) == ([None] if scope == "pooled" else ["a", "b", "c"])


def fit(decision: TargetDecision, data: HeldOut | None) -> FittedDecision:
    own = LearnerScores(SignDecision(kind="sign"), default=0.0, has_zero=True, parents=None)
    sizes = LabelSetSizes(most=4, exactly_one=False)
    return fit_decision(decision, data, own, ["a", "b", "c", "d"], sizes, calibrate=lambda _: ALIKE)


def test_a_limit_of_labels_holds() -> None:
    decision = TargetDecision(kind="target", measure="recall", value=1.0, at_most=1)
    data = held_out(2)
    target = tune_target(decision, data, default=0.0, parents=None, calibrate=lambda _: ALIKE)
    assert target.rule.predicted(data.scores).sum(axis=1).max() == 1
    assert target.values["recall_micro"] < 1


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_pairs_are_counted_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "_BLOCK", block)
    data = held_out(4)
    relevant, known = data.relevant(), data.known()
    assert known is not None
    scores = data.scores.copy()
    scores[0], scores[1] = np.inf, -np.inf
    counted = Cuts.of(scores, relevant, known)
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
