"""Labels without a training example can be kept: features ignore them, and measures count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.catalog import DECISION_PARAMETERS, FEATURES_PARAMETERS, LEARNER_PARAMETERS
from models.data.examples import Examples
from models.errors import UnsuitableDataError
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels
from models.pipeline import Pipeline

TEXTS = ["red apple", "green apple", "red car", "green car", "red apple car", "green"]
LABELS = [("fruit",), ("fruit",), ("vehicle",), ("vehicle",), ("fruit", "vehicle"), ()]
EXAMPLES = Examples("text", TEXTS, LABELS)


def fit(features: dict[str, Any], learner: dict[str, Any], kept: list[str]) -> Pipeline:
    pipeline = Pipeline.from_parameters(
        FEATURES_PARAMETERS.validate_python({"kind": "text", **features}),
        LEARNER_PARAMETERS.validate_python(learner),
        None,
    )
    return pipeline.fit(EXAMPLES, kept_labels=kept)


@pytest.mark.parametrize("algorithm", ["mp_boost", "svm", "naive_bayes"])
def test_kept_labels_are_labels_of_the_pipeline_and_of_its_measures(algorithm: str) -> None:
    plain, kept = (
        fit({}, {"algorithm": algorithm}, []),
        fit({}, {"algorithm": algorithm}, ["animal", "fruit"]),
    )
    assert plain.labels_ == ["fruit", "vehicle"]
    assert kept.labels_ == ["animal", "fruit", "vehicle"]
    assert "labels without a training example: animal" in kept.summary_.warnings
    assert not any("without a training example" in warning for warning in plain.summary_.warnings)
    test = Examples("text", ["red apple", "cat"], [("fruit",), ("animal",)])
    rows = {row.label: row for row in kept.evaluate(test).labels}
    assert (rows["animal"].tp + rows["animal"].fn, rows["animal"].fp) == (1, 0)
    assert kept.scores(["red apple"]).shape == (1, 3)


@pytest.mark.parametrize("policy", ["round_robin", "local"])
def test_no_feature_is_selected_for_a_label_without_an_example(policy: str) -> None:
    selection = {"kind": "information_gain", "policy": policy, "per_label": 1}
    learner = {"algorithm": "mp_boost", "rounds": 3, "smoothing": 0.01}
    plain, kept = (fit({"selection": selection}, learner, names) for names in ([], ["animal", "zoo"]))
    assert kept.features_.names_ == plain.features_.names_
    np.testing.assert_array_equal(kept.scores(TEXTS)[:, 1:3], plain.scores(TEXTS))
    assert (kept.scores(TEXTS)[:, [0, 3]] <= 0).all()


def test_ancestors_of_kept_labels_are_kept() -> None:
    tree = LabelTree({"cat": "animal", "fruit": "food"})
    assert collect_labels([("fruit",), ()], tree, kept=["cat"]) == ["animal", "cat", "food", "fruit"]


def test_some_example_needs_a_label() -> None:
    with pytest.raises(UnsuitableDataError, match="no training example has a label"):
        Pipeline.from_parameters(
            FEATURES_PARAMETERS.validate_python({"kind": "text"}),
            LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
            None,
        ).fit(Examples("text", ["a", "b"], [(), ()]), kept_labels=["x"])


def test_the_threshold_of_a_label_without_an_example_is_not_below_the_learners_own() -> None:
    decision = DECISION_PARAMETERS.validate_python({"kind": "auto"})
    pipeline = Pipeline.from_parameters(
        FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
        decision,
    )
    # The labels are noise, so that a threshold far below 0, for every label, has the best held-out F1.
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["red", "green", "blue", "big", "old"], 2)) for _ in range(60)]
    labels = [tuple(name for name in ("a", "b") if rng.random() < 0.6) for _ in texts]
    pipeline.fit(Examples("text", texts, labels), kept_labels=["never"])
    thresholds = dict(zip(pipeline.labels_, pipeline.rule_.thresholds.tolist(), strict=True))
    assert thresholds["a"] < 0
    assert thresholds["never"] >= 0
    assert not pipeline.decide(pipeline.scored(texts))[:, [2]].nnz
