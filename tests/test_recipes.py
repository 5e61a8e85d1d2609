"""The recipes of the benchmark are equal where they should be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks.papers import recipes
from benchmarks.papers.results import figures_of
from models.arrays import Floats
from models.data.examples import Examples, FeatureRows


def _task(X: Floats, labels: list[tuple[str, ...]]) -> recipes.Task:
    rows = FeatureRows([f"f{j:03}" for j in range(X.shape[1])], csr_array(X))
    examples = Examples("features", rows, labels)
    return recipes.Task.of(examples, examples, units=False, seed=0)


def test_scikit_learn_gets_more_labels_than_8_bits_can_number() -> None:
    of = list(range(130)) * 3
    task = _task(np.eye(130)[of], [(f"l{j:03}",) for j in of])
    scores = recipes.linear_svc(task).test
    assert (scores.argmax(axis=1) == of).all()


def test_equal_decisions_on_the_same_svm_give_equal_label_sets() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 8))
    labels = [tuple(f"l{j}" for j in range(8) if x[j] > 0.8) for x in X]
    labels[:5] = [(*label_set, f"once{i}") for i, label_set in enumerate(labels[:5])]
    found = dict(recipes.predict(_task(X, labels), n_grams={}))
    for ours, theirs in (("svm, auto", "LinearSVC, auto"), ("svm, sign", "LinearSVC")):
        assert (found[ours].predicted == found[theirs].predicted).all()


NUMBERS = (
    "yeast",
    "scene",
    "medical",
    "genbase",
    "bibtex",
    "tmc2007-500",
    "ohsumed",
    "imclef07a",
    "cellcycle",
)


@pytest.mark.parametrize("corpus", NUMBERS)
def test_stored_results_of_the_same_svm_on_the_same_numbers_are_equal(corpus: str) -> None:
    found = figures_of("defaults")[corpus]["recipes"]
    for ours, theirs in (("svm, auto", "LinearSVC, auto"), ("svm, sign", "LinearSVC")):
        # The solver is not exact, so a few documents at a threshold can differ.
        assert found[ours]["f1_micro"]["value"] == pytest.approx(
            found[theirs]["f1_micro"]["value"], abs=0.002
        )
