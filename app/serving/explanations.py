"""Writes explanations as JSON values, as ``LabelExplanation`` documents them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from models.features import TextFeatures
from models.pipeline import ExplainedTerm, Explanation, Pipeline
from models.text import TextDocument


def explanation_content(explanations: Iterable[Explanation]) -> list[dict[str, Any]]:
    """Return explanations as JSON values. Fields without a value are left out."""
    return [
        {"label": explanation.label, "terms": [*map(_term, explanation.terms)]}
        for explanation in explanations
    ]


def explained_texts(
    pipeline: Pipeline, document: TextDocument, explanations: Iterable[Explanation]
) -> dict[str, str]:
    """Return the fields of a document in which explained terms occur, in which the offsets count.

    Args:
        pipeline: the pipeline that explained its prediction for the document.
        document: a text or a message.
        explanations: the explanations.
    """
    if not isinstance(pipeline.features_, TextFeatures):
        return {}
    used = {
        field for explanation in explanations for term in explanation.terms for field in term.source.fields
    }
    return {part.field: part.text for part in pipeline.features_.parts(document) if part.field in used}


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
