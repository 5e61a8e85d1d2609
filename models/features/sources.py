"""What a feature stands for in one document: words at certain places, or a product of other features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.text.occurrences import Occurrence


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """What a feature stands for in one document.

    Attributes:
        words: the distinct forms of its words in the document; empty if it is no term, or does not occur.
        fields: the names of the fields in which it occurs.
        occurrences: where it occurs; see :class:`models.text.occurrences.TermOccurrences`.
        factors: the names of the two features that it is the product of; empty if it is no product.
    """

    words: Sequence[str] = ()
    fields: Sequence[str] = ()
    occurrences: Sequence[Occurrence] = ()
    factors: Sequence[str] = ()
