"""Calibration: probabilities are true, increase with the score, and are finite whatever the scores are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

from models.arrays import Bools, Floats
from models.calibration import Calibration, fit_calibration, fit_label_calibration
from models.calibration.context import fit_context, logits_in_context
from models.calibration.label_sets import N_FEATURES, set_features
from models.calibration.logistic import fit_logistic
from models.decisions.apply import LabelSetRule
from models.decisions.held_out import N_FOLDS, HeldOut
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
    predicted = LabelSetRule(calibration.labels.thresholds_at(np.full(8, 0.5))).predicted(scores[1500:])
    probabilities, of_sets = calibration.probabilities(scores[1500:], predicted)
    assert np.abs(probabilities - true[1500:]).mean() < 0.02
    right = (predicted == relevant[1500:]).all(axis=1)
    assert expected_calibration_error(of_sets, right) < 0.05


def test_a_probability_increases_with_the_score() -> None:
    scores, relevant, _ = problem()
    calibration = fitted(scores, ~relevant)  # even if the scores are the wrong way round
    steps = np.linspace(scores.min(axis=0) * 2, scores.max(axis=0) * 2, 500)
    assert (np.diff(calibration.labels.label_probabilities(steps), axis=0) >= 0).all()


def test_a_threshold_has_its_probability() -> None:
    scores, relevant, _ = problem()
    calibration = fitted(scores, relevant)
    wanted = np.linspace(0.01, 0.99, 8)
    thresholds = calibration.labels.thresholds_at(wanted)
    assert calibration.labels.label_probabilities(thresholds[np.newaxis])[0] == pytest.approx(wanted)
    for certain in (0.0, 1.0):
        assert np.isfinite(calibration.labels.thresholds_at(np.full(8, certain))).all()


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
    probabilities = calibration.labels.label_probabilities(probe)
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
    found = fitted(scores, relevant).labels.label_probabilities(np.array([[-2.0], [-1.0], [2.0]]))[:, 0]
    assert found == pytest.approx([0.005, 0.5, 0.5], abs=0.1)


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
    predicted = calibration.labels.label_probabilities(scores) > 0.3
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
    assert fitted(scores, relevant).labels.label_probabilities(scores)[:, 0].mean() < 0.02


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


def test_a_calibration_is_the_same_after_it_is_saved() -> None:
    scores, relevant, _ = problem(200)
    calibration = fitted(scores, relevant)
    restored = Calibration.from_state(calibration.get_state(), 8)
    predicted = calibration.labels.label_probabilities(scores) > 0.5
    for before, after in zip(
        calibration.probabilities(scores, predicted), restored.probabilities(scores, predicted), strict=True
    ):
        assert (before == after).all()
    with pytest.raises(ArtifactError, match="positive"):
        Calibration.from_state({**calibration.get_state(), "spread": np.zeros(8)}, 8)
    with pytest.raises(ArtifactError, match="ascending"):
        Calibration.from_state({**calibration.get_state(), "knots": -calibration.labels.knots}, 8)
    with pytest.raises(ArtifactError, match="'max_logit' is out of range"):
        Calibration.from_state({**calibration.get_state(), "max_logit": np.full(8, 31.0)}, 8)


def test_few_positive_examples_limit_the_probability_of_a_label_unless_that_of_the_set_is_larger() -> None:
    rng = np.random.default_rng(0)
    relevant = rng.random((400, 4)) < [0.02, 0.05, 0.3, 0.3]
    scores = rng.normal(size=relevant.shape) + 20 * relevant  # separable
    calibration, n = fitted(scores, relevant), relevant.sum(axis=0)
    most = (n + 1) / (n + 2)
    assert calibration.labels.label_probabilities(scores).max(axis=0) == pytest.approx(most)
    p, of_sets = calibration.probabilities(scores, relevant)
    assert (p <= np.maximum(most + 1e-12, np.where(relevant, of_sets[:, np.newaxis], 0.0))).all()
    assert (p > most + 1e-12).any(), "label sets are right more often than a rare label has examples"


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7]), st.sampled_from([0.1, 3.0, 1e300]))
def test_label_sets_are_never_more_probable_than_what_they_state_of_a_label(
    seed: int, k: int, factor: float
) -> None:
    rng = np.random.default_rng(seed)
    relevant = rng.random((30, k)) < rng.random(k)
    scores = rng.normal(size=(30, k)) + rng.random() * 3 * relevant
    calibration = fitted(scores, relevant)
    probe, predicted = scores * factor, rng.random((30, k)) < 0.5
    p, of_sets = calibration.probabilities(probe, predicted)
    assert ((p > 0) & (p < 1) & (of_sets > 0).all() & (of_sets < 1).all()).all()
    assert (of_sets <= np.where(predicted, p, 1.0).min(axis=1)).all()
    assert (np.where(predicted, 0.0, p).max(axis=1) <= 1.0 - of_sets).all()
    for i in range(30):
        one, its_set = calibration.probabilities(probe[i : i + 1], predicted[i : i + 1])
        assert (one[0] == p[i]).all()
        assert its_set[0] == of_sets[i]


def test_labels_that_exclude_each_other_are_less_probable_in_the_context_of_a_certain_one() -> None:
    rng = np.random.default_rng(0)
    relevant = np.eye(4, dtype=bool)[rng.integers(0, 4, 600)]
    scores = rng.normal(size=relevant.shape) + 2.0 * relevant
    calibration = fitted(scores, relevant)
    assert calibration.context_weights[2] < -0.1
    independent = 1 / (1 + np.exp(-calibration.labels.label_logits(scores)))
    in_context, _ = calibration.probabilities(scores, np.zeros_like(relevant))
    loss = [-np.log(np.where(relevant, p, 1 - p)).mean() for p in (independent, in_context)]
    assert loss[1] < loss[0] - 0.01
    assert np.abs(in_context.sum(axis=1) - 1).mean() < np.abs(independent.sum(axis=1) - 1).mean()


def test_without_context_the_weights_are_those_of_labels_alone() -> None:
    _, relevant, true = problem(3000)
    logits = np.log(true / (1 - true))
    assert fit_context([logits], relevant, None) == pytest.approx([0, 1, 0], abs=0.1)
    # Samples count equally, whatever their number is, and unknown labels do not count.
    known = np.random.default_rng(1).random(relevant.shape) < 0.7
    wrong = np.where(known, relevant, ~relevant)
    weights = fit_context([logits], relevant & known, known)
    assert fit_context([logits, logits], wrong, known) == pytest.approx(weights, abs=1e-6)
    assert logits_in_context(logits[:, :1], np.array([0.5, 2.0, 9.0])) == pytest.approx(
        2 * logits[:, :1] + 0.5
    )


def test_a_more_probable_label_set_is_at_least_as_probably_right() -> None:
    scores, relevant, _ = problem()
    weights = fitted(scores, relevant).set_weights
    assert weights.shape == (N_FEATURES,)
    assert (weights[1:4] >= 0).all()


def test_logistic_regressions_equal_a_general_optimiser() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 3, 40))
    totals = rng.integers(0, 4, (3, 40)).astype(np.float64)
    positives = np.floor(totals * rng.random((3, 40)) + 0.5)
    prior, ridge, lower = np.array([1.0, 0.0, -1.0]), np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.0, -np.inf])
    fitted_ = fit_logistic(X, positives, totals, prior=prior, ridge=ridge, lower=lower)
    for i in range(3):

        def loss(beta: Floats, i: int = i) -> float:
            logits = beta @ X[i]
            likelihood = (totals[i] * np.logaddexp(0, logits) - positives[i] * logits).sum()
            return float(likelihood + (ridge * (beta - prior) ** 2).sum() / 2)

        best = minimize(loss, prior, bounds=[(0.2, None), (0.0, None), (None, None)], tol=1e-12)
        assert fitted_[i] == pytest.approx(best.x, abs=1e-4)
