"""Build the explanations of a response from what a pipeline returns."""

from __future__ import annotations

from collections.abc import Iterable

from app.api.structs import unvalidated
from app.serving.schemas import LabelExplanation, Term, TermOccurrence
from models.features import TextFeatures
from models.pipeline import ExplainedTerm, Explanation, Pipeline
from models.text import TextDocument

_new_explanation = unvalidated(LabelExplanation)
_new_term = unvalidated(Term)
_new_occurrence = unvalidated(TermOccurrence)


def label_explanations(explanations: Iterable[Explanation]) -> list[LabelExplanation]:
    """Return explanations as a response contains them."""
    return [
        _new_explanation(label=explanation.label, terms=[*map(_term, explanation.terms)])
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


def _term(term: ExplainedTerm) -> Term:
    source = term.source
    return _new_term(
        term=term.term,
        weight=term.weight,
        words=source.words if source.occurrences else None,
        fields=source.fields if source.occurrences else None,
        occurrences=[
            _new_occurrence(field=field, start=start, end=end) for field, start, end in source.occurrences
        ]
        or None,
        factors=source.factors or None,
    )
