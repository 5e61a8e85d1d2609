"""A partial fit of a pipeline: thresholds and probabilities follow the scores of the updated learner."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models import artifact, catalog
from models.arrays import AnyArray, Bools, Floats
from models.base import Context
from models.decisions.held_out import REFIT_SHARE, HeldOut, HeldOutSample
from models.errors import ArtifactError
from models.features import TextFeatures
from models.labels.indicator_matrix import indicator_matrix
from models.measures import rankings
from models.pipeline import Pipeline
from models.pipeline.partial_fit import partial_fit

LABELS = [f"l{j}" for j in range(6)]
every_learner = pytest.mark.parametrize("algorithm", catalog.INCREMENTAL_LEARNERS)


@cache
def documents(n: int, seed: int) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return documents of which a fifth of the words depend on one or two labels, and their label sets."""
    rng = np.random.default_rng(seed)
    texts, label_sets = [], []
    for _ in range(n):
        labels = sorted(
            rng.choice(6, rng.choice([1, 2], p=[0.6, 0.4]), replace=False, p=np.arange(6, 0, -1) / 21)
        )
        words = [
            f"t{rng.choice(labels)}x{rng.integers(12)}" if rng.random() < 0.2 else f"c{rng.integers(60)}"
            for _ in range(30)
        ]
        texts.append(" ".join(words))
        label_sets.append(tuple(LABELS[j] for j in labels))
    return texts, label_sets


def fitted(algorithm: str, n: int = 60, decision: Any = None) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm}),
        decision and catalog.DECISION_PARAMETERS.validate_python(decision),
    ).fit(*documents(n, 0))


def f1(pipeline: Pipeline, scores: Floats, relevant: Bools) -> float:
    predicted = pipeline.rule_.predicted(scores)
    return float(2 * (predicted & relevant).sum() / (predicted.sum() + relevant.sum()))


def bias(pipeline: Pipeline, scores: Floats, relevant: Bools) -> float:
    """Return the mean difference of the mean probability of a label and its frequency."""
    assert pipeline.calibration_ is not None
    probabilities, _ = pipeline.calibration_.probabilities(scores, pipeline.rule_.predicted(scores))
    return float(np.abs(probabilities.mean(axis=0) - relevant.mean(axis=0)).mean())


@every_learner
def test_label_sets_and_probabilities_suit_the_updated_learner(algorithm: str) -> None:
    parent = fitted(algorithm)
    child = partial_fit(parent, *documents(120, 1))
    texts, label_sets = documents(400, 2)
    Y = indicator_matrix(label_sets, parent.labels_)
    relevant = Y.toarray() != 0
    before, after = parent.scores(texts), child.scores(texts)
    assert rankings.average_precision(Y, after) > rankings.average_precision(Y, before)
    assert f1(child, after, relevant) > f1(parent, before, relevant) + 0.03
    if algorithm == "binary_relevance_perceptron":  # its threshold remains 0, whatever the scale
        assert f1(child, after, relevant) > f1(parent, after, relevant) - 0.01
    else:
        assert f1(child, after, relevant) > f1(parent, after, relevant) + 0.03
    assert bias(child, after, relevant) < 0.7 * bias(parent, after, relevant)
    report = child.decision_report_
    assert report is not None
    assert (report.source, report.examples, report.partial_fit_examples) == ("test_then_train", 180, 120)
    assert child.curves_ is not None
    assert parent.curves_ is not None
    assert child.curves_.positives.sum() == parent.curves_.positives.sum() + sum(
        map(len, documents(120, 1)[1])
    )


@every_learner
def test_each_score_is_that_of_the_learner_before_the_example(algorithm: str) -> None:
    pipeline = fitted(algorithm, decision={"kind": "single_label"})
    texts, label_sets = documents(40, 3)
    X, Y = pipeline.feature_matrix(texts), indicator_matrix(label_sets, pipeline.labels_)
    learner: Any = pipeline.learner_
    block = 5 if algorithm == "naive_bayes" else 1
    expected, one = [], learner.copy()
    for start in range(0, 40, block):
        rows = slice(start, start + block)
        expected.append(one.decision_function(X[rows]))
        one.partial_fit(X[rows], Y[rows], context=Context(labels=pipeline.labels_))
    other = learner.copy()
    scores = other.test_then_train(X, Y, context=Context(labels=pipeline.labels_))
    np.testing.assert_allclose(scores, np.vstack(expected), rtol=1e-12, atol=1e-12)
    assert other.decision_function(X).tobytes() == one.decision_function(X).tobytes()


def test_a_decision_is_fitted_again_when_enough_examples_are_new(tmp_path: Path) -> None:
    pipeline = fitted("naive_bayes")
    texts, label_sets = documents(10, 4)
    path = tmp_path / "model"
    for i in range(4):
        artifact.save(pipeline, path)
        parent = artifact.load(path)
        pipeline = partial_fit(parent, texts[i : i + 1], label_sets[i : i + 1])
        refitted = pipeline.rule_ is not parent.rule_
        assert refitted == (i + 1 == 4), f"{i + 1} of {61 + i} examples, a {REFIT_SHARE}th is new"
    assert pipeline.held_out_ is not None
    assert (pipeline.held_out_.pending, pipeline.held_out_.new.sum()) == (0, 4)


def test_what_does_not_depend_on_held_out_scores_stays() -> None:
    parent = fitted("mmp", decision={"kind": "sign"})
    child = partial_fit(parent, *documents(120, 1))
    assert child.rule_ is parent.rule_
    assert child.held_out_ is None
    assert child.calibration_ is None


def test_exactly_one_label_stays() -> None:
    texts, label_sets = documents(120, 0)
    one = [labels[:1] for labels in label_sets]
    parent = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "naive_bayes"}),
    ).fit(texts[:60], one[:60])
    child = partial_fit(parent, texts[60:], one[60:])
    assert child.rule_.only_best
    assert child.calibration_ is not parent.calibration_


def sample(n: int, k: int, seed: int = 0) -> HeldOutSample:
    rng = np.random.default_rng(seed)
    sets = [tuple(LABELS[j] for j in np.flatnonzero(row)) for row in rng.random((n, k)) < 0.3]
    Y = indicator_matrix(sets, LABELS[:k])
    folds: AnyArray = np.arange(n) % 3
    return HeldOutSample.of(HeldOut(rng.normal(size=(n, k)), Y, None, folds, np.ones(k, dtype=bool)))


def test_old_scores_move_as_the_scores_of_the_new_examples_do() -> None:
    old = sample(30, 3)
    before = np.random.default_rng(1).normal(size=(60, 3))
    time = np.linspace(0, 1, 60)[:, np.newaxis]
    moved = old.extended(before, before + time * [4.0, 0.0, -2.0], sample(60, 3, 1).held_out.Y)
    shift = (moved.held_out.scores[:30] - old.held_out.scores)[0]
    assert shift == pytest.approx([0.75 * 0.75 * 4, 0, -0.75 * 0.75 * 2], abs=0.05)
    one = old.extended(before[:1], before[:1], old.held_out.Y[:1])
    assert one.held_out.scores[:30].tobytes() == old.held_out.scores.tobytes()


def test_a_sample_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.decisions.held_out.MAX_SCORES", 60)
    bounded = sample(100, 3)
    assert len(bounded.held_out.scores) == 20
    more = bounded.extended(np.zeros((10, 3)), np.zeros((10, 3)), sample(10, 3).held_out.Y)
    assert (len(more.held_out.scores), len(more.new), more.pending) == (20, 20, 10)


@pytest.mark.parametrize(
    ("name", "value"), [("folds", 3), ("labels.indices", 9), ("labels.data", 2), ("pending", -1)]
)
def test_a_forged_sample_is_rejected(name: str, value: int) -> None:
    state = sample(30, 3).get_state()
    same = HeldOutSample.from_state(state, 3).get_state()
    assert {key: array.tolist() for key, array in same.items()} == {
        key: array.tolist() for key, array in state.items()
    }
    state[name] = np.full_like(state[name], value)
    with pytest.raises(ArtifactError):
        HeldOutSample.from_state(state, 3)


def test_documents_of_which_only_parts_of_words_are_known_do_not_decide() -> None:
    analyzer = {"character_ngrams": [2, 3]}
    parent = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", "analyzer": analyzer}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "naive_bayes"}),
    ).fit(*documents(60, 0))
    texts, label_sets = documents(40, 1)
    unknown = [" ".join(f"{word}q" for word in text.split()) for text in texts[:30]]
    assert isinstance(parent.features_, TextFeatures)
    assert parent.features_.transform(unknown).nnz > 0
    assert parent.predict(unknown) == [()] * 30
    report = partial_fit(parent, [*unknown, *texts[30:]], label_sets).decision_report_
    assert report is not None
    assert report.partial_fit_examples == 10
