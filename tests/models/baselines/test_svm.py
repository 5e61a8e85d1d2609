"""The flat SVM against scikit-learn, label by label."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC, _liblinear
from sparse_cases import features, frozen, noncanonical, problem_of

from models.arrays import AnyArray, Floats, Matrix
from models.base import Context, State, Step
from models.base.validation import as_feature_matrix
from models.baselines.svm import SVM
from models.errors import ParameterError, StopTraining


def problem() -> tuple[Matrix, AnyArray]:
    rng = np.random.default_rng(0)
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.4)
    return csr_array(X), (rng.random((60, 4)) < [0.5, 0.1, 1.0, 0.3]).astype(int)


def literal_scores(X: Floats, Y: AnyArray, C: float) -> Floats:
    """One LinearSVC for each label that is neither on nor off in every example."""
    scores = np.empty(Y.shape)
    for j in range(Y.shape[1]):
        if len(np.unique(Y[:, j])) == 1:
            scores[:, j] = 1.0 if Y[0, j] else -1.0
        else:
            svm = LinearSVC(C=C, dual="auto", random_state=0).fit(X, Y[:, j])
            scores[:, j] = svm.decision_function(X)
    return scores


def test_scores_are_those_of_one_linear_svc_per_label() -> None:
    X, Y = problem()
    scores = SVM(C=3.0).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(scores, literal_scores(X.toarray(), Y, 3.0), atol=1e-9)


@pytest.mark.parametrize("r", [8, 80], ids=["primal", "dual"])
def test_the_weights_have_the_bits_of_linear_svc(r: int) -> None:
    rng = np.random.default_rng(0)
    X = csr_array(rng.random((60, r)) * (rng.random((60, r)) < 0.4))
    Y, weights = (rng.random((60, 2)) < [0.5, 0.1]).astype(int), rng.integers(1, 4, 60).astype(np.float64)
    learner = SVM(C=3.0, class_weight="balanced", random_state=5).fit(X, Y, weights)
    for j in range(2):
        svc = LinearSVC(C=3.0, dual="auto", class_weight="balanced", random_state=5)
        svc.fit(X, Y[:, j], sample_weight=weights)
        np.testing.assert_array_equal(learner.coef_[:, j], svc.coef_[0])
        assert learner.intercept_[j] == svc.intercept_[0]


def test_a_training_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    _liblinear.set_verbosity_wrap(1)
    SVM().fit(*problem())
    assert capfd.readouterr() == ("", "")


@given(st.data(), st.integers(1, 10), st.integers(1, 6), st.integers(0, 999))
@settings(max_examples=25)
def test_rare_equal_and_unsorted_columns(data: st.DataObject, g: int, r: int, seed: int) -> None:
    X = data.draw(features(g, r))
    Y = (np.random.default_rng(seed).random((g, 3)) < 0.4).astype(int)
    learner = SVM().fit(frozen(noncanonical(X, seed)), frozen(noncanonical(Y, seed, duplicates=False)))
    expected = literal_scores(X, Y, 1.0)
    np.testing.assert_allclose(learner.decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(learner.decision_function(frozen(noncanonical(X, seed))), expected, atol=1e-9)


def test_a_label_of_all_examples_scores_1_and_a_label_of_none_minus_1() -> None:
    X, Y = problem()
    Y[:, 1] = 0
    scores = SVM().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(scores[:, 2], 1)
    np.testing.assert_array_equal(scores[:, 1], -1)


def test_64_bit_indices_are_accepted() -> None:
    X, Y = problem()
    wide = csr_array(X)
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    np.testing.assert_array_equal(SVM().fit(wide, Y).coef_, SVM().fit(X, Y).coef_)


def test_explanation_and_intercept_add_up_to_the_score() -> None:
    X, Y = problem()
    learner = SVM().fit(X, Y)
    columns, weights = learner.explain(as_feature_matrix(X[:1]), 3)
    assert columns.tolist() == X[:1].indices.tolist()
    assert weights.sum() + learner.intercept_[3] == pytest.approx(
        learner.decision_function(X[:1])[0, 3], abs=1e-12
    )


def test_a_saved_or_resumed_learner_gives_identical_scores() -> None:
    X, Y = problem()
    learner = SVM().fit(X, Y)
    scores = learner.decision_function(X)
    np.testing.assert_array_equal(SVM().set_state(learner.get_state()).decision_function(X), scores)
    snapshots: list[State] = []

    def stop_after_two(step: Step) -> None:
        snapshots.append(step.snapshot())
        if step.completed == 2:
            raise StopTraining

    with pytest.raises(StopTraining):
        SVM().fit_problem(problem_of(X, Y), monitor=stop_after_two)
    resumed = SVM().fit_problem(problem_of(X, Y), resume=snapshots[-1])
    np.testing.assert_array_equal(resumed.decision_function(X), scores)
    assert (snapshots[-1]["coef"][:, 2:] == 0).all()  # later training does not change a snapshot


def test_the_threads_of_a_training_end_with_it() -> None:
    X, Y = problem()

    def stop(_: Step, /) -> None:
        raise StopTraining

    before = {*threading.enumerate()}
    learner = SVM().fit(X, Y, context=Context(n_jobs=2))
    assert {*threading.enumerate()} == before
    with pytest.raises(StopTraining) as stopped:
        SVM().fit_problem(problem_of(X, Y, Context(n_jobs=2)), monitor=stop)
    assert {*threading.enumerate()} == before
    assert learner.coef_.shape == (X.shape[1], Y.shape[1])
    assert stopped.value is not None  # until here, the frames of the stopped training are alive


def test_a_warning_names_the_labels_for_which_liblinear_did_not_converge() -> None:
    rng = np.random.default_rng(2)
    X = 1 + 1e-3 * rng.normal(size=(40, 60))  # nearly equal examples with random labels
    learner = SVM(C=1e6).fit(X, rng.integers(0, 2, (40, 2)))
    assert learner.summary_.warnings == ["liblinear did not reach its tolerance for 0, 1; try a smaller C"]


def test_an_invalid_cost_is_rejected() -> None:
    with pytest.raises(ParameterError, match="/learner/C"):
        SVM(C=0).fit([[1.0]], [[1]])
