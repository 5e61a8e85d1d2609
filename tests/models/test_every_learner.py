"""What every learner of the catalog must keep to, whatever it is."""

from __future__ import annotations

import inspect
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from sparse_cases import frozen, noncanonical

from models.arrays import Labels, Matrix
from models.base import Context, Learner, State, Step
from models.base.validation import as_training_matrices
from models.catalog import ENTRIES
from models.errors import StopTraining
from models.labels import LabelTree

# Short trainings; thresholds, because scikit-learn's checks bring dense measurements, which every row "has".
CHEAPER: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"rounds": 20, "stump": "threshold"},
    "mp_boost": {"rounds": 20, "stump": "threshold"},
    "adaboost_lc": {"rounds": 20},
    "mmp": {"epochs": 2},
    "mlpp": {"epochs": 2},
    "binary_relevance_perceptron": {"epochs": 2},
    "h_m3": {"passes": 20},
}


def made(algorithm: str, **parameters: Any) -> Learner:
    return ENTRIES[algorithm].learner(**{**CHEAPER.get(algorithm, {}), **parameters})


ALGORITHMS = sorted(ENTRIES)
every_learner = pytest.mark.parametrize("algorithm", ALGORITHMS)

COLUMN_OF_CLASSES = "Y with one column holds one label as 0 and 1; classes are given as a flat y"
NO_CLASSES = "partial_fit takes label sets, and names new labels in its context instead of listing classes"
NO_BIAS = "without a bias and in few passes it cannot tell three blobs of points apart as well as is asked"
COUNTS = "it is made for counts of words, and blobs of points have none"

INCREMENTAL = {
    "check_fit_score_takes_y": NO_CLASSES,
    "check_n_features_in_after_fitting": NO_CLASSES,
    "check_estimators_partial_fit_n_features": NO_CLASSES,
}
EXCUSED: dict[str, dict[str, str]] = {
    "mmp": {**INCREMENTAL, "check_classifiers_train": NO_BIAS},
    "mlpp": {**INCREMENTAL, "check_classifiers_train": NO_BIAS},
    "binary_relevance_perceptron": INCREMENTAL,
    "naive_bayes": {**INCREMENTAL, "check_classifiers_train": COUNTS},
}


def excused(learner: Learner) -> dict[str, str]:
    """Checks of scikit-learn that cannot hold, and why; one that passes all the same fails the tests."""
    return {"check_supervised_y_2d": COLUMN_OF_CLASSES, **EXCUSED.get(learner.algorithm, {})}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [made(algorithm) for algorithm in ALGORITHMS], expected_failed_checks=excused
)
def test_keeps_scikit_learns_conventions(estimator: Learner, check: Callable[[Learner], None]) -> None:
    check(estimator)


def problem(seed: int = 0) -> tuple[Matrix, Labels, Context]:
    """Counts of words, and label sets that are closed under the ancestors of a tree."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.6, size=(40, 12)).astype(float)
    X[7] = 0
    X[9] = X[8]
    tree = LabelTree({"b": "a", "c": "a", "e": "d"})
    names = ["a", "b", "c", "d", "e"]
    scores = X @ rng.normal(size=(12, 5)) + rng.normal(size=(40, 5))
    Y = np.zeros((40, 5), dtype=int)
    for row, on in enumerate(scores > 0.8):
        held = tree.closure([name for name, has in zip(names, on, strict=True) if has])
        Y[row, [names.index(name) for name in held]] = 1
    matrix, labels = as_training_matrices(X, Y)
    return matrix, labels, Context(labels=names, parents=tree.parent_indices(names))


def assert_same_state(one: State, other: State) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@every_learner
def test_defaults_are_those_of_the_parameters(algorithm: str) -> None:
    learner = ENTRIES[algorithm].learner
    fields = {*learner.parameters.model_fields} - {"algorithm"}
    arguments = {*inspect.signature(learner).parameters} - {"random_state"}
    assert arguments == fields
    assert learner().validated_parameters() == learner.parameters.model_validate({"algorithm": algorithm})


@every_learner
def test_parameters_make_the_learner_that_they_validate(algorithm: str) -> None:
    parameters = made(algorithm).validated_parameters()
    learner = ENTRIES[algorithm].learner.from_parameters(parameters, random_state=3)
    assert learner.validated_parameters() == parameters


@every_learner
def test_a_saved_learner_scores_the_same_bits(algorithm: str) -> None:
    X, Y, context = problem()
    learner = made(algorithm).fit(X, Y, context=context)
    state = learner.get_state()
    for array in state.values():
        assert isinstance(array, np.ndarray)
        assert array.dtype != object
        array.setflags(write=False)
    loaded = clone(learner).set_state(state)
    np.testing.assert_array_equal(loaded.decision_function(X), learner.decision_function(X))
    assert_same_state(loaded.get_state(), state)


@every_learner
def test_an_interrupted_training_resumes_to_the_same_bits(algorithm: str) -> None:
    X, Y, context = problem()
    snapshots: list[State] = []
    whole = made(algorithm).fit(X, Y, context=context, monitor=lambda step: snapshots.append(step.snapshot()))
    expected = whole.get_state()
    for number, snapshot in enumerate(snapshots, start=1):
        kept: list[State] = []

        def stop_here(step: Step, number: int = number, kept: list[State] = kept) -> None:
            kept.append(step.snapshot())
            if len(kept) == number:
                raise StopTraining

        with pytest.raises(StopTraining):
            made(algorithm).fit(X, Y, context=context, monitor=stop_here)
        assert_same_state(kept[-1], snapshot)
        completed: list[int] = []
        resumed = made(algorithm).fit(
            X,
            Y,
            context=context,
            resume=kept[-1],
            monitor=lambda step, completed=completed: completed.append(step.completed),
        )
        assert_same_state(resumed.get_state(), expected)
        assert resumed.summary_ == whole.summary_
        assert len(completed) == len(snapshots) - number


@every_learner
def test_sparse_and_dense_input_give_the_same_bits(algorithm: str) -> None:
    X, Y, context = problem()
    sparse = made(algorithm).fit(X, Y, context=context)
    dense = made(algorithm).fit(X.toarray(), Y.toarray(), context=context)
    assert_same_state(sparse.get_state(), dense.get_state())
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X.toarray()))


@every_learner
def test_unsorted_read_only_input_gives_the_same_bits(algorithm: str) -> None:
    X, Y, context = problem()
    canonical = made(algorithm).fit(X, Y, context=context)
    unsorted_X = frozen(noncanonical(X.toarray(), seed=1))
    unsorted_Y = frozen(noncanonical(Y.toarray().astype(float), seed=2))
    other = made(algorithm).fit(unsorted_X, unsorted_Y, context=context)
    assert_same_state(other.get_state(), canonical.get_state())
    np.testing.assert_array_equal(other.decision_function(unsorted_X), canonical.decision_function(X))


@every_learner
def test_the_same_seed_gives_the_same_bits(algorithm: str) -> None:
    X, Y, context = problem()
    first, second = (made(algorithm).fit(X, Y, context=context).get_state() for _ in range(2))
    assert_same_state(first, second)


ORDER_MATTERS = {
    "h_m3": "labelings that tie go by label order, and training ends at a gap, short of the one optimum",
    "mlpp": "a pair of labels that no weight tells apart goes to the one that sorts first (sgn(0) = +1)",
}


@every_learner
def test_permuted_labels_get_permuted_scores(algorithm: str) -> None:
    if algorithm in ORDER_MATTERS:
        pytest.skip(ORDER_MATTERS[algorithm])
    X, Y, context = problem()
    assert context.parents is not None
    order = np.array([3, 0, 4, 2, 1])
    place = np.argsort(order)
    parents = context.parents[order]
    moved = Context(parents=np.where(parents < 0, -1, place[parents]))
    here = made(algorithm).fit(X, Y, context=Context(parents=context.parents)).decision_function(X)
    there = made(algorithm).fit(X, Y[:, order], context=moved).decision_function(X)
    np.testing.assert_array_equal(there, here[:, order])


@every_learner
def test_a_batch_scores_like_its_rows(algorithm: str) -> None:
    X, Y, context = problem()
    learner = made(algorithm).fit(X, Y, context=context)
    scores = learner.decision_function(X)
    assert scores.dtype == np.float64
    assert scores.shape == Y.shape
    rows = np.vstack([learner.decision_function(X[[row]]) for row in range(X.shape[0])])
    np.testing.assert_allclose(rows, scores, rtol=0, atol=1e-12)


@every_learner
def test_sparse_data_is_never_dense(algorithm: str) -> None:
    """Dense, these 2,000 examples would take 32 GB."""
    rng = np.random.default_rng(0)
    X: Any = random_array((2_000, 2_000_000), density=2e-6, rng=rng, format="csr")
    Y = csr_array((rng.random((2_000, 2)) < 0.1).astype(np.int8))
    tracemalloc.start()
    try:
        short = {"rounds": 2, "passes": 2} if algorithm not in {"adaboost_mh", "mp_boost"} else {"rounds": 2}
        names = inspect.signature(ENTRIES[algorithm].learner).parameters
        learner = ENTRIES[algorithm].learner(**{k: v for k, v in short.items() if k in names}).fit(X, Y)
        assert learner.decision_function(X).shape == (2_000, 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 << 30
