"""Explains the scores of labels by the terms of a document, in its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Floats, Ints, Matrix
from models.base import Learner
from models.base.abilities import Explaining
from models.errors import ParameterError, UnsuitableDataError
from models.features.sources import FeatureSource
from models.pipeline.training_set import Features

_NO_SOURCE = FeatureSource()


@dataclass(frozen=True, slots=True)
class ExplainedTerm:
    """A term of a document that contributes to the score of a label.

    Attributes:
        term: name of the feature; or a word, whose parts are features.
        weight: its contribution to the score, with the shares of its parts.
        source: what it stands for in the document.
    """

    term: str
    weight: float
    source: FeatureSource = _NO_SOURCE


@dataclass(frozen=True)
class Explanation:
    """The terms that contribute to the score of a label.

    Attributes:
        label: the label.
        terms: terms of the document that contribute to the label's score, by descending absolute value.
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
        n_terms: maximum number of terms in the explanation of a label.

    Raises:
        ParameterError: the learner cannot explain its scores.
        UnsuitableDataError: a contribution is not finite.
    """
    contributions = [_contributions(learner, x, label) for label, _ in labels]
    # The document is read once for all labels.
    terms = features.explained_terms(
        document, np.unique(np.concatenate([found for found, _ in contributions]))
    )
    strongest = [_strongest(*terms.weights(*found), n_terms) for found in contributions]
    shown = sorted({number for numbers, _ in strongest for number in numbers.tolist()})
    sources = features.sources(document, [terms.names[number] for number in shown])
    return [
        Explanation(
            label,
            [
                ExplainedTerm(name := terms.names[number], weight, sources.get(name, _NO_SOURCE))
                for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True)
            ],
        )
        for (_, label), (numbers, weights) in zip(labels, strongest, strict=True)
    ]


def _contributions(learner: Learner, x: Matrix, label: int) -> tuple[Ints, Floats]:
    """Return the features that contribute to a score, and their contributions.

    Raises:
        ParameterError: the learner cannot explain its scores.
    """
    if not (isinstance(learner, Explaining) and learner.can_explain):
        raise ParameterError(f"{learner.algorithm} cannot explain its scores; remove explain", "/explain")
    with np.errstate(over="ignore", invalid="ignore"):
        features, contributions = learner.explain(x, label)
    if not np.isfinite(contributions).all():
        raise UnsuitableDataError("the values of a document are so large that its scores are not finite")
    return features, contributions


def _strongest(terms: Ints, weights: Floats, n_terms: int) -> tuple[Ints, Floats]:
    """Return the terms with the largest absolute weights, and their weights."""
    strongest = np.argsort(-np.abs(weights), kind="stable")[:n_terms]
    return terms[strongest], weights[strongest]
