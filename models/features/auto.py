"""The features ``auto``: those of several candidates that rank the labels of held-out documents best."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from models.features.numeric import NumericFeaturesParameters
from models.features.raw_values import RawValues
from models.features.text import TextFeaturesParameters
from models.text.parameters import AnalyzerParameters
from models.text.unsegmented import begins_unsegmented

MAX_CANDIDATES = 3
"""Largest number of candidates."""


class AutoFeaturesParameters(BaseModel):
    """The features that rank the labels of held-out training documents best.

    The candidates are the features that suit the learner; for text and e-mail also these with pairs of words,
    or with parts of words (with characters if the script has no spaces); for numbers also these with
    documents of unit length. They are compared on a third of the training documents, or of 4,000 of them if
    there are more. If candidates are about equally good, the first one is used. The version states which.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["auto"]


def richer_text_features(words: TextFeaturesParameters, raw: RawValues) -> dict[str, TextFeaturesParameters]:
    """Return the candidates for text or e-mail besides words, by name, the cheapest first.

    Terms of one document only are left out: among pairs and parts of words, they are most.

    Args:
        words: the features that suit the learner.
        raw: the occurrences of words in documents.

    >>> from models.features import TextFeatures
    >>> features = TextFeatures()
    >>> list(richer_text_features(features.parameters, features.read([["an invoice"]])))
    ['words and pairs', 'words and parts']
    """
    changes: dict[str, dict[str, Any]] = {
        "words and pairs": {"ngrams": (1, 2)},
        "words and parts": {"character_ngrams": (3, 5)},
    }
    if _without_spaces(raw):
        # Pairs of characters are words already; longer parts of them do not exist.
        changes = {"characters": {"unit": "character", "ngrams": (1, 2)}}
    return {
        name: words.model_copy(
            update={"min_df": 2, "analyzer": AnalyzerParameters(**{**dict(words.analyzer), **change})}
        )
        for name, change in changes.items()
    }


def unit_length(numbers: NumericFeaturesParameters) -> dict[str, NumericFeaturesParameters]:
    """Return the candidates for numbers besides the features that suit the learner, by name."""
    return (
        {"unit length": numbers.model_copy(update={"scaling": "unit"})} if numbers.scaling != "unit" else {}
    )


def _without_spaces(raw: RawValues) -> bool:
    """Whether most occurrences of words are in scripts that do not separate words by spaces."""
    columns = np.array([begins_unsegmented(name) for name in raw.names], dtype=np.bool_)
    occurrences = np.bincount(raw.values.indices, raw.values.data, minlength=len(columns))
    return bool(occurrences[columns].sum() > occurrences.sum() / 2)
