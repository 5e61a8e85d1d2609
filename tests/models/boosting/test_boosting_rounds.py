"""The fast rounds choose the pivots of a simple vectorised round, on problems too large for loops."""

from __future__ import annotations

import gzip
import json
import re
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import FOLDER
from scipy.sparse import csr_array, random_array

from models.arrays import Floats, Ints, Labels, Matrix
from models.base import Context, Problem, Step, ValidationSet
from models.base.validation import as_training_matrices
from models.boosting.adaboost_mh import AdaBoostMH
from models.boosting.adaboost_mh_rounds import AdaBoostMHRounds
from models.boosting.booster import Booster
from models.boosting.early_stopping import draw_held_out
from models.boosting.mp_boost import MPBoost
from models.boosting.mp_boost_rounds import MPBoostRounds
from models.boosting.negative_sums import PerLabelNegativeSums, SharedNegativeSums
from models.boosting.stumps import presence_stumps
from models.errors import ParameterError, UnsuitableDataError

TIE = 1e-12


class SimpleRounds:
    """The simple round: two products of the term-document matrix, and Z for every term and label."""

    def __init__(self, X: Matrix, Y: Labels, *, together: bool, variant: str = "real") -> None:
        g, k = Y.shape
        self.together, self.variant = together, variant
        self.smoothing = 1 / (g * k)
        self.terms: Any = X.T.tocsr()
        self.terms.data[:] = 1
        self.relevant = Y.toarray().astype(bool)
        self.D = np.full((g, k), 1 / (g * k) if together else 1 / g)
        positives = self.relevant.sum(axis=0)
        frequency = np.diff(self.terms.indptr)[:, None]
        n_positive = np.asarray(self.terms @ self.relevant.astype(float))
        n_negative = frequency - n_positive
        counts = [positives - n_positive, (g - positives) - n_negative, n_positive, n_negative]
        self.empty = [count == 0 for count in counts]
        self.occurs = frequency[:, 0] > 0

    def weights(self) -> Floats:
        """(4, terms, labels) W, total minus present on the absent side; 0 for a side without documents."""
        positive = np.where(self.relevant, self.D, 0)
        negative = np.where(self.relevant, 0, self.D)
        present = [self.terms @ positive, self.terms @ negative]
        W = np.stack([positive.sum(axis=0) - present[0], negative.sum(axis=0) - present[1], *present])
        for side, empty in zip(W, self.empty, strict=True):
            side[empty] = 0
        return np.asarray(np.maximum(W, 0))

    def Z(self, W: Floats) -> Floats:  # noqa: N802
        """(terms, searches) Z."""
        if self.variant == "discrete":
            loss = 2 * (np.minimum(W[0], W[1]) + np.minimum(W[2], W[3]))
            loss = loss.sum(axis=1, keepdims=True) if self.together else loss
            return np.asarray(np.sqrt(loss * (2 - loss)))
        Z = 2 * np.sqrt(W[2] * W[3])
        Z += W[0] + W[1] if self.variant == "real_abstaining" else 2 * np.sqrt(W[0] * W[1])
        return np.asarray(Z.sum(axis=1, keepdims=True) if self.together else Z)

    def choose_pivots(self) -> Ints:
        """The pivot of every search."""
        Z = self.Z(self.weights())
        Z[~self.occurs] = np.inf
        return np.asarray((Z.min(axis=0) + TIE >= Z).argmax(axis=0))

    def boost(self, pivots: Ints) -> None:
        k = self.D.shape[1]
        pivot = np.broadcast_to(pivots, k)
        W = self.weights()
        chosen = W[:, pivot, np.arange(k)]
        e = self.smoothing
        if self.variant == "discrete":
            loss = 2 * (np.minimum(chosen[0], chosen[1]) + np.minimum(chosen[2], chosen[3]))
            loss = loss.sum() if self.together else loss
            alpha = 0.5 * np.log((2 - loss + e) / (loss + e))
            a0, a1 = alpha * np.sign(chosen[0] - chosen[1]), alpha * np.sign(chosen[2] - chosen[3])
        else:
            a1 = 0.5 * np.log((chosen[2] + e) / (chosen[3] + e))
            a0 = (
                0 * a1
                if self.variant == "real_abstaining"
                else 0.5 * np.log((chosen[0] + e) / (chosen[1] + e))
            )
        present = self.terms[pivot].toarray().T != 0
        self.D *= np.exp(np.where(self.relevant, -1, 1) * np.where(present, a1, a0))
        self.D /= self.D.sum() if self.together else self.D.sum(axis=0)


def sparse_problem(seed: int, g: int = 400, r: int = 900, k: int = 12) -> tuple[Matrix, Labels]:
    """Documents whose labels depend on a few of their terms, with frequent, rare and identical terms."""
    rng = np.random.default_rng(seed)
    frequency = rng.zipf(1.3, r).clip(1, 60)
    X = (rng.random((g, r)) < frequency / 150).astype(float)
    X[:, 7] = X[:, 3]
    rule = np.where(rng.random((r, k)) < 0.03, rng.normal(size=(r, k)), 0.0)
    scores = X @ rule + rng.normal(scale=0.4, size=(g, k))
    rare = [np.quantile(scores[:, j], quantile) for j, quantile in enumerate(rng.uniform(0.5, 0.995, k))]
    Y = (scores > rare).astype(int)
    return as_training_matrices(csr_array(X), Y)


def is_tie(simple: SimpleRounds, chosen: Ints) -> bool:
    """Whether the pivots tie in the simple round, up to the rounding errors of its subtractions."""
    Z = simple.Z(simple.weights())
    searches = np.arange(Z.shape[1])
    return bool((Z[chosen, searches] <= Z.min(axis=0) + 1e-7).all())


def check_same_pivots(X: Matrix, Y: Labels, learner: type[Booster], variant: Any, rounds: int) -> None:
    simple = SimpleRounds(X, Y, together=learner is AdaBoostMH, variant=variant)
    stumps = presence_stumps(X)
    engine = AdaBoostMHRounds if learner is AdaBoostMH else MPBoostRounds
    fast = engine(stumps, Y, variant, simple.smoothing)
    differ = 0
    for _ in range(rounds):
        candidates = fast.choose_pivots()
        assert candidates is not None
        assert (candidates >= 0).all()
        chosen = stumps.features[candidates]
        expected = simple.choose_pivots()
        if not np.array_equal(chosen, expected):
            differ += int((chosen != expected).sum())
            assert is_tie(simple, chosen)
        fast.boost(candidates)
        simple.boost(chosen)
        weights = np.abs(fast.weights) if learner is AdaBoostMH else np.abs(fast.weights).T
        np.testing.assert_allclose(weights, simple.D, rtol=1e-7, atol=1e-300)
    assert differ <= rounds * simple.D.shape[1] * 0.01


@pytest.mark.parametrize("variant", ["real", "real_abstaining", "discrete"])
@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
@pytest.mark.parametrize("seed", [0, 1])
def test_chooses_the_pivots_of_the_simple_round(learner: type[Booster], variant: str, seed: int) -> None:
    X, Y = sparse_problem(seed)
    check_same_pivots(X, Y, learner, variant, rounds=25)


@pytest.mark.corpora("reuters21578.jsonl.gz")
@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
def test_chooses_the_pivots_of_the_simple_round_on_reuters(learner: type[Booster]) -> None:
    X, Y = reuters(FOLDER / "reuters21578.jsonl.gz")
    check_same_pivots(X, Y, learner, "real", rounds=12)


def reuters(path: Path) -> tuple[Matrix, Labels]:
    """The first 2,500 training documents; terms are runs of letters."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in islice(lines, 2500)]
    terms = [sorted({*re.findall("[a-z]+", d["text"].lower())}) for d in documents]
    return as_training_matrices(one_hot(terms), one_hot([sorted({*d["labels"]}) for d in documents]))


def one_hot(names: list[list[str]]) -> Matrix:
    columns = {name: column for column, name in enumerate(sorted({*chain(*names)}))}
    indices = [columns[name] for name in chain(*names)]
    starts = np.cumsum([0, *map(len, names)])
    return csr_array((np.ones(len(indices)), indices, starts), shape=(len(names), len(columns)))


@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
def test_updated_sums_stay_within_their_error_bound(learner: type[Booster]) -> None:
    """On rare, separable labels, for which incremental sums without error bounds lose their digits."""
    X, Y = sparse_problem(3, k=30)
    engine = AdaBoostMHRounds if learner is AdaBoostMH else MPBoostRounds
    rounds = engine(presence_stumps(X), Y, "real", 1 / (Y.shape[0] * Y.shape[1]))
    columns: Any = presence_stumps(X).matrix()
    for _ in range(60):
        pivots = rounds.choose_pivots()
        assert pivots is not None
        rounds.boost(pivots)
        sums = rounds._negative_sums
        signed = rounds.weights if learner is AdaBoostMH else rounds.weights.T
        true = columns @ np.maximum(-signed, 0)
        if isinstance(sums, SharedNegativeSums):
            actual = sums._sums * sums._scale
        else:
            assert isinstance(sums, PerLabelNegativeSums)
            free = (sums._negatives_only * sums._scale[:, None]).T
            actual = np.where(np.isinf(free), true, free)
            for block in rounds._pairs.blocks:
                actual[block.candidates, block.labels] = sums.of_pairs(block)
        assert (np.abs(actual - true) <= sums.error + 1e-15).all()
        assert (sums.error <= 1e-10).all()


@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
def test_scores_are_finite_with_any_smoothing(learner: type[Booster]) -> None:
    X, Y = csr_array(np.eye(6)), np.eye(6, 3)
    for smoothing in (1e-100, 1e9):
        assert np.isfinite(learner(rounds=60, smoothing=smoothing).fit(X, Y).decision_function(X)).all()
    for smoothing in (1e-320, 1.7e308):
        with pytest.raises(ParameterError, match="smoothing"):
            learner(rounds=3, smoothing=smoothing).fit(X, Y)


@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
def test_a_feature_in_every_document_is_a_pivot_once(learner: type[Booster]) -> None:
    X = csr_array(np.ones((5, 2)))
    Y = np.array([[1], [0], [0], [0], [1]])
    fitted = learner(rounds=3, smoothing=1e-12).fit(X, Y)
    assert fitted.hypothesis_.features.tolist() == [0]
    assert any("no feature can reduce" in warning for warning in fitted.summary_.warnings)


@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
def test_a_feature_in_no_document_is_no_candidate(learner: type[Booster]) -> None:
    fitted = learner(rounds=3).fit(csr_array((4, 3)), np.array([[1], [0], [0], [0]]))
    assert len(fitted.hypothesis_.features) == 0
    assert fitted.decision_function(np.eye(3)).tolist() == [[0.0]] * 3
    assert fitted.summary_.facts["distinct_pivots"] == 0
    assert fitted.summary_.warnings


def test_large_sparse_data_never_becomes_dense() -> None:
    """Two million features by fifty thousand documents would take 800 GB."""
    rng = np.random.default_rng(0)
    X = random_array((50_000, 2_000_000), density=2e-6, rng=rng, format="csr")
    Y = csr_array((rng.random((50_000, 4)) < 0.01).astype(np.int8))
    fitted = MPBoost(rounds=2).fit(X, Y)
    assert fitted.decision_function(X).shape == (50_000, 4)


@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
def test_early_stopping_keeps_the_best_rounds(learner: type[Booster]) -> None:
    X, Y = sparse_problem(5)
    steps: list[Step] = []
    stopping = {"patience": 3, "validation_fraction": 0.3, "metric": "f1_macro"}
    stopped = learner(rounds=80, early_stopping=stopping, random_state=1)
    stopped.fit_problem(Problem(X, Y), monitor=steps.append)
    again = learner(rounds=80, early_stopping=stopping, random_state=1).fit_problem(
        Problem(X, Y), resume=steps[4].snapshot()
    )
    other = learner(rounds=80, early_stopping=stopping, random_state=2).fit(X, Y)
    scores = stopped.decision_function(X)
    np.testing.assert_array_equal(scores, again.decision_function(X))
    assert not np.array_equal(scores, other.decision_function(X))
    assert any(
        "the metric on the held-out examples stopped improving" in warning
        for warning in stopped.summary_.warnings
    )
    values = [step.measures["held_out_f1_macro"] for step in steps]
    if learner is AdaBoostMH:
        best = int(np.argmax(values)) + 1
        assert len(values) == best + 3
        prefix = learner(rounds=best, early_stopping={**stopping, "patience": 80}, random_state=1).fit(X, Y)
        np.testing.assert_array_equal(scores, prefix.decision_function(X))


def test_early_stopping_keeps_equal_documents_together() -> None:
    X, Y = sparse_problem(5)
    copies = np.repeat(np.arange(X.shape[0]), 1 + np.arange(X.shape[0]) % 3)
    X, Y, groups = X[copies], Y[copies], copies
    stopping = {"patience": 3, "validation_fraction": 0.3}
    held_out = draw_held_out(Y, 0.3, 1, groups)
    assert held_out.sum() == round(0.3 * len(groups))
    assert not {*groups[held_out]} & {*groups[~held_out]}
    learner = MPBoost(rounds=20, early_stopping=stopping, random_state=1)
    scores = learner.fit(X, Y, groups=groups).decision_function(X)
    validation = ValidationSet(X[held_out], Y[held_out])
    learner.fit(X[~held_out], Y[~held_out], context=Context(validation=validation))
    np.testing.assert_array_equal(learner.decision_function(X), scores)
    with pytest.raises(UnsuitableDataError, match="a single document cannot be split for early stopping"):
        learner.fit(X, Y, groups=np.zeros_like(groups))


@pytest.mark.parametrize("learner", [AdaBoostMH, MPBoost])
@pytest.mark.parametrize("stump", ["presence", "threshold"])
def test_explanations_add_up_to_the_score(learner: type[Booster], stump: str) -> None:
    rng = np.random.default_rng(2)
    X = csr_array(np.round(rng.normal(size=(60, 6)) * (rng.random((60, 6)) < 0.7), 1))
    Y = (X.toarray()[:, :3] > 0.2).astype(int)
    fitted = learner(rounds=15, stump=stump).fit(X, Y)
    empty = fitted.decision_function(csr_array((1, 6)))[0]
    scores = fitted.decision_function(X)
    for row in range(5):
        for label in range(3):
            features, added = fitted.explain(X[[row]], label)
            assert set(features.tolist()) <= set(X[[row]].indices.tolist())
            assert empty[label] + added.sum() == pytest.approx(scores[row, label], abs=1e-9)


def test_local_selection_is_rejected_if_labels_share_pivots() -> None:
    context = Context(candidates=csr_array(np.ones((2, 1), dtype=bool)))
    with pytest.raises(ParameterError, match="mp_boost") as raised:
        AdaBoostMH().fit(np.eye(2), [[1], [0]], context=context)
    assert raised.value.pointer == "/features/selection/policy"


def test_adaboost_mh_lists_its_first_pivots_in_order() -> None:
    rng = np.random.default_rng(5)
    X = csr_array((rng.random((300, 40)) < 0.2).astype(float))
    Y = csr_array((rng.random((300, 4)) < 0.3).astype(np.int8))
    names = [f"term {f:02}" for f in range(40)]
    steps: list[Step] = []
    learner = AdaBoostMH(rounds=130).fit_problem(Problem(X, Y, Context(features=names)), monitor=steps.append)
    chosen = presence_stumps(X).features[steps[-1].snapshot()["pivots"][:, 0]]
    assert len(chosen) == 130
    assert learner.summary_.facts["first_pivots"] == [names[f] for f in chosen[:100]]
    assert learner.set_params(rounds=3).fit(X, Y).summary_.facts["first_pivots"] == [
        str(f) for f in chosen[:3]
    ]
