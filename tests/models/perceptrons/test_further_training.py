"""Further training of the incremental learners: new examples and labels, resuming, and the learning curve."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sparse_cases import problem_of
from threadpoolctl import threadpool_limits

from models.arrays import AnyArray, Floats
from models.base import Context, State, Step, incremental
from models.base.incremental import IncrementalLearner
from models.base.learning_curve import MEASURES, example_measures
from models.baselines.naive_bayes import NaiveBayes
from models.errors import ParameterError, StopTraining, UnsuitableDataError
from models.labels.ranking import ranks
from models.measures import rankings
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron

Factory = Callable[[], IncrementalLearner]

VARIANTS: list[Factory] = [
    MMP,
    lambda: MMP(loss="average_precision", penalty="proportional"),
    lambda: MMP(initial="random"),
    BinaryRelevancePerceptron,
    lambda: BinaryRelevancePerceptron(initial="random"),
    MLPP,
    lambda: MLPP(initial="random", calibrated=True),
    lambda: MLPP(voting="weighted", calibrated=True),
    NaiveBayes,
    lambda: NaiveBayes(label_mode="single_label"),
]
ONE_PER_ALGORITHM: list[Factory] = [MMP, BinaryRelevancePerceptron, lambda: MLPP(calibrated=True), NaiveBayes]
every_variant = pytest.mark.parametrize("make", VARIANTS)
every_algorithm = pytest.mark.parametrize("make", ONE_PER_ALGORITHM)


def problem(seed: int = 0, g: int = 60, r: int = 12, k: int = 5) -> tuple[Floats, AnyArray]:
    """Counts, so that the sums of naive Bayes are exact in any order."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 5, size=(g, r)) * (rng.random((g, r)) < 0.4)
    return X.astype(float), (rng.random((g, k)) < 0.3).astype(int)


def assert_same_state(one: IncrementalLearner, other: IncrementalLearner) -> None:
    a, b = one.get_state(), other.get_state()
    assert a.keys() == b.keys()
    for name in a:
        if name not in {"curve", "curve_sums"}:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@every_variant
@settings(max_examples=5, deadline=None)
@given(cuts=st.lists(st.integers(0, 60), max_size=4), seed=st.integers(0, 100))
def test_partial_fits_learn_the_same_as_one_fit(make: Factory, cuts: list[int], seed: int) -> None:
    X, Y = problem(seed)
    whole, pieces = make().fit(X, Y), make()
    edges = sorted({0, 60, *cuts})
    for start, stop in pairwise(edges):
        pieces.partial_fit(X[start:stop], Y[start:stop])
    assert_same_state(whole, pieces)
    np.testing.assert_array_equal(whole.decision_function(X), pieces.decision_function(X))
    assert whole.summary_ == pieces.summary_
    if not isinstance(whole, NaiveBayes):  # it tests whole chunks, which differ here
        np.testing.assert_array_equal(whole.learning_curve_[-1], pieces.learning_curve_[-1])


@every_variant
def test_new_labels_are_inserted_in_label_order(make: Factory) -> None:
    X, Y = problem()
    learner = make().fit(X, Y, context=Context(labels=["b", "d", "f", "h", "j"]))
    before = learner.decision_function(X)
    learner.partial_fit(X[:1], [[0, 0]], context=Context(labels=["a", "e"]))
    assert learner.labels_ == ["a", "b", "d", "e", "f", "h", "j"]
    assert learner.label_counts_.tolist() == [0, *Y.sum(axis=0)[:2], 0, *Y.sum(axis=0)[2:]]
    assert learner.decision_function(X).shape == (60, 7)
    assert before.shape == (60, 5)
    Y2 = (np.random.default_rng(1).random((60, 2)) < 0.5).astype(int)
    learner.partial_fit(X, Y2, context=Context(labels=["e", "z"]))
    assert learner.labels_ == ["a", "b", "d", "e", "f", "h", "j", "z"]
    assert learner.label_counts_[[3, 7]].tolist() == Y2.sum(axis=0).tolist()


@pytest.mark.parametrize("make", [MMP, BinaryRelevancePerceptron])
def test_new_labels_do_not_change_the_scores_of_known_labels(make: Factory) -> None:
    X, Y = problem()
    learner = make().fit(X, Y, context=Context(labels=["b", "d", "f", "h", "j"]))
    before = learner.decision_function(X)
    # An example without features changes no weight.
    learner.partial_fit(np.zeros((1, 12)), [[1, 0]], context=Context(labels=["a", "b"]))
    after = learner.decision_function(X)
    np.testing.assert_array_equal(after[:, 1:], before)
    np.testing.assert_array_equal(after[:, 0], 0)


def test_new_labels_do_not_change_the_votes_of_known_labels() -> None:
    X, Y = problem()
    learner = MLPP(voting="weighted", calibrated=True)
    learner.fit(X, Y, context=Context(labels=["b", "d", "f", "h", "j"]))
    before = learner.decision_function(X)
    learner.partial_fit(np.zeros((1, 12)), [[0, 0, 0]], context=Context(labels=["a", "e", "z"]))
    after = learner.decision_function(X)
    np.testing.assert_allclose(after[:, [1, 2, 4, 5, 6]], before, rtol=0, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 100), first=st.integers(1, 59))
def test_naive_bayes_learns_a_label_that_is_added_later_as_if_it_was_there_from_the_start(
    seed: int, first: int
) -> None:
    X, Y = problem(seed)
    Y[:first, 2] = 0
    names = ["a", "b", "c", "d", "e"]
    whole = NaiveBayes().fit(X, Y, context=Context(labels=names))
    others = Context(labels=["a", "b", "d", "e"])
    grown = NaiveBayes().fit(X[:first], np.delete(Y[:first], 2, axis=1), context=others)
    grown.partial_fit(X[first:], Y[first:], context=Context(labels=names))
    assert_same_state(whole, grown)
    np.testing.assert_array_equal(whole.decision_function(X), grown.decision_function(X))


@every_algorithm
def test_known_labels_that_are_not_named_are_irrelevant(make: Factory) -> None:
    X, Y = problem()
    named = Context(labels=["a", "b", "c", "d", "e"])
    one, other = make().fit(X, Y, context=named), make().fit(X, Y, context=named)
    Y2 = Y.copy()
    Y2[:, [0, 3]] = 0
    one.partial_fit(X, Y2, context=named)
    other.partial_fit(X, Y2[:, [1, 2, 4]], context=Context(labels=["b", "c", "e"]))
    assert_same_state(one, other)


@every_algorithm
def test_mismatched_examples_are_rejected_and_change_nothing(make: Factory) -> None:
    X, Y = problem()
    learner = make().fit(X, Y)
    before = {name: array.copy() for name, array in learner.get_state().items()}
    with pytest.raises(ValueError, match="5 features"):
        learner.partial_fit(X[:, :5], Y)
    with pytest.raises(ValueError, match="Y has 4 labels, but this learner has 5"):
        learner.partial_fit(X, Y[:, :4])
    with pytest.raises(UnsuitableDataError, match="trained with 5 labels without names"):
        learner.partial_fit(X, Y[:, :2], context=Context(labels=["a", "b"]))
    with pytest.raises(ParameterError, match="label order"):
        learner.partial_fit(X, Y, context=Context(labels=["b", "a", "c", "d", "e"]))
    with pytest.raises(ParameterError, match="there are 2 label names for 5 labels"):
        learner.partial_fit(X, Y, context=Context(labels=["a", "b"]))
    for name, array in learner.get_state().items():
        np.testing.assert_array_equal(array, before[name])


@every_variant
def test_a_training_resumed_within_an_epoch_gives_identical_results(
    make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental, "CHUNK", 25)
    monkeypatch.setattr("models.baselines.naive_bayes.FIRST_CHUNK", 25)
    X, Y = problem()
    X = X / 3
    parameters = {} if isinstance(make(), NaiveBayes) else {"epochs": 3, "shuffle": True}
    steps: list[Step] = []
    whole = (
        make()
        .set_params(**parameters)
        .fit_problem(problem_of(X, Y, Context(labels=list("abcde"))), monitor=steps.append)
    )
    assert {step.unit for step in steps} == {"examples"}
    assert steps[-1].completed == steps[-1].total == 60 * parameters.get("epochs", 1)
    for stop_after in range(1, len(steps) + 1):
        snapshots: list[State] = []

        def stop(step: Step, after: int = stop_after, snapshots: list[State] = snapshots) -> None:
            snapshots.append(step.snapshot())
            if len(snapshots) == after:
                raise StopTraining

        interrupted = make().set_params(**parameters)
        with pytest.raises(StopTraining):
            interrupted.fit_problem(problem_of(X, Y, Context(labels=list("abcde"))), monitor=stop)
        later: list[Step] = []
        copies = {name: array.copy() for name, array in snapshots[-1].items()}
        resumed = make().set_params(**parameters)
        resumed.fit_problem(
            problem_of(X, Y, Context(labels=list("abcde"))), monitor=later.append, resume=snapshots[-1]
        )
        assert_same_state(whole, resumed)
        np.testing.assert_array_equal(whole.learning_curve_, resumed.learning_curve_)
        assert whole.summary_ == resumed.summary_
        expected = [(step.completed, step.measures) for step in steps[stop_after:]]
        assert [(step.completed, step.measures) for step in later] == expected
        for name, array in snapshots[-1].items():
            np.testing.assert_array_equal(array, copies[name], err_msg=name)


@every_variant
def test_further_training_of_a_loaded_learner_is_identical_and_does_not_change_the_saved_state(
    make: Factory,
) -> None:
    X, Y = problem()
    learner = make().fit(X, Y, context=Context(labels=["a", "b", "c", "d", "é☃"]))
    state = learner.get_state()
    assert all(array.dtype.kind in "biuf" for array in state.values())
    before = {name: array.copy() for name, array in state.items()}
    for array in state.values():
        array.setflags(write=False)
    loaded = make().set_state(state)
    np.testing.assert_array_equal(loaded.decision_function(X), learner.decision_function(X))
    assert (loaded.n_features_in_, loaded.n_labels_, loaded.labels_) == (12, 5, ["a", "b", "c", "d", "é☃"])
    X2, Y2 = problem(1)
    assert_same_state(learner.partial_fit(X2, Y2), loaded.partial_fit(X2, Y2))
    np.testing.assert_array_equal(loaded.decision_function(X), learner.decision_function(X))
    for name, array in state.items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("make", VARIANTS[:6])
def test_the_learning_curve_is_test_then_train(make: Factory) -> None:
    """Every example is scored before the learner trains on it."""
    X, Y = problem()
    untrained = make().fit(np.zeros((1, 12)), [[0] * 5])
    each = [example_measures(untrained.decision_function(X[:1]), csr_array(Y[:1]))]
    learner = make().partial_fit(X[:1], Y[:1])
    for i in range(1, 60):
        each.append(example_measures(learner.decision_function(X[i : i + 1]), csr_array(Y[i : i + 1])))
        learner.partial_fit(X[i : i + 1], Y[i : i + 1])
    steps: list[Step] = []
    curve = make().fit_problem(problem_of(X, Y), monitor=steps.append).learning_curve_
    assert curve[-1, 0] == 60
    np.testing.assert_allclose(curve[-1, 1:], np.vstack(each).mean(axis=0), rtol=0, atol=1e-12)
    assert steps[-1].measures == dict(zip(MEASURES, curve[-1, 1:].tolist(), strict=True))


@pytest.mark.parametrize("make", [MMP, BinaryRelevancePerceptron, MLPP])
def test_the_first_pass_reports_more_often_at_its_start(make: Factory) -> None:
    X, Y = problem(g=1000)
    steps: list[Step] = []
    make().set_params(epochs=2).fit_problem(problem_of(X, Y), monitor=steps.append)
    assert [step.completed for step in steps] == [100, 200, 300, 450, 675, 1000, 2000]


def test_naive_bayes_tests_each_chunk_on_the_totals_of_all_earlier_chunks() -> None:
    X, Y = problem(g=500)
    measured = [
        example_measures(NaiveBayes().fit(X[:a], Y[:a]).decision_function(X[a:b]), csr_array(Y[a:b]))
        for a, b in [(100, 200), (200, 400), (400, 500)]
    ]
    curve = NaiveBayes().fit(X, Y).learning_curve_
    assert curve[:, 0].tolist() == [200, 400, 500]
    np.testing.assert_allclose(curve[-1, 1:], np.vstack(measured).mean(axis=0), rtol=0, atol=1e-12)


def test_with_many_labels_mlpp_tests_every_nth_example() -> None:
    X, Y = problem(k=60)
    learner = MLPP().fit(X, Y)
    assert learner.summary_.facts["tested_every"] == 4  # 1,770 pairs
    half = MLPP().fit(X[:4], Y[:4])
    scores = [MLPP().fit(X[:i], Y[:i]).decision_function(X[i : i + 1]) for i in range(4, 60, 4)]
    first = half.learning_curve_[0, 1:]
    rest = example_measures(np.vstack(scores), csr_array(Y[4::4]))
    np.testing.assert_allclose(
        learner.learning_curve_[-1, 1:], np.vstack([first, rest]).mean(axis=0), rtol=0, atol=1e-12
    )


def test_the_measures_of_a_later_epoch_cover_that_epoch_only() -> None:
    X, Y = problem()
    steps: list[Step] = []
    learner = MMP(epochs=2).fit_problem(problem_of(X, Y), monitor=steps.append)
    once = MMP().fit(X, Y)
    again = MMP().set_state(once.get_state())
    again._first_pass_means = type(again._first_pass_means)()
    again.partial_fit(X, Y)
    assert [step.completed for step in steps] == [60, 120]
    assert steps[1].measures == again._first_pass_means.measures
    np.testing.assert_array_equal(learner.learning_curve_, once.learning_curve_)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6))
def test_the_measures_of_the_learning_curve_are_those_of_section_2c(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores, Y = rng.integers(-2, 3, size=(8, k)).astype(float), rng.integers(0, 2, size=(8, k))
    expected = []
    for r, y in zip(ranks(scores).tolist(), Y.tolist(), strict=True):
        relevant, irrelevant = [r[c] for c in range(k) if y[c]], [r[c] for c in range(k) if not y[c]]
        if not relevant:
            continue
        errors = sum(c > d for c in relevant for d in irrelevant)
        margin = max(0, max(relevant) - min(irrelevant)) if irrelevant else 0
        precision = sum(sum(b <= c for b in relevant) / c for c in relevant) / len(relevant)
        expected.append([float(errors > 0), errors, margin, precision])
    result = example_measures(scores, csr_array(Y))
    np.testing.assert_allclose(result, np.array(expected).reshape(-1, 4), rtol=0, atol=1e-12)
    if expected:
        means = [getattr(rankings, name)(csr_array(Y), scores) for name in MEASURES]
        np.testing.assert_allclose(result.mean(axis=0), means, rtol=0, atol=1e-12)


@every_algorithm
def test_results_do_not_depend_on_the_number_of_threads(make: Factory) -> None:
    X, Y = problem(g=30, r=400, k=60)
    fitted = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fitted.append(make().fit(X / 7, Y))
    assert_same_state(*fitted)


@every_algorithm
def test_examples_without_labels_or_features(make: Factory) -> None:
    X, Y = problem()
    X[10:20], Y[15:25] = 0, 0
    assert np.isfinite(make().fit(X, Y).decision_function(np.vstack([X, np.zeros((1, 12))]))).all()


def test_sparse_examples_stay_sparse() -> None:
    """As a dense matrix, these examples would take 16 GB."""
    g, r = 2_000, 1_000_000
    rng = np.random.default_rng(0)
    X = csr_array((rng.random(g), rng.integers(0, r, size=g), np.arange(g + 1)), shape=(g, r))
    Y = csr_array(rng.integers(0, 2, size=(g, 2)))
    for make in ONE_PER_ALGORITHM:
        assert make().fit(X, Y).decision_function(X).shape == (g, 2)
