"""``covey migrate``, ``covey backup``, ``covey restore`` and ``covey keys``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from app import logs
from app.api.paging import MAX_LIMIT, Page
from app.cli.errors import CommandError
from app.cli.open_database import open_database
from app.db import schema
from app.db.session import Database
from app.errors import ServiceError
from app.keys import service as keys
from app.keys.schemas import ApiKey, ApiKeyCreate, ApiKeyCreated, ApiKeyRotate
from app.maintenance import backup as backups
from app.maintenance.storage_setup import prepare_storage
from app.settings import Settings
from app.storage import Storage, open_storage

MISSING_FILES = 2
"""Exit status of a backup without some files, because the storage has lost them."""


def migrate(settings: Settings, revision: str) -> str:
    """Migrate the database to a revision, prepare the storage, and describe the change.

    Raises:
        CommandError: the revision does not exist, or the database is newer than this release, damaged or
            unavailable.
    """
    _create_data_folder(settings)
    with open_database(settings) as db:
        before = schema.current(db.engine)
        schema.migrate(db.engine, revision)
        after = schema.current(db.engine)
        summary = f"schema: {before or 'none'} -> {after or 'none'}"
        try:
            # The rows of another revision may have other columns.
            reason = prepare_storage(db, open_storage(settings)) if after == schema.head() else None
        except ValueError as error:
            raise CommandError(str(error)) from error
    return summary if reason is None else f"{summary}; {reason}"


def back_up(settings: Settings, file: Path) -> str:
    """Write a backup of database and storage to a new file and describe it.

    Raises:
        CommandError: the backup cannot be written. With the exit status 2, it is written, but files that
            rows reference are missing from the storage.
    """
    summary = _summarize(settings, lambda db, storage: backups.back_up(db, storage, file))
    if summary.missing:
        raise CommandError(
            f"{_describe(summary, 'backed up')}; {len(summary.missing):,} files are missing from the "
            f"storage and so from the backup: {', '.join(summary.missing[:5])}",
            MISSING_FILES,
        )
    return _describe(summary, "backed up")


def restore(settings: Settings, file: Path) -> str:
    """Fill an empty database and an empty storage from a backup and describe it.

    Raises:
        CommandError: the file is not a backup, or the database or storage is not empty.
    """
    _create_data_folder(settings)
    summary = _summarize(settings, lambda db, storage: backups.restore(db, storage, file))
    return _describe(summary, "restored")


def create_key(settings: Settings, name: str, scopes: list[str]) -> ApiKeyCreated:
    """Create an API key.

    Raises:
        CommandError: the database is not migrated, or a scope does not exist.
    """
    with open_database(settings) as db:
        schema.require_head(db.engine)
        try:
            return keys.create(db, ApiKeyCreate.model_validate({"name": name, "scopes": scopes}))
        except ValidationError as error:
            raise CommandError(str(error)) from error


def list_keys(settings: Settings) -> Iterator[ApiKey]:
    """Return the API keys, newest first.

    Raises:
        CommandError: the database is not migrated.
    """
    with _keys_of(settings) as db:
        after: str | None = None
        while True:
            page = keys.page(db, Page(MAX_LIMIT, after))
            yield from page.items
            if page.next_cursor is None:
                return
            after = page.items[-1].id


def describe_key(key: ApiKey) -> str:
    """Return a line about a key: id, scopes, times and name."""
    used = f"used {_day(key.last_used_at)}" if key.last_used_at else "never used"
    end = f", expires {_day(key.expires_at)}" if key.expires_at else ""
    return f"{key.id}  {','.join(key.scopes)}  created {_day(key.created_at)}, {used}{end}  {key.name}"


def rotate_key(settings: Settings, key_id: str, grace_seconds: int) -> ApiKeyCreated:
    """Give a key a new secret.

    Raises:
        CommandError: the database is not migrated, or there is no such key.
    """
    with _keys_of(settings) as db:
        return keys.rotate(db, key_id, ApiKeyRotate(grace_seconds=grace_seconds))


def delete_key(settings: Settings, key_id: str) -> None:
    """Delete a key.

    Raises:
        CommandError: the database is not migrated, there is no such key, or it is the last one of an
            administrator.
    """
    with _keys_of(settings) as db:
        keys.delete(db, key_id)


@contextmanager
def _keys_of(settings: Settings) -> Iterator[Database]:
    """Open the database, and report errors about keys."""
    with open_database(settings) as db:
        schema.require_head(db.engine)
        try:
            yield db
        except ServiceError as error:
            raise CommandError(error.detail) from error


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def allow_anonymous(settings: Settings) -> str:
    """Accept requests without a key again, and describe the change.

    Raises:
        CommandError: the database is not migrated, or other machines can reach the service.
    """
    if not settings.listens_on_loopback:
        raise CommandError(
            f"other machines can reach {settings.host}; only a service on a loopback address can accept "
            "requests without a key"
        )
    with open_database(settings) as db:
        schema.require_head(db.engine)
        keys.allow_anonymous(db)
    return (
        "requests without a key are accepted on loopback after the API has restarted, until the next key is "
        "created"
    )


def _create_data_folder(settings: Settings) -> None:
    if not settings.database_url:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)


def _describe(summary: backups.Summary, verb: str) -> str:
    return f"{verb}: {summary.rows:,} rows, {summary.files:,} files of {summary.bytes:,} bytes"


def _summarize(settings: Settings, work: Callable[[Database, Storage], backups.Summary]) -> backups.Summary:
    logs.configure(settings)
    with open_database(settings) as db:
        try:
            return work(db, open_storage(settings))
        except (backups.BackupError, OSError, ValueError) as error:
            raise CommandError(str(error)) from error
