"""The trainings of the benchmarks are equal where they should be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks import recipes
from benchmarks.papers import scikit_learn
from models.arrays import Floats
from models.data.examples import Examples, FeatureRows


def _task(X: Floats, labels: list[tuple[str, ...]]) -> recipes.Task:
    rows = FeatureRows([f"f{j:03}" for j in range(X.shape[1])], csr_array(X))
    examples = Examples("features", rows, labels)
    return recipes.Task.of(examples, examples, units=False, seed=0)


def test_scikit_learn_gets_more_labels_than_8_bits_can_number() -> None:
    of = list(range(130)) * 3
    task = _task(np.eye(130)[of], [(f"l{j:03}",) for j in of])
    found = scikit_learn.predict(task, "LinearSVC")
    assert (found.scores.argmax(axis=1) == of).all()
    assert (found.predicted.argmax(axis=1) == of).all()
    assert found.predicted.sum() == len(of)  # one label for each document, as in the training


def test_the_same_svm_has_the_same_scores() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 8))
    task = _task(X, [tuple(f"l{j}" for j in range(8) if x[j] > 0.8) for x in X])
    ours = recipes.train(task, {"kind": "numeric", "scaling": "unit"}, {"algorithm": "svm"}).test
    theirs = scikit_learn.predict(task, "LinearSVC")
    assert theirs.scores == pytest.approx(ours, abs=0.02)  # the solver stops at a tolerance
    assert (theirs.predicted == (theirs.scores > 0)).all()
