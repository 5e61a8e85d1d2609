"""The benchmark of promises: what it draws, trains and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from benchmarks.promises import decided, library, measurements, results
from benchmarks.promises.corpora import CORPORA, divide
from benchmarks.promises.library import Cell
from models.baselines.svm import SVM
from models.data.examples import Examples, FeatureRows
from models.pipeline import Pipeline

LABELS = ("a", "b", "c", "d", "e")


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Examples]:
    """A corpus whose features show the label of each document, if it is not one of a few noisy ones."""
    rng = np.random.default_rng(7)
    label = rng.integers(len(LABELS), size=400)
    shown = np.where(rng.random(400) < 0.9, label, rng.integers(len(LABELS), size=400))
    X = csr_array(np.eye(len(LABELS))[shown] + 0.1 * rng.random((400, len(LABELS))))
    examples = Examples("features", FeatureRows(list("vwxyz"), X), [(LABELS[j],) for j in label])
    monkeypatch.setitem(CORPORA, "yeast", lambda: examples)
    yield examples
    library.forget()


def test_smaller_training_parts_are_stratified_samples_of_larger_ones(corpus: Examples) -> None:
    parts = divide(corpus, "random", [50, 100], seed=1)
    assert sorted(parts.order.tolist()) == list(range(parts.pool.n_examples))
    for size in (50, 100):
        counts = Counter(labels[0] for labels in parts.training(0, size).labels)
        pool = Counter(labels[0] for labels in parts.pool.labels)
        for label in LABELS:
            assert counts[label] == pytest.approx(size * pool[label] / parts.pool.n_examples, abs=2)


def test_another_decision_on_the_same_examples_gives_what_a_new_training_gives(corpus: Examples) -> None:
    cell = Cell(divide(corpus, "random", [100], seed=0), 100, 0, "svm", measurements=False)
    trained, decision = cell.trained, {"kind": "target", "measure": "precision", "value": 0.9}
    n_trained = len(library._Remembered.trained)
    predicted = trained.with_decision(decision)
    assert len(library._Remembered.trained) == n_trained
    fresh = Pipeline(clone(trained.pipeline.features_), SVM(), decision).fit(cell.parts.training(0, 100))
    assert (predicted == fresh.rule_.predicted(fresh.scores(cell.parts.test))).all()


def test_every_promise_is_measured_and_shown(corpus: Examples) -> None:
    found = measurements.measure("yeast", [60], range(2), list(measurements.PROMISES), "svm", "random")
    by_promise = {result["promise"]: result for result in found}
    assert by_promise.keys() == measurements.PROMISES.keys()
    assert {result["seeds"] for result in found} == {2}
    assert by_promise["agreement"]["documents"] == 2 * round(0.42 * 400)
    of_mmp = by_promise["partial_fit"]["mmp"]
    assert all(len(of_mmp[when]["f1"]) == 2 for when in ("before", "after", "again"))
    shown = results.rendered_of(found)
    assert all("| yeast |" in shown[f"promises_{promise}"] for promise in ("single", "agreement", "unseen"))
    assert "naive_bayes" not in by_promise["partial_fit"], "yeast has measurements"


def test_a_label_is_below_its_target_only_if_chance_rarely_explains_it() -> None:
    relevant = np.array([[True, True, False]] * 100)
    relevant[:15, 0] = relevant[:6, 1] = False
    found = decided._precision(relevant, np.array([[True, True, False]] * 100), 0.95)
    assert (found["labels"], found["below"]) == (2, 1)
    assert (found["right"], found["predicted"], found["positives"]) == (179, 200, 179)
