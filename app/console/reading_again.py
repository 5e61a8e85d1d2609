"""Buttons and the form that read the upload of a data set again in another way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import Request, Response

from app.api.base_route import Context, TrainScope
from app.api.schemas import DatasetId
from app.console.rendering import page
from app.console.route import pages
from app.console.schema_form import Field, SchemaForm
from app.console.words import choice_of, label_of
from app.datasets import service
from app.datasets.kept_uploads import Reading
from app.datasets.schemas import DatasetCreate
from app.errors import NotFound
from models.data.advice import Suggestion

router = pages()

FORM_FIELDS = ("options", "merge_labels", "rename_labels", "remove_labels", "max_bad_records")

_MARKS = {"\t": "a tab", "\n": "a line break", " ": "a space"}


@dataclass(frozen=True)
class Proposal:
    """Another way to read a file, as a button or a small form.

    Attributes:
        text: what happens, in words: the text of a button.
        request: the request for the data set; without the value to choose.
        field: the field to choose, such as ``options/labels``; empty if there is nothing to choose.
        label: what is chosen.
        choices: the values to choose from.
    """

    text: str
    request: Mapping[str, Any]
    field: str = ""
    label: str = ""
    choices: Sequence[str] = ()


def proposals(reading: Reading | None) -> dict[str, Proposal]:
    """Return the proposals for a data set, by the warning or error that suggests them."""
    if reading is None:
        return {}
    return {
        text: proposal
        for text, suggestion in reading.suggestions.items()
        if (proposal := _proposal(reading.request, suggestion)) is not None
    }


def _proposal(request: Mapping[str, Any], suggestion: Suggestion) -> Proposal | None:
    field, value = suggestion.field, suggestion.value
    part, _, name = field.rpartition("/")
    if value is None:
        if not suggestion.choices:
            return None
        changed = {} if name == "format" else request.get("options", {})
        changed = {key: item for key, item in changed.items() if key != name}
        changed_request = {**request, "options": changed}
        return Proposal("Read it again", changed_request, field, label_of(field), suggestion.choices)
    if name == "format":
        changes: dict[str, Any] = {"options": {"format": value}}
    elif part:
        changes = {part: {**request.get(part, {}), name: value}}
    else:
        changes = {field: sorted({*request.get(field, ()), *value}) if isinstance(value, list) else value}
    return Proposal(f"Read it again {_words(name, value)}", {**request, **changes})


def _words(name: str, value: Any) -> str:
    """Return how a file is read with a value, in words.

    >>> _words("label_separator", ";"), _words("root", "mail"), _words("encoding", "cp1252")
    ('with “;” between labels', 'without “mail/” in the labels', 'as Windows-1252')
    """
    match name:
        case "label_separator":
            return f"with {_MARKS.get(value) or f'“{value}”'} between labels"
        case "root":
            return f"without “{value}/” in the labels" if value else "with the outer folder in the labels"
        case "encoding" | "format":
            return f"as {choice_of(name, value)}"
        case "decimal":
            return "with decimal commas"
        case "merge_labels":
            return "and merge similar labels"
        case "remove_labels":
            return (
                f"without the label{'s' * (len(value) > 1)} {', '.join(f'“{label}”' for label in value[:5])}"
            )
        case "max_bad_records":
            return "without the bad record" if value == 1 else f"without the {value:,} bad records"
    return f"with “{value}” as {label_of(name)}"


@router.get("/datasets/{dataset_id}/read-again", dependencies=[TrainScope])
def read_again(ctx: Context, request: Request, dataset_id: DatasetId) -> Response:
    """Show a form with the options with which the upload of a data set was read."""
    reading = service.reading(ctx.db, dataset_id)
    if reading is None:
        raise NotFound("the uploaded file of this data set is not kept any more; upload it again")
    return page(
        request,
        "datasets/read_again.html",
        dataset=service.get(ctx.db, dataset_id),
        fields=_form().fields(FORM_FIELDS, reading.request),
    )


@cache
def _form() -> SchemaForm:
    return SchemaForm(DatasetCreate.model_json_schema())


def upload_fields() -> list[Field]:
    """Return the fields of the form for a new upload."""
    return _form().fields(["options", "merge_labels", "max_bad_records"], {})
