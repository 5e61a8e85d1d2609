"""The columns that hold keys of files in the storage, without which the rows are of no use."""

from __future__ import annotations

from sqlalchemy import select

from app.db import tables
from app.db.session import Database

FILE_COLUMNS = {
    "datasets": ("upload_key", "storage_key"),
    "model_versions": ("artifact_key",),
    "batch_predictions": ("result_key",),
    "decisions": ("kept_message",),
}
"""Columns by table. (A job can continue without its checkpoint, and an experiment without its folds.)"""


def has_file_references(db: Database) -> bool:
    """Return whether any row refers to a file, so that a storage without files cannot be the right one."""
    with db.read() as session:
        for name, names in FILE_COLUMNS.items():
            table = tables.Base.metadata.tables[name]
            for column in names:
                if session.execute(
                    select(table.c[column]).where(table.c[column].is_not(None)).limit(1)
                ).first():
                    return True
    return False
