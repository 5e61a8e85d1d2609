"""Explains the scores of labels by the features of a document, in the words of the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Floats, Ints, Matrix
from models.base import Learner
from models.errors import UnsuitableDataError
from models.features.sources import FeatureSource
from models.pipeline.held_out import Features

_NO_SOURCE = FeatureSource()


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A feature of a document that contributes to the score of a label.

    Attributes:
        term: name of the feature.
        weight: its contribution to the score.
        source: what it stands for in the document.
    """

    term: str
    weight: float
    source: FeatureSource = _NO_SOURCE


@dataclass(frozen=True)
class Explanation:
    """The features that contribute to the score of a label.

    Attributes:
        label: the label.
        terms: features of the document that contribute to the label's score, by descending absolute value.
    """

    label: str
    terms: list[ExplainedTerm]


def explain_labels(
    learner: Learner,
    features: Features,
    document: Any,
    x: Matrix,
    labels: Sequence[tuple[int, str]],
    n_terms: int,
) -> list[Explanation]:
    """Explain the scores of some labels for one document.

    Args:
        learner: the fitted learner.
        features: the fitted features.
        document: the document that the features read; None for numbers.
        x: (1, r) its features.
        labels: the index and the name of each label.
        n_terms: maximum number of features in the explanation of a label.

    Raises:
        ParameterError: the learner cannot explain its scores.
        UnsuitableDataError: a contribution is not finite.
    """
    strongest = [_strongest_features(learner, x, label, n_terms) for label, _ in labels]
    # The document is read once for all labels.
    sources = features.sources(document, sorted({f for chosen, _ in strongest for f in chosen.tolist()}))
    names = features.names_
    return [
        Explanation(
            label,
            [
                ExplainedTerm(names[feature], contribution, sources.get(feature, _NO_SOURCE))
                for feature, contribution in zip(chosen.tolist(), contributions.tolist(), strict=True)
            ],
        )
        for (_, label), (chosen, contributions) in zip(labels, strongest, strict=True)
    ]


def _strongest_features(learner: Learner, x: Matrix, label: int, n_terms: int) -> tuple[Ints, Floats]:
    """Return the features with the largest absolute contributions to a score, and the contributions."""
    with np.errstate(over="ignore", invalid="ignore"):
        features, contributions = learner.explain(x, label)
    if not np.isfinite(contributions).all():
        raise UnsuitableDataError("the values of a document are so large that its scores are not finite")
    strongest = np.argsort(-np.abs(contributions), kind="stable")[:n_terms]
    return features[strongest], contributions[strongest]
