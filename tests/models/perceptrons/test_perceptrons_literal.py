"""The perceptrons against literal versions of the pseudocode in the paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sparse_cases import features, frozen, noncanonical

from models.arrays import AnyArray, Floats
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron
from models.perceptrons.mmp import Loss, Penalty, update_sizes

Problem = tuple[Floats, AnyArray]
MARGINS = st.sampled_from([0.0, 1.5, 4.0])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Small problems with rare, equal and empty columns, repeated rows, and labels always or never on.

    Values are multiples of 1/4, so that ties are exact and common.
    """
    g, r, k = draw(st.integers(1, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    X = np.round(10 * draw(features(g, r))) / 4
    Y = draw(arrays(np.int64, (g, k), elements=st.integers(0, 1)))
    always = draw(st.sampled_from([None, 0, 1]))
    if always is not None:
        Y[:, draw(st.integers(0, k - 1))] = always
    again = draw(st.lists(st.integers(0, g - 1), max_size=6))
    return np.vstack([X, X[again]]), np.vstack([Y, Y[again]])


def stored(problem: Problem) -> tuple[Any, Any]:
    """The problem as read-only sparse matrices: unsorted, with explicit zeros and duplicate entries."""
    X, Y = problem
    return frozen(noncanonical(X, len(X))), frozen(noncanonical(Y, len(X), duplicates=False))


def inner(w: list[float], x: Floats) -> float:
    total = 0.0
    for weight, value in zip(w, x.tolist(), strict=True):
        total += value * weight
    return total


def training_ranks(scores: list[float], relevant: set[int]) -> dict[int, int]:
    """Irrelevant labels rank first among equals."""
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], c in relevant, c))
    return {c: rank for rank, c in enumerate(order, start=1)}


def literal_loss(ranks: dict[int, int], relevant: set[int], irrelevant: set[int], loss: str) -> float:
    wrong = [(c, d) for c in relevant for d in irrelevant if ranks[c] > ranks[d]]
    if loss == "is_error":
        return float(bool(wrong))
    if loss == "error_set_size":
        return float(len(wrong))
    if loss == "margin":
        return float(max(0, max(ranks[c] for c in relevant) - min(ranks[d] for d in irrelevant)))
    precisions = [sum(ranks[b] <= ranks[c] for b in relevant) / ranks[c] for c in relevant]
    return 1 - sum(precisions) / len(relevant)


def literal_mmp(
    X: Floats, Y: AnyArray, epochs: int, loss: str, penalty: str, margin: float
) -> tuple[Floats, int]:
    """Weights by figure 1, and the operations of table I. The margin lowers the scores of relevant labels."""
    k, r = Y.shape[1], X.shape[1]
    w = [[0.0] * r for _ in range(k)]
    operations = 0
    for _ in range(epochs):
        for x, y in zip(X, Y, strict=True):
            relevant, irrelevant = set(np.flatnonzero(y).tolist()), set(np.flatnonzero(y == 0).tolist())
            s = [inner(w[c], x) - (margin if c in relevant else 0) for c in range(k)]
            operations += k
            if not relevant or not irrelevant:
                continue
            ranks = training_ranks(s, relevant)
            delta = literal_loss(ranks, relevant, irrelevant, loss)
            errors = sorted((c, d) for c in relevant for d in irrelevant if ranks[c] > ranks[d])
            if not errors:
                continue
            assert delta > 0
            p = dict.fromkeys(errors, 1.0)
            if penalty == "proportional" and any(s[d] - s[c] > 0 for c, d in errors):
                p = {(c, d): s[d] - s[c] for c, d in errors}
            if penalty == "max":
                largest = max(s[d] - s[c] for c, d in errors)
                p = {next((c, d) for c, d in errors if s[d] - s[c] == largest): 1.0}
            tau, sigma = [0.0] * k, 0.0
            for (c, d), amount in p.items():
                tau[c] += amount
                tau[d] -= amount
                sigma += amount
            for c in range(k):
                if tau[c]:
                    operations += 1
                    for f in range(r):
                        w[c][f] += delta * (tau[c] / sigma) * float(x[f])
    return np.array(w).T, operations


def literal_binary(X: Floats, y: AnyArray, epochs: int, margin: float) -> tuple[list[float], int]:
    """Eqs. 1 and 2 for targets +1 and -1; the perceptron skips examples with target 0.

    An output within the margin counts as wrong.
    """
    w, operations = [0.0] * X.shape[1], 0
    for _ in range(epochs):
        for x, target in zip(X, y.tolist(), strict=True):
            if target == 0:
                continue
            s = inner(w, x)
            output = 1 if s >= 0 else -1
            if target * s < margin:
                output = -target
            operations += 1 + (output != target)
            w = [weight + (target - output) * float(value) for weight, value in zip(w, x, strict=True)]
    return w, operations


def literal_mlpp_scores(
    X: Floats, Y: AnyArray, at: Floats, epochs: int, voting: str, calibrated: bool, margin: float
) -> Floats:
    """Figure 3 and section IV. Column k is the artificial label, relevant if the other label is not."""
    k = Y.shape[1]
    trained: dict[tuple[int, int], list[float]] = {}
    for u, v in combinations(range(k), 2):
        trained[u, v] = literal_binary(X, Y[:, u] - Y[:, v], epochs, margin)[0]
    if calibrated:
        for u in range(k):
            trained[u, k] = literal_binary(X, 2 * Y[:, u] - 1, epochs, margin)[0]
    result = np.zeros((len(at), k + 1))
    for i, x in enumerate(at):
        for (u, v), w in trained.items():
            s = inner(w, x)
            result[i, u if s >= 0 else v] += 1 if voting == "max_wins" else abs(s)
    return result[:, :k] - (result[:, k:] if calibrated else 0)


@settings(max_examples=50, deadline=None)
@given(
    problems(),
    st.sampled_from(get_args(Loss)),
    st.sampled_from(get_args(Penalty)),
    st.integers(1, 2),
    MARGINS,
)
def test_mmp_is_figure_1(problem: Problem, loss: Any, penalty: Any, epochs: int, margin: float) -> None:
    X, Y = problem
    weights, operations = literal_mmp(X, Y, epochs, loss, penalty, margin)
    learner = MMP(epochs=epochs, loss=loss, penalty=penalty, margin=margin).fit(*stored(problem))
    np.testing.assert_allclose(learner.weights_, weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.decision_function(X), X @ weights, rtol=0, atol=1e-9)
    assert learner.operations_ == learner.summary_.facts["perceptron_operations"] == operations


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(1, 2), MARGINS)
def test_binary_relevance_is_equations_1_to_3(problem: Problem, epochs: int, margin: float) -> None:
    X, Y = problem
    literal = [literal_binary(X, 2 * Y[:, j] - 1, epochs, margin) for j in range(Y.shape[1])]
    weights = np.array([w for w, _ in literal]).T
    learner = BinaryRelevancePerceptron(epochs=epochs, margin=margin).fit(*stored(problem))
    np.testing.assert_allclose(learner.weights_, weights, rtol=0, atol=1e-9)
    expected = np.where(Y.all(axis=0), 1.0, X @ weights)
    np.testing.assert_allclose(learner.decision_function(X), expected, rtol=0, atol=1e-9)
    assert learner.operations_ == sum(operations for _, operations in literal)


@settings(max_examples=50, deadline=None)
@given(problems(), st.sampled_from(["max_wins", "weighted"]), st.booleans(), st.integers(1, 2), MARGINS)
def test_mlpp_is_figure_3_and_the_vote(
    problem: Problem, voting: Any, calibrated: bool, epochs: int, margin: float
) -> None:
    X, Y = problem
    learner = MLPP(epochs=epochs, voting=voting, calibrated=calibrated, margin=margin).fit(*stored(problem))
    expected = literal_mlpp_scores(X, Y, X, epochs, voting, calibrated, margin)
    np.testing.assert_allclose(learner.decision_function(X), expected, rtol=0, atol=1e-9)
    k = Y.shape[1]
    operations = sum(
        literal_binary(X, Y[:, u] - Y[:, v], epochs, margin)[1] for u, v in combinations(range(k), 2)
    )
    if calibrated:
        operations += sum(literal_binary(X, 2 * Y[:, u] - 1, epochs, margin)[1] for u in range(k))
    assert learner.operations_ == operations


def test_the_papers_example_of_an_update() -> None:
    """Section III: a relevant label below three irrelevant labels moves three times as far as each."""
    up, down = update_sizes(np.array([0.0]), np.array([3.0, 2.0, 1.0]), "is_error", "uniform")
    np.testing.assert_allclose(up, [1])
    np.testing.assert_allclose(down, [1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("loss", get_args(Loss))
@pytest.mark.parametrize("penalty", get_args(Penalty))
@settings(max_examples=25, deadline=None)
@given(
    relevant=st.lists(st.integers(-3, 3), min_size=1, max_size=4),
    irrelevant=st.lists(st.integers(-3, 3), min_size=1, max_size=4),
)
def test_relevant_and_irrelevant_labels_move_by_delta_each(
    loss: Any, penalty: Any, relevant: list[int], irrelevant: list[int]
) -> None:
    if max(irrelevant) < min(relevant):
        irrelevant = [*irrelevant, max(relevant)]
    scores = [float(s) for s in relevant + irrelevant]
    k, m = len(scores), len(relevant)
    delta = literal_loss(training_ranks(scores, set(range(m))), set(range(m)), set(range(m, k)), loss)
    up, down = update_sizes(np.array(scores[:m]), np.array(scores[m:]), loss, penalty)
    assert up.sum() == pytest.approx(delta, abs=1e-12)
    assert down.sum() == pytest.approx(delta, abs=1e-12)


def weights_of(learner: Any) -> AnyArray:
    return np.hstack([weights for name, weights in learner.get_state().items() if name.endswith("weights")])


@pytest.mark.parametrize("make", [MMP, BinaryRelevancePerceptron, partial(MLPP, calibrated=True)])
def test_random_initial_weights_and_shuffling_follow_the_seed(make: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((40, 30)), (rng.random((40, 5)) < 0.3).astype(int)
    weights = [weights_of(make(initial="random", shuffle=True, random_state=s).fit(X, Y)) for s in (0, 0, 1)]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
    untouched = weights_of(make(initial="random").fit(np.zeros((1, 2_000)), [[1, 0]]))
    assert untouched.std() == pytest.approx(1e-3, rel=0.1)
    assert len(np.unique(untouched)) == untouched.size


@pytest.mark.parametrize("make", [MMP, BinaryRelevancePerceptron, partial(MLPP, calibrated=True)])
def test_a_second_fit_starts_from_the_same_random_weights(make: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((20, 6)), (rng.random((20, 4)) < 0.3).astype(int)
    learner = make(initial="random").fit(X, Y)
    once = weights_of(learner).copy()
    np.testing.assert_array_equal(weights_of(learner.fit(X, Y)), once)


def test_a_random_pair_of_labels_without_examples_has_no_favorite() -> None:
    """With zeros, sgn(0) = +1 always votes for the label that sorts first."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 40)), np.zeros((30, 3), dtype=int)
    Y[:, 2] = 1
    favored = {
        initial: MLPP(initial=initial).fit(X, Y).decision_function(rng.normal(size=(400, 40)))
        for initial in ("zeros", "random")
    }
    first = {initial: float((scores[:, 0] > scores[:, 1]).mean()) for initial, scores in favored.items()}
    assert first["zeros"] > 0.95
    assert 0.3 < first["random"] < 0.7


@pytest.mark.parametrize("learner", [MMP(epochs=3), BinaryRelevancePerceptron(epochs=3), MLPP(epochs=3)])
def test_every_epoch_has_a_new_random_order(learner: Any) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 5)), (rng.random((60, 4)) < 0.4).astype(int)
    shuffled = learner.set_params(shuffle=True).fit(X, Y).decision_function(X)
    orders = [np.random.default_rng([0, 60 * epoch]).permutation(60) for epoch in range(3)]
    assert not np.array_equal(orders[0], orders[1])
    rows = np.concatenate(orders)
    in_order = learner.set_params(shuffle=False, epochs=1).fit(X[rows], Y[rows]).decision_function(X)
    np.testing.assert_array_equal(shuffled, in_order)
