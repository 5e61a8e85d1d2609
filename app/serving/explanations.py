"""Writes explanations as JSON values, as ``LabelExplanation`` documents them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from models.pipeline import ExplainedTerm, Explanation


def explanation_content(explanations: Iterable[Explanation]) -> list[dict[str, Any]]:
    """Return explanations as JSON values. Fields without a value are left out."""
    return [
        {"label": explanation.label, "terms": [*map(_term, explanation.terms)]}
        for explanation in explanations
    ]


def _term(term: ExplainedTerm) -> dict[str, Any]:
    content: dict[str, Any] = {"term": term.term, "weight": term.weight}
    source = term.source
    if source.occurrences:
        content["words"] = source.words
        content["fields"] = source.fields
        content["occurrences"] = [
            {"field": field, "start": start, "end": end} for field, start, end in source.occurrences
        ]
    if source.factors:
        content["factors"] = source.factors
    return content
