"""scikit-learn's plain one-vs-rest pipeline on the training part of Reuters-21578."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC


class OneVsRest:
    """Ranks labels with a pipeline that it trains, with the default parameters.

    Args:
        corpus: the file with the stories.
    """

    def __init__(self, corpus: Path) -> None:
        with gzip.open(corpus, "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row["split"] == "train"]
        binarizer = MultiLabelBinarizer()
        Y = binarizer.fit_transform([row["labels"] for row in rows])
        self._labels: list[str] = binarizer.classes_.tolist()
        self._pipeline = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LinearSVC()))
        self._pipeline.fit([row["text"] for row in rows], Y)

    def rank(self, text: str) -> tuple[list[str], list[float]]:
        """Return all labels by descending score, and the scores."""
        scores = self._pipeline.decision_function([text])[0]
        order = np.argsort(-scores, kind="stable")
        return [self._labels[i] for i in order.tolist()], scores[order].tolist()
