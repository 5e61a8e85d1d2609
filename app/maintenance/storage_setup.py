"""Prepare the storage when the database is migrated: a folder gets its marker, and a bucket must exist."""

from __future__ import annotations

import structlog

from app.db.file_references import has_file_references
from app.db.session import Database
from app.storage import Storage, StorageUnavailableError

log = structlog.get_logger()


def prepare_storage(db: Database, storage: Storage) -> str | None:
    """Prepare the storage for its first use. Do nothing if it was prepared before.

    If the database refers to files, an empty folder is not the storage, but the place where it is to be
    mounted, and remains as it is.

    Returns:
        why the storage cannot be used now; None if it can.
    """
    try:
        if not storage.is_initialized():
            storage.initialize(must_contain_files=has_file_references(db))
    except StorageUnavailableError as error:
        log.error("storage.unavailable", reason=error.strerror)  # noqa: TRY400 - a traceback adds nothing
        return error.strerror
    return None
