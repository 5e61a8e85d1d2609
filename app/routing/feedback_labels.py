"""Check that the labels of a feedback are labels of the model, because a typo would become a new label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db import tables
from app.errors import Invalid
from app.routing.decision_content import predicted_labels_of
from models.data.record import json_pointer

MAX_VERSIONS = 100
"""Maximum number of versions, the newest ones, whose labels are known."""

MAX_ERRORS = 50
MAX_SUGGESTIONS = 5
MAX_COMPARED = 2_000
"""A likely label is suggested for the first unknown ones only, and among this number of labels."""

_BATCH_SIZE = 500


def check_labels(session: Session, decision: tables.Decision, labels: Sequence[str]) -> None:
    """Check that the decision, or a version or data set of its model, has every label.

    Raises:
        Invalid: a label is unknown. The errors list likely labels.
    """
    response = decision.response
    known = {*predicted_labels_of(response), *(item["label"] for item in response.get("ranking", ()))}
    unknown = {label for label in labels if label not in known}
    if unknown and decision.version is not None:
        version = session.get(tables.ModelVersion, (decision.model, decision.version))
        if version is not None:
            known.update(version.description["labels"])
            unknown -= known
    if unknown and decision.model is not None:
        unknown -= set(_in_datasets(session, decision.model, unknown))
    if unknown and decision.model is not None:
        for of_version in _of_versions(session, decision.model):
            unknown.difference_update(of_version)
    if unknown:
        raise _error(decision.model, labels, unknown, sorted(known))


def _in_datasets(session: Session, model: str, labels: Iterable[str]) -> Iterable[str]:
    """Yield the labels that a data set of a version of the model has."""
    versions, of_dataset = tables.ModelVersion, tables.DatasetLabel
    datasets = select(versions.dataset_id).where(versions.model == model, versions.dataset_id.is_not(None))
    names = sorted(labels)
    for start in range(0, len(names), _BATCH_SIZE):
        batch = names[start : start + _BATCH_SIZE]
        yield from session.scalars(
            select(of_dataset.label).where(of_dataset.dataset_id.in_(datasets), of_dataset.label.in_(batch))
        )


def _of_versions(session: Session, model: str) -> Iterable[Sequence[str]]:
    """Yield the labels of each version. Versions that were imported have no data set."""
    versions = tables.ModelVersion
    statement = (
        select(versions.description["labels"])
        .where(versions.model == model)
        .order_by(versions.version.desc())
        .limit(MAX_VERSIONS)
    )
    labels: Sequence[Any]
    for (labels,) in session.execute(statement, execution_options={"yield_per": 1}):
        yield labels


def _error(model: str | None, given: Sequence[str], unknown: set[str], known: Sequence[str]) -> Invalid:
    errors: list[tuple[str, str]] = []
    for i, label in enumerate(given):
        if label not in unknown:
            continue
        message = f"{label!r} is not a label of the model {model}"
        if len(errors) < MAX_SUGGESTIONS and (likely := _likely(label, known)):
            message += f"; did you mean {' or '.join(map(repr, likely))}?"
        errors.append((json_pointer("labels", i), message))
        if len(errors) == MAX_ERRORS:
            break
    detail = f"{errors[0][1]} (to submit a label that no version has learned, set allow_new_labels)"
    return Invalid(detail, code="unknown_label", errors=errors)


def _likely(label: str, known: Sequence[str]) -> list[str]:
    """Return up to three labels that are written almost like a label."""
    folded = {other.casefold(): other for other in known[:MAX_COMPARED]}
    return [folded[match] for match in get_close_matches(label.casefold(), [*folded], n=3, cutoff=0.7)]
