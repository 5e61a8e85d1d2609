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


def request_of(row: tables.Dataset) -> Mapping[str, Any]:
    """Return the fields of the request that tell how the upload of a data set is read."""
    changes = row.options.get("label_changes") or {}
    return {
        "options": row.options.get("format") or ({"format": row.format} if row.format else None),
        "max_bad_records": row.options.get("max_bad_records", 0),
        "merge_labels": "similar" if changes.get("merge_similar") else None,
        "rename_labels": changes.get("rename") or None,
        "remove_labels": changes.get("remove") or None,
    }
