"""Calibration: probabilities are true, increase with the score, and are finite whatever the scores are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from models.calibration.alignment import align
from scipy.optimize import minimize
from scipy.sparse import csr_array

from models.arrays import Bools, Floats
from models.calibration import Calibration, fit_calibration, fit_label_calibration
from models.calibration.label_sets import N_FEATURES, set_features
from models.calibration.logistic import fit_logistic
from models.decisions.held_out import N_FOLDS, HeldOut
from models.decisions.label_sets import LabelSetRule
from models.decisions.score_scale import ScoreScale
from models.errors import ArtifactError
from models.measures.calibration import expected_calibration_error


def held_out(scores: Floats, relevant: Bools, *, unknown: Bools | None = None, seed: int = 0) -> HeldOut:
    folds = np.random.default_rng(seed).permutation(np.arange(len(scores)) % N_FOLDS)
    return HeldOut(
        scores,
        csr_array(relevant.astype(np.int8)),
        None if unknown is None else csr_array(unknown.astype(np.int8)),
        folds,
        relevant.sum(axis=0) >= N_FOLDS,
    )


def problem(n: int = 900, k: int = 8, seed: int = 0) -> tuple[Floats, Bools, Floats]:
    """Return scores on different scales, label sets, and the true probability of each label."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, k)) * 2.0 + rng.normal(-1.5, 1.0, k)
    probabilities = 1 / (1 + np.exp(-logits))
    return (
        logits * rng.uniform(0.1, 50, k) + rng.normal(0, 20, k),
        rng.random((n, k)) < probabilities,
        probabilities,
    )


def fitted(scores: Floats, relevant: Bools, unknown: Bools | None = None) -> Calibration:
    rule = LabelSetRule(np.quantile(scores, 0.8, axis=0))
    calibration = fit_calibration(held_out(scores, relevant, unknown=unknown), rule)
    assert calibration is not None
    return calibration


def test_probabilities_of_labels_and_label_sets_are_true() -> None:
    scores, relevant, true = problem(3000)
    calibration = fitted(scores[:1500], relevant[:1500])
    predicted = LabelSetRule(calibration.thresholds_at(np.full(8, 0.5))).predicted(scores[1500:])
    probabilities, of_sets = calibration.probabilities(scores[1500:], predicted)
    assert np.abs(probabilities - true[1500:]).mean() < 0.02
    right = (predicted == relevant[1500:]).all(axis=1)
    assert expected_calibration_error(of_sets, right) < 0.05


def test_a_probability_increases_with_the_score() -> None:
    scores, relevant, _ = problem()
    calibration = fitted(scores, ~relevant)  # even if the scores are the wrong way round
    steps = np.linspace(scores.min(axis=0) * 2, scores.max(axis=0) * 2, 500)
    assert (np.diff(calibration.label_probabilities(steps), axis=0) >= 0).all()


def test_a_threshold_has_its_probability() -> None:
    scores, relevant, _ = problem()
    calibration = fitted(scores, relevant)
    wanted = np.linspace(0.01, 0.99, 8)
    thresholds = calibration.thresholds_at(wanted)
    assert calibration.label_probabilities(thresholds[np.newaxis])[0] == pytest.approx(wanted)
    for certain in (0.0, 1.0):
        assert np.isfinite(calibration.thresholds_at(np.full(8, certain))).all()


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_extreme_scores_and_labels_have_finite_probabilities_between_0_and_1(factor: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 6))
    relevant = rng.random((60, 6)) < 0.3
    relevant[:, 0] = scores[:, 0] > 0.5  # separable
    relevant[:, 1] = True
    relevant[:, 2] = False
    scores[:, 3] = 1.0  # constant
    relevant[:, 4] = np.arange(60) == 7  # one positive example
    calibration = fitted(scores * factor, relevant)
    probe = np.array([[-1.7e308] * 6, [0.0] * 6, [1.7e308] * 6, *(scores * factor)])
    probabilities = calibration.label_probabilities(probe)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    for predicted in (np.zeros((63, 6), dtype=bool), np.ones((63, 6), dtype=bool), probabilities > 0.5):
        _, of_sets = calibration.probabilities(probe, predicted)
        assert ((of_sets > 0) & (of_sets < 1)).all()


def test_logits_are_piecewise_linear_in_the_standardised_score() -> None:
    scores, relevant, _ = problem()
    labels = fitted(scores, relevant).labels
    z = 2 * np.arcsinh((scores - labels.center) / labels.spread / 2)
    for j in range(scores.shape[1]):
        corners = (
            labels.slopes[j, 0] * labels.knots[j, 0]
            + labels.offset[j]
            + np.concatenate([[0.0], np.cumsum(labels.slopes[j, 1:-1] * np.diff(labels.knots[j]))])
        )
        below = corners[0] + labels.slopes[j, 0] * np.minimum(z[:, j] - labels.knots[j, 0], 0)
        above = labels.slopes[j, -1] * np.maximum(z[:, j] - labels.knots[j, -1], 0)
        logits = below + np.interp(z[:, j], labels.knots[j], corners) - corners[0] + above
        found = labels.label_probabilities(scores)[:, j]
        assert found == pytest.approx(1 / (1 + np.exp(-logits)), rel=1e-9)


def test_a_step_in_the_share_of_positive_examples_is_found() -> None:
    # As with boosting: most examples have none of the pivots and the same score.
    rng = np.random.default_rng(0)
    n = 3000
    scores = np.where(rng.random(n) < 0.9, -2.0, rng.uniform(-1.9, 3.0, n))[:, np.newaxis]
    share = np.where(scores == -2.0, 0.005, 0.5)
    relevant = rng.random((n, 1)) < share
    found = fitted(scores, relevant).label_probabilities(np.array([[-2.0], [-1.0], [2.0]]))[:, 0]
    assert found == pytest.approx([0.005, 0.5, 0.5], abs=0.1)


def test_a_saved_beta_calibration_keeps_its_probabilities() -> None:
    rng = np.random.default_rng(0)
    state = {
        "center": rng.normal(size=5),
        "spread": rng.uniform(0.5, 2, 5),
        "left": rng.uniform(0.5, 6, 5),
        "right": rng.uniform(0.5, 6, 5),
        "offset": rng.normal(size=5),
        "set_weights": rng.uniform(0, 1, N_FEATURES),
    }
    scores = rng.normal(size=(200, 5)) * 4
    s = 1 / (1 + np.exp(-2 * np.arcsinh((scores - state["center"]) / state["spread"] / 2)))
    logits = state["left"] * np.log(s) - state["right"] * np.log1p(-s) + state["offset"]
    found = Calibration.from_state(state, 5).labels.label_logits(scores)
    assert found == pytest.approx(np.clip(logits, -30, 30), abs=0.06)


def test_the_features_of_a_label_set_are_those_of_its_probabilities() -> None:
    p = np.array([[0.9, 0.2, 0.6], [0.3, 0.1, 0.4], [0.7, 0.8, 0.9]])
    predicted = np.array([[True, False, True], [False] * 3, [True] * 3])
    logits = np.log(p / (1 - p))
    features = np.array(set_features(logits, -np.log(p), predicted))
    joint = np.where(predicted, p, 1 - p).prod(axis=1)
    assert features[:, 1] == pytest.approx(np.log(joint / (1 - joint)))
    assert features[:, 2] == pytest.approx(np.array([np.log(0.6 / 0.4), 0, np.log(0.7 / 0.3)]))
    assert features[:, 3] == pytest.approx(np.array([np.log(0.8 / 0.2), np.log(0.6 / 0.4), 0]))
    assert features[:, [0, 4, 5]] == pytest.approx(
        np.column_stack([np.ones(3), np.log([3, 1, 4]), [0, 1, 0]])
    )


def test_probabilities_of_one_document_have_the_bits_of_those_in_a_batch() -> None:
    scores, relevant, _ = problem(200, 131)
    calibration = fitted(scores, relevant)
    predicted = calibration.label_probabilities(scores) > 0.3
    of_labels, of_sets = calibration.probabilities(scores, predicted)
    for i in range(0, 200, 7):
        one, its_set = calibration.probabilities(scores[i : i + 1], predicted[i : i + 1])
        assert (one[0] == of_labels[i]).all()
        assert its_set[0] == of_sets[i]


def test_a_rare_label_gets_the_slope_of_the_others() -> None:
    scores, relevant, _ = problem()
    relevant[:, 0] = False
    relevant[[3, 5], 0] = True
    labels = fitted(scores, relevant).labels
    assert (labels.slopes[0] == labels.slopes[0, 0]).all()
    assert fitted(scores, relevant).label_probabilities(scores)[:, 0].mean() < 0.02


def test_unknown_labels_do_not_count() -> None:
    scores, relevant, _ = problem(500)
    unknown = np.random.default_rng(1).random(relevant.shape) < 0.3
    unknown[:, 7] = True
    other = scores.copy()
    other[:, :7][unknown[:, :7]] = -12345.0
    first, second = (
        fit_label_calibration(held_out(s, relevant & ~unknown, unknown=unknown)) for s in (scores, other)
    )
    assert first is not None
    assert second is not None
    at = first.thresholds_at(np.full(8, 0.3))[np.newaxis]
    assert second.label_probabilities(at)[0, :7] == pytest.approx(np.full(7, 0.3))


def test_nothing_is_fitted_if_no_label_is_known() -> None:
    scores, relevant, _ = problem(30, 2)
    nothing = np.zeros_like(relevant)
    assert fit_label_calibration(held_out(scores, nothing, unknown=~nothing)) is None
    assert fit_calibration(held_out(scores[:0], nothing[:0]), LabelSetRule(np.zeros(2))) is None


def test_scores_without_a_fixed_scale_are_moved_to_that_of_the_learner_if_a_label_is_rare() -> None:
    scores, relevant, _ = problem(3000, 2)
    relevant[:, 0] &= np.arange(3000) % 100 == 0
    example = held_out(scores, relevant)
    moved = align(example, ScoreScale.of(scores * 3 + 7, None)).scores
    means, expected = moved.mean(axis=0), (scores * 3 + 7).mean(axis=0)
    n_positive = relevant.sum(axis=0)
    trust = n_positive / (n_positive + 50)
    assert means == pytest.approx(trust * scores.mean(axis=0) + (1 - trust) * expected)
    assert trust[0] < 0.2
    assert trust[1] > 0.9


def test_scores_with_a_fixed_scale_keep_two_thirds_of_the_gap_between_seen_and_unseen_examples() -> None:
    scores, relevant, _ = problem()
    unseen = ScoreScale.of(scores, None)
    seen = ScoreScale(unseen.center + 0.3 * unseen.spread, 1.5 * unseen.spread)
    example = replace(
        held_out(scores, relevant), folds=np.zeros(len(scores), dtype=np.int64), fold_scales=(seen,)
    )
    fitted_scale = ScoreScale(np.full(8, 7.0), np.full(8, 4.0))
    moved = ScoreScale.of(align(example, fitted_scale).scores, None)
    assert moved.spread == pytest.approx(np.full(8, 4 * (1 - 2 / 3 * (1 - 1 / 1.5))))
    assert moved.center == pytest.approx(np.full(8, 7 - 2 / 3 * 0.3 / 1.5 * 4))


def test_a_calibration_is_the_same_after_it_is_saved() -> None:
    scores, relevant, _ = problem(200)
    calibration = fitted(scores, relevant)
    restored = Calibration.from_state(calibration.get_state(), 8)
    predicted = calibration.label_probabilities(scores) > 0.5
    for before, after in zip(
        calibration.probabilities(scores, predicted), restored.probabilities(scores, predicted), strict=True
    ):
        assert (before == after).all()
    with pytest.raises(ArtifactError, match="positive"):
        Calibration.from_state({**calibration.get_state(), "spread": np.zeros(8)}, 8)
    with pytest.raises(ArtifactError, match="ascending"):
        Calibration.from_state({**calibration.get_state(), "knots": -calibration.labels.knots}, 8)


def test_a_more_probable_label_set_is_at_least_as_probably_right() -> None:
    scores, relevant, _ = problem()
    weights = fitted(scores, relevant).set_weights
    assert weights.shape == (N_FEATURES,)
    assert (weights[1:4] >= 0).all()


def test_logistic_regressions_equal_a_general_optimiser() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 40, 3))
    totals = rng.integers(0, 4, (3, 40)).astype(np.float64)
    positives = np.floor(totals * rng.random((3, 40)) + 0.5)
    prior, ridge, lower = np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.0, -np.inf])
    fitted_ = fit_logistic(X, positives, totals, prior=prior, ridge=ridge, lower=lower)
    for i in range(3):

        def loss(beta: Floats, i: int = i) -> float:
            logits = X[i] @ beta
            likelihood = (totals[i] * np.logaddexp(0, logits) - positives[i] * logits).sum()
            return float(likelihood + (ridge * (beta - prior) ** 2).sum() / 2)

        best = minimize(loss, prior, bounds=[(0.2, None), (0.0, None), (None, None)], tol=1e-12)
        assert fitted_[i] == pytest.approx(best.x, abs=1e-4)
