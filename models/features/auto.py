"""The features ``auto``: those of several candidates that rank the labels of held-out documents best."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from models.features.numeric import NumericFeaturesParameters
from models.features.raw_values import RawValues
from models.features.text import TextFeaturesParameters
from models.text.parameters import AnalyzerParameters
from models.text.unsegmented import begins_unsegmented

_Features: TypeAlias = TextFeaturesParameters | NumericFeaturesParameters

N_CANDIDATES = 2
"""Largest number of candidates."""

_MANY = 4000
"""Number of documents from which on terms of one document are left out.

Among pairs and parts of words they are most, and take most of the memory. With few documents they help.
"""


class AutoFeaturesParameters(BaseModel):
    """The features that rank the labels of held-out training documents best.

    The candidates are the features that suit the learner, and richer ones: for text and e-mail, also pairs
    and parts of words (characters and pairs of them if the script has no spaces); for numbers, documents of
    unit length. They are compared on a third of the training documents, or of 4,000 of them if there are
    more. If the richer ones are not better by more than a standard error, the others are used. The version
    states which.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["auto"]


def richer_features(recipe: _Features, raw: RawValues, n_documents: int) -> dict[str, _Features]:
    """Return the candidates by name: the features that suit the learner, and richer ones.

    Args:
        recipe: the features that suit the learner.
        raw: the raw values of documents.
        n_documents: number of training documents.

    >>> from models.features import TextFeatures
    >>> features = TextFeatures()
    >>> list(richer_features(features.parameters, features.read([["an invoice"]]), 1))
    ['words', 'words, pairs and parts']
    """
    if isinstance(recipe, NumericFeaturesParameters):
        if recipe.scaling == "unit":
            return {"columns": recipe}
        return {"columns": recipe, "unit length": recipe.model_copy(update={"scaling": "unit"})}
    name = "words, pairs and parts"
    analyzer: dict[str, Any] = {"ngrams": (1, 2), "character_ngrams": (3, 5)}
    if _without_spaces(raw):
        # Pairs of characters are words already; longer parts of them do not exist.
        name, analyzer = "characters", {"unit": "character", "ngrams": (1, 2)}
    update = {
        "min_df": 2 if n_documents > _MANY else recipe.min_df,
        "analyzer": AnalyzerParameters(**{**dict(recipe.analyzer), **analyzer}),
    }
    return {"words": recipe, name: recipe.model_copy(update=update)}


def _without_spaces(raw: RawValues) -> bool:
    """Whether most occurrences of words are in scripts that do not separate words by spaces."""
    columns = np.array([begins_unsegmented(name) for name in raw.names], dtype=np.bool_)
    occurrences = np.bincount(raw.values.indices, raw.values.data, minlength=len(columns))
    return bool(occurrences[columns].sum() > occurrences.sum() / 2)
