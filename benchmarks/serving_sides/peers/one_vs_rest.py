"""scikit-learn's plain one-vs-rest pipeline on the training part of Reuters-21578.

python one_vs_rest.py CORPUS FILE
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import joblib
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC


class OneVsRest:
    """Ranks labels with a saved pipeline.

    Args:
        path: the file that :func:`train` has written.
    """

    def __init__(self, path: Path) -> None:
        self._pipeline: Pipeline
        self._labels: list[str]
        self._pipeline, self._labels = joblib.load(path)

    def rank(self, text: str) -> tuple[list[str], list[float]]:
        """Return all labels by descending score, and the scores."""
        scores = self._pipeline.decision_function([text])[0]
        order = np.argsort(-scores, kind="stable")
        return [self._labels[i] for i in order.tolist()], scores[order].tolist()


def train(corpus: Path, target: Path) -> None:
    """Train the pipeline with its defaults, and save it with its labels."""
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["split"] == "train"]
    labels = MultiLabelBinarizer()
    Y = labels.fit_transform([row["labels"] for row in rows])
    pipeline = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LinearSVC()))
    pipeline.fit([row["text"] for row in rows], Y)
    joblib.dump((pipeline, labels.classes_.tolist()), target)


if __name__ == "__main__":
    train(Path(sys.argv[1]), Path(sys.argv[2]))
