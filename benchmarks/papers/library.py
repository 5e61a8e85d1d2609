"""Matrices of the corpora, for results that the library measures without a service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Labels, Matrix
from models.features import TextFeatures, TextFeaturesParameters

Json = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """A training part and a test part as matrices, with the labels of the columns of Y."""

    X: Matrix
    Y: Labels
    X_test: Matrix
    Y_test: Labels
    labels: list[str]
    terms: list[str]
    n_terms: int


def text_problem(
    training: Sequence[Json], test: Sequence[Json], features: Json, labels: Sequence[str] | None = None
) -> Problem:
    """Convert records to matrices, with features that are fitted on the training part.

    Args:
        training: records with text and labels.
        test: other records.
        features: as in a training request.
        labels: the labels; by default those of the training part.
    """
    chosen = sorted(labels if labels is not None else {name for row in training for name in row["labels"]})
    found = TextFeatures(TextFeaturesParameters.model_validate(features))
    Y = indicator(training, chosen)
    X = found.fit_transform([[row["text"] for row in training]], Y)
    X_test = found.transform([row["text"] for row in test])
    n_terms = int(found.summary_.facts["terms"])
    return Problem(X, Y, X_test, indicator(test, chosen), chosen, found.names_, n_terms)


def indicator(rows: Sequence[Json], labels: Sequence[str]) -> Labels:
    """Return (rows, labels) which row has which of the labels."""
    place = {label: j for j, label in enumerate(labels)}
    cells = [
        (i, place[label]) for i, row in enumerate(rows) for label in set(row["labels"]) if label in place
    ]
    i, j = np.array(cells).reshape(-1, 2).T
    return csr_array((np.ones(len(cells), dtype=np.int8), (i, j)), shape=(len(rows), len(labels)))
