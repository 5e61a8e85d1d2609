"""One suite for all learners of the catalog: conventions, determinism, saved states and input formats."""

from __future__ import annotations

import inspect
import json
import tracemalloc
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from sparse_cases import features, frozen, noncanonical

from models.arrays import Labels, Matrix
from models.base import Context, Learner, Problem, State, Step
from models.base.validation import as_training_matrices
from models.catalog import ENTRIES, default_threshold
from models.data.examples import Examples
from models.errors import StopTraining, UnsuitableDataError
from models.labels import LabelTree
from models.mail import Email
from models.pipeline import Pipeline

# Short trainings. Stumps test a threshold because the data of scikit-learn's checks has no zeros to test for.
SHORT_TRAININGS: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"rounds": 20, "stump": "threshold"},
    "mp_boost": {"rounds": 20, "stump": "threshold"},
    "adaboost_lc": {"rounds": 20},
    "mmp": {"epochs": 2},
    "mlpp": {"epochs": 2},
    "binary_relevance_perceptron": {"epochs": 2},
    "h_m3": {"passes": 20},
}


def create(algorithm: str, **parameters: Any) -> Learner:
    return ENTRIES[algorithm].learner(**{**SHORT_TRAININGS.get(algorithm, {}), **parameters})


ALGORITHMS = sorted(ENTRIES)
every_learner = pytest.mark.parametrize("algorithm", ALGORITHMS)

COLUMN_OF_CLASSES = "Y with one column is one label as 0 and 1; classes need a one-dimensional y"
NO_BIAS = "without a bias and in few passes it does not reach the required accuracy on three clusters"
VOTES = "its scores are votes, and a label needs more than half of them, not more than 0"
COUNTS = "it is for word counts, not for clusters of points"

TOLERANCE = "liblinear stops at a tolerance, so its solutions differ in the fifth digit"

LIBLINEAR = {
    "check_sample_weight_equivalence_on_dense_data": TOLERANCE,
    "check_sample_weight_equivalence_on_sparse_data": TOLERANCE,
}
ONE_LABEL_AT_A_TIME = {
    "check_class_weight_classifiers": "class_weight balances each label; it is not one weight per class"
}
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "mmp": {"check_classifiers_train": NO_BIAS},
    "mlpp": {"check_classifiers_train": NO_BIAS, "check_classifier_multioutput": VOTES},
    "naive_bayes": {"check_classifiers_train": COUNTS, **ONE_LABEL_AT_A_TIME},
    "svm": {**ONE_LABEL_AT_A_TIME, **LIBLINEAR},
    "h_svm": {**ONE_LABEL_AT_A_TIME, **LIBLINEAR},
}


def expected_failures(learner: Learner) -> dict[str, str]:
    """Checks of scikit-learn that must fail, with the reasons. The suite fails if such a check passes."""
    return {"check_supervised_y_2d": COLUMN_OF_CLASSES, **EXPECTED_FAILURES.get(learner.algorithm, {})}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [create(algorithm) for algorithm in ALGORITHMS], expected_failed_checks=expected_failures
)
def test_follows_scikit_learns_conventions(estimator: Learner, check: Callable[[Learner], None]) -> None:
    check(estimator)


def problem(seed: int = 0) -> tuple[Matrix, Labels, Context]:
    """Word counts, and label sets that include all ancestors in a tree.

    An example is empty, two examples are equal, and the last columns are an empty one, a rare one, two equal
    ones, and one with other values in the same examples.
    """
    rng = np.random.default_rng(seed)
    X = np.zeros((40, 17))
    X[:, :12] = rng.poisson(0.6, size=(40, 12))
    X[7] = 0
    X[9] = X[8]
    X[20, 13] = 2.0
    X[:, 14] = X[:, 15] = X[:, 3]
    X[:, 16] = np.where(X[:, 4] > 0, X[::-1, 5] + 1, 0)
    tree = LabelTree({"b": "a", "c": "a", "e": "d"})
    names = ["a", "b", "c", "d", "e"]
    scores = X[:, :12] @ rng.normal(size=(12, 5)) + rng.normal(size=(40, 5))
    Y = np.zeros((40, 5), dtype=int)
    for row, relevant in enumerate(scores > 0.8):
        label_set = tree.closure(
            [name for name, is_relevant in zip(names, relevant, strict=True) if is_relevant]
        )
        Y[row, [names.index(name) for name in label_set]] = 1
    matrix, labels = as_training_matrices(X, Y)
    return matrix, labels, Context(labels=names, parents=tree.parent_indices(names))


def assert_same_state(one: State, other: State) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        np.testing.assert_array_equal(array, other[name], err_msg=name)


@every_learner
def test_the_constructor_has_the_defaults_of_the_parameters(algorithm: str) -> None:
    learner = ENTRIES[algorithm].learner
    fields = {*learner.parameters.model_fields} - {"algorithm"}
    arguments = {*inspect.signature(learner).parameters} - {"random_state"}
    assert arguments == fields
    assert learner().validated_parameters() == learner.parameters.model_validate({"algorithm": algorithm})


@every_learner
def test_the_constructor_refuses_unknown_names_and_the_docstring_has_every_parameter(algorithm: str) -> None:
    learner = ENTRIES[algorithm].learner
    with pytest.raises(
        TypeError, match=rf"{learner.__name__}\(.*\): got an unexpected keyword argument 'size'"
    ):
        learner(size=1)
    for name, field in learner.parameters.model_fields.items():
        first = (field.description or "").split()[:1]
        assert name == "algorithm" or f"\n    {name}: {''.join(first)}" in (learner.__doc__ or "")


@every_learner
def test_a_learner_can_be_created_from_its_parameters(algorithm: str) -> None:
    parameters = create(algorithm).validated_parameters()
    learner = ENTRIES[algorithm].learner.from_parameters(parameters, random_state=3)
    assert learner.validated_parameters() == parameters


@every_learner
def test_a_saved_learner_computes_identical_scores(algorithm: str) -> None:
    X, Y, context = problem()
    learner = create(algorithm).fit(X, Y, context=context)
    state = learner.get_state()
    for array in state.values():
        assert isinstance(array, np.ndarray)
        assert array.dtype != object
        # A file stores rows, and the order of an array can change how a product of matrices is rounded.
        assert array.flags.c_contiguous
        array.setflags(write=False)
    loaded = clone(learner).set_state(state)
    np.testing.assert_array_equal(loaded.decision_function(X), learner.decision_function(X))
    assert_same_state(loaded.get_state(), state)


@every_learner
def test_a_resumed_training_gives_an_identical_model(algorithm: str) -> None:
    X, Y, context = problem()
    snapshots: list[State] = []
    whole = create(algorithm).fit_problem(
        Problem(X, Y, context), monitor=lambda step: snapshots.append(step.snapshot())
    )
    expected = whole.get_state()
    for number, snapshot in enumerate(snapshots, start=1):
        taken: list[State] = []

        def stop_here(step: Step, number: int = number, taken: list[State] = taken) -> None:
            taken.append(step.snapshot())
            if len(taken) == number:
                raise StopTraining

        with pytest.raises(StopTraining):
            create(algorithm).fit_problem(Problem(X, Y, context), monitor=stop_here)
        assert_same_state(taken[-1], snapshot)
        completed: list[int] = []
        resumed = create(algorithm).fit_problem(
            Problem(X, Y, context),
            resume=taken[-1],
            monitor=lambda step, completed=completed: completed.append(step.completed),
        )
        assert_same_state(resumed.get_state(), expected)
        assert resumed.summary_ == whole.summary_
        assert len(completed) == len(snapshots) - number


@every_learner
def test_sparse_and_dense_input_give_identical_models(algorithm: str) -> None:
    X, Y, context = problem()
    sparse = create(algorithm).fit(X, Y, context=context)
    dense = create(algorithm).fit(X.toarray(), Y.toarray(), context=context)
    assert_same_state(sparse.get_state(), dense.get_state())
    np.testing.assert_array_equal(sparse.decision_function(X), dense.decision_function(X.toarray()))


@every_learner
def test_input_is_never_changed(algorithm: str) -> None:
    """Learners share the arrays of a canonical matrix, so none of them may sort or change one in place."""
    X, Y, context = problem()
    assert X.has_canonical_format
    learner = create(algorithm).fit(frozen(X), frozen(Y), context=context)
    scores = learner.decision_function(X)
    assert learner.predict(X).shape == Y.shape
    expected = create(algorithm).fit(X.copy(), Y.copy(), context=context)
    assert_same_state(learner.get_state(), expected.get_state())
    np.testing.assert_array_equal(scores, expected.decision_function(X.copy()))


@every_learner
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_storage_order_and_duplicates_do_not_matter(algorithm: str, data: st.DataObject) -> None:
    """With rare and equal columns, and arrays that are read-only, unsorted and have zeros and duplicates."""
    _, Y, context = problem()
    Y = Y[:15]
    X = data.draw(features(Y.shape[0], 6, values=("binary", "counts")))
    seed = data.draw(st.integers(0, 2**32 - 1))
    stored = frozen(noncanonical(X, seed))
    try:
        canonical = create(algorithm).fit(X, Y, context=context)
    except UnsuitableDataError:
        with pytest.raises(UnsuitableDataError):
            create(algorithm).fit(stored, Y, context=context)
        return
    other = create(algorithm).fit(stored, Y, context=context)
    assert_same_state(other.get_state(), canonical.get_state())
    np.testing.assert_array_equal(other.decision_function(stored), canonical.decision_function(X))


@every_learner
def test_unsorted_read_only_input_gives_identical_models(algorithm: str) -> None:
    X, Y, context = problem()
    canonical = create(algorithm).fit(X, Y, context=context)
    unsorted_X = frozen(noncanonical(X.toarray(), seed=1))
    unsorted_Y = frozen(noncanonical(Y.toarray().astype(float), seed=2))
    other = create(algorithm).fit(unsorted_X, unsorted_Y, context=context)
    assert_same_state(other.get_state(), canonical.get_state())
    np.testing.assert_array_equal(other.decision_function(unsorted_X), canonical.decision_function(X))


@every_learner
def test_the_same_seed_gives_identical_models(algorithm: str) -> None:
    X, Y, context = problem()
    first, second = (create(algorithm).fit(X, Y, context=context).get_state() for _ in range(2))
    assert_same_state(first, second)


ORDER_MATTERS = {
    "h_m3",  # equal labelings are resolved by label order, and training stops at a duality gap above zero
    "mlpp",  # if the score of a pair is 0, the vote goes to the label that sorts first (sgn(0) = +1)
}
"""Learners whose scores are no permutation if labels are permuted."""


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ORDER_MATTERS])
def test_permuted_labels_get_permuted_scores(algorithm: str) -> None:
    X, Y, context = problem()
    assert context.parents is not None
    order = np.array([3, 0, 4, 2, 1])
    position = np.argsort(order)
    parents = context.parents[order]
    permuted_context = Context(parents=np.where(parents < 0, -1, position[parents]))
    scores = create(algorithm).fit(X, Y, context=Context(parents=context.parents)).decision_function(X)
    permuted = create(algorithm).fit(X, Y[:, order], context=permuted_context).decision_function(X)
    np.testing.assert_array_equal(permuted, scores[:, order])


@every_learner
def test_a_batch_has_the_scores_of_its_rows(algorithm: str) -> None:
    X, Y, context = problem()
    learner = create(algorithm).fit(X, Y, context=context)
    scores = learner.decision_function(X)
    assert scores.dtype == np.float64
    assert scores.shape == Y.shape
    rows = np.vstack([learner.decision_function(X[[row]]) for row in range(X.shape[0])])
    np.testing.assert_array_equal(rows, scores)


@every_learner
def test_sparse_data_stays_sparse(algorithm: str) -> None:
    """As a dense matrix, these 2,000 examples would need 32 GB."""
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


@every_learner
def test_a_label_without_an_example_is_never_predicted(algorithm: str) -> None:
    X, Y, context = problem()
    relevant = Y.toarray()
    relevant[:, [2, 4]] = 0
    learner = create(algorithm).fit(*as_training_matrices(X.toarray(), relevant), context=context)
    rng = np.random.default_rng(1)
    others = [rng.poisson(0.6, (50, 17)), np.abs(rng.normal(size=(50, 17))), np.zeros((1, 17))]
    for documents in (X.toarray(), *others):
        scores = learner.decision_function(documents)
        assert np.isfinite(scores).all()
        assert (scores[:, [2, 4]] <= default_threshold(learner, 5)).all()


@pytest.fixture(scope="module")
def mails() -> Examples:
    """The training part of the messages of ``covey demo``."""
    lines = (files("app.demo") / "messages.jsonl").read_text("utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["split"] == "train"]
    return Examples(
        "email",
        [Email(subject=record["email"]["subject"], text=record["email"]["text"]) for record in records],
        [tuple(record["labels"]) for record in records],
    )


@every_learner
def test_a_message_without_a_known_word_gets_no_label(algorithm: str, mails: Examples) -> None:
    short = {name: value for name, value in SHORT_TRAININGS.get(algorithm, {}).items() if name != "stump"}
    pipeline = Pipeline(learner=ENTRIES[algorithm].learner(**short)).fit(mails)
    known, unknown = Email(text="My invoice is wrong."), Email(text="asdf")
    assert pipeline.predict([unknown, known, unknown]) == [(), pipeline.predict([known])[0], ()]
    for mail in (unknown, Email()):
        assert pipeline.rank([mail]).label_sets == [[]]
        assert pipeline.predictions([mail], top=1)[0].labels == []
