"""The perceptrons and naive Bayes on public corpora: their order in tables II and III of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpora import FOLDER
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MultiLabelBinarizer

from models.arrays import AnyArray
from models.base.incremental import IncrementalLearner
from models.base.learning_curve import MEASURES, example_measures
from models.baselines.naive_bayes import NaiveBayes
from models.perceptrons import MLPP, MMP, BinaryRelevancePerceptron


def mulan(name: str, part: str, features: int, labels: int) -> tuple[Any, Any]:
    X, y = load_svmlight_file(
        FOLDER / "mulan" / f"{name}-{part}.svm.gz", multilabel=True, n_features=features
    )
    return csr_array(X), csr_array(MultiLabelBinarizer(classes=range(labels)).fit_transform(y))


def measured(learner: IncrementalLearner, name: str, features: int, labels: int) -> dict[str, float]:
    learner.fit(*mulan(name, "train", features, labels))
    X, Y = mulan(name, "test", features, labels)
    means: AnyArray = example_measures(learner.decision_function(X), Y).mean(axis=0)
    return dict(zip(MEASURES, means.tolist(), strict=True))


@pytest.mark.corpora("mulan/scene-train.svm.gz", "mulan/scene-test.svm.gz")
def test_scene() -> None:
    """The file is sorted by class, so the examples need shuffling."""
    epochs: dict[str, Any] = {"epochs": 3, "shuffle": True}
    mmp = measured(MMP(**epochs), "scene", 294, 6)
    mlpp = measured(MLPP(**epochs), "scene", 294, 6)
    binary = measured(BinaryRelevancePerceptron(**epochs), "scene", 294, 6)
    bayes = measured(NaiveBayes(), "scene", 294, 6)
    assert max(mlpp["error_set_size"], mmp["error_set_size"]) < binary["error_set_size"]
    assert min(mlpp["average_precision"], mmp["average_precision"], bayes["average_precision"]) > 0.7
    assert mmp["is_error"] < 0.5 > mlpp["is_error"]


@pytest.mark.corpora("mulan/medical-train.svm.gz", "mulan/medical-test.svm.gz")
def test_medical() -> None:
    """Clinical reports: many features and rare labels."""
    results = {
        learner.algorithm: measured(learner, "medical", 1449, 45)
        for learner in (MMP(epochs=3), MLPP(epochs=3), BinaryRelevancePerceptron(epochs=3), NaiveBayes())
    }
    assert results["mlpp"]["error_set_size"] < results["mmp"]["error_set_size"]
    assert results["mmp"]["error_set_size"] < results["binary_relevance_perceptron"]["error_set_size"]
    assert np.all([result["average_precision"] > 0.6 for result in results.values()])
