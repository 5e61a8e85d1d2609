"""A plain scorer: words, rows of a matrix, a sum, and a ranking."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

_WORDS = re.compile("[a-z]+")


class Scorer:
    """Scores texts with the weights that ``export_scorer`` has written.

    Args:
        weights: the file with the weights.
    """

    def __init__(self, weights: Path) -> None:
        with np.load(weights, allow_pickle=False) as arrays:
            self._weights, self._constant = arrays["weights"], arrays["constant"]
        described = json.loads(weights.with_suffix(".json").read_text("utf-8"))
        self._terms: dict[str, int] = described["terms"]
        self._labels: list[str] = described["labels"]

    def rank(self, text: str) -> tuple[list[str], list[float]]:
        """Return all labels by descending score, and the scores."""
        words = set(_WORDS.findall(text.lower()))
        rows = list({self._terms[word] for word in words if word in self._terms})
        scores = self._weights[rows].sum(axis=0) + self._constant
        order = np.argsort(-scores, kind="stable")
        return [self._labels[i] for i in order.tolist()], scores[order].tolist()
