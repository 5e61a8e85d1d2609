"""Recipes: the features that suit a learner. A training without features uses the recipe of its learner.

``python -m benchmarks.compare default_features`` measures them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from models.features.numeric import NumericFeaturesParameters, Scaling
from models.features.text import TextFeaturesParameters

_MAIL = {"stop_words": "auto"}
"""The analyzer of e-mails: messages are often few and in several languages, and people read explanations."""


class DefaultFeatures(BaseModel):
    """The features of a training without `features`, by the kind of its documents."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    text: TextFeaturesParameters
    """The features of texts."""
    email: TextFeaturesParameters
    """The features of e-mails."""
    features: NumericFeaturesParameters
    """The features of named numbers."""


def _recipe(of_numbers: Scaling, /, **text: Any) -> DefaultFeatures:
    return DefaultFeatures.model_validate(
        {
            "text": {"kind": "text", **text},
            "email": {"kind": "text", **text, "analyzer": _MAIL},
            "features": {"kind": "numeric", "scaling": of_numbers},
        }
    )


LINEAR = _recipe("max_abs", weighting="pivoted", scaling="unit")
"""For weights of features, which need similar scales."""

AMOUNTS = _recipe("none", weighting="tfidf")
"""For the shares of terms in all occurrences of terms, to which long documents contribute more."""

PRESENCE = _recipe("none", weighting="binary")
"""For tests whether a document contains a term, or whether a number exceeds a threshold."""

COVERING = _recipe("max_abs", weighting="pivoted", selection={"kind": "rocchio", "per_label": 100})
"""Those of the AdaBoost.LC paper (section 4). It divides all numbers by the same one, so scales matter."""
