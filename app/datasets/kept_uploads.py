"""Uploaded files, which are kept for some days so that other data sets can be read from them.

A data set never changes. If its file was read wrongly, another data set is made from the same file with
other options. Both rows then refer to one file. Retention removes it from all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import exists, select

from app.db import tables
from app.db.session import Transaction
from app.errors import Conflict
from models.data.advice import Suggestion
from models.data.readers.registry import FORMATS

POINTER = "/from_upload"
"""JSON pointer of the id of the data set with the upload in a request."""


@dataclass(frozen=True)
class Upload:
    """An uploaded file.

    Attributes:
        key: its storage key.
        encoding: its content encoding; None if it has none.
        uploaded_at: the time of the upload.
    """

    key: str
    encoding: str | None
    uploaded_at: datetime


def upload_of(row: tables.Dataset) -> Upload:
    """Return the upload of a data set. The caller has locked the row, so that retention does not delete it.

    Raises:
        Conflict: the upload is not kept, or the data set was not made from one.
    """
    if row.upload_key is None or row.uploaded_at is None:
        message = (
            f"data set {row.id} has no upload, or its upload is not kept any more; create a data set, and "
            "upload the file"
        )
        raise Conflict(message, code="upload_not_kept", errors=[(POINTER, message)])
    return Upload(row.upload_key, row.upload_encoding, row.uploaded_at)


def unshared_key(tx: Transaction, row: tables.Dataset) -> list[str]:
    """Return the storage key of the upload of a data set; none if another data set has the same upload."""
    other = exists().where(tables.Dataset.upload_key == row.upload_key, tables.Dataset.id != row.id)
    if row.upload_key is None or tx.session.scalar(select(other)):
        return []
    return [row.upload_key]


@dataclass(frozen=True)
class Reading:
    """How an upload was read, and other ways to read it.

    Attributes:
        request: the request for another data set that is read from the upload in the same way.
        suggestions: other ways to read it, by the warning or error that names them.
    """

    request: Mapping[str, Any]
    suggestions: Mapping[str, Suggestion]


def reading_of(row: tables.Dataset) -> Reading | None:
    """Return how the upload of a data set was read; None if it is not kept, or not the whole content."""
    if row.uploaded_at is None or row.lineage is not None or row.state not in ("ready", "failed"):
        return None
    result: Mapping[str, Any] = row.error or row.report or {}
    format_ = row.format or result.get("format")
    changes = row.options["label_changes"] or {}
    request = {
        "name": row.name,
        "description": row.description,
        "from_upload": row.id,
        "options": row.options["format"] or (format_ and {"format": format_}),
        "max_bad_records": row.options["max_bad_records"] or None,
        "merge_labels": "similar" if changes.get("merge_similar") else None,
        "rename_labels": changes.get("rename") or None,
        "remove_labels": changes.get("remove") or None,
    }
    suggestions = {text: Suggestion(**fields) for text, fields in result.get("suggestions", {}).items()}
    return Reading(
        {name: value for name, value in request.items() if value is not None},
        {text: item for text, item in suggestions.items() if _has_option(format_, item.field)},
    )


def _has_option(format_: str | None, field: str) -> bool:
    """Return whether a request for a data set of a format has a field."""
    name = field.removeprefix("options/")
    return name in (field, "format") or (
        format_ is not None and name in FORMATS[format_].options.model_fields
    )
