"""Training with a covering gives the lowest training error of that covering (figure 3), on yeast."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pytest
from corpora import FOLDER
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MultiLabelBinarizer

from models.boosting.adaboost_lc import AdaBoostLC
from models.measures.covering import covering_error

YEAST = "mulan/yeast-train.svm.gz"
LABELS = [str(label) for label in range(14)]
COVERINGS: list[dict[str, Any]] = [
    {"kind": "zero_one"},
    {"kind": "hamming"},
    {"kind": "two_sets"},
    {"kind": "weighted_positive", "weight": 6},
    {"kind": "weighted_negative", "weight": 4},
]


@pytest.mark.corpora(YEAST)
@pytest.mark.parametrize(("template", "at_least"), [("parallel", 3), ("sequential", 5)])
def test_training_with_a_covering_minimises_its_error(template: str, at_least: int) -> None:
    with gzip.open(FOLDER / YEAST) as file:
        X, y = load_svmlight_file(file, n_features=103, multilabel=True)
    Y = csr_array(MultiLabelBinarizer(classes=range(14)).fit_transform(y).astype(np.int8))
    errors = np.empty((5, 5))
    for row, covering in enumerate(COVERINGS):
        learner = AdaBoostLC(rounds=50, covering=covering, template=template).fit(X, Y)
        predicted = csr_array(learner.predict(X))
        errors[row] = [covering_error(Y, predicted, measure, LABELS) for measure in COVERINGS]
        assert learner.summary_.facts["covering_error"] == pytest.approx(errors[row, row])
    # Most coverings have their lowest error in the training that minimises their loss.
    assert (errors.argmin(axis=0) == np.arange(5)).sum() >= at_least
