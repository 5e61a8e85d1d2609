"""``covey backup`` and ``covey restore``: all data of the service in one file.

The file is a tar archive, compressed with zstd. It contains the rows of each table as JSON lines, every file
of the storage under its key, and at the end a manifest with the digest of each member. The format does not
depend on the kind of database or storage: a backup of SQLite and a folder can be restored to PostgreSQL and a
bucket.

The rows are a snapshot of one moment. Files never change, so the files that the rows reference can be copied
after that moment, while the service is running. Until they are copied, none is deleted; see
``app.db.backup_lock``.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Literal

import structlog
import zstandard
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from app.db import counters, rows, schema
from app.db.backup_lock import lock_files
from app.db.file_references import FILE_COLUMNS
from app.db.session import DATABASE_UNAVAILABLE, Database
from app.storage import Storage, StorageUnavailableError
from app.storage.interface import validate_key
from app.version import __version__

log = structlog.get_logger()

MANIFEST = "manifest.json"
TABLES = "database/"
FILES = "storage/"
_CHUNK_BYTES = 1024 * 1024
_MAX_MANIFEST_BYTES = 256 * 1024 * 1024


class BackupError(RuntimeError):
    """The backup or restore failed and left no data behind. The message states the reason."""


class Member(BaseModel):
    """One member of the archive."""

    model_config = ConfigDict(extra="forbid")

    sha256: str
    size_bytes: int


class Manifest(BaseModel):
    """The contents of a backup."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    covey: str
    revision: str
    created_at: datetime
    tables: dict[str, Member]
    files: dict[Annotated[str, AfterValidator(validate_key)], Member]


@dataclass(frozen=True)
class Summary:
    """Size of a backup.

    Attributes:
        rows: number of rows in all tables.
        files: number of files.
        bytes: total size of the files.
        missing: keys of files that rows reference, but that are not in the storage.
    """

    rows: int
    files: int
    bytes: int
    missing: tuple[str, ...] = ()


def back_up(db: Database, storage: Storage, target: Path) -> Summary:
    """Write all data to a new file. The file appears only when it is complete.

    Raises:
        BackupError: the file already exists.
        SchemaError: the schema of the database is not the one of this release.
    """
    schema.require_head(db.engine)
    if target.exists():
        raise BackupError(f"{target} already exists; choose the name of a new file")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with lock_files(db), _new_archive(partial) as archive:
            summary = _write(db, storage, archive, target.parent)
        with suppress(FileExistsError):
            os.link(partial, target)
            _record(db)
            return summary
        raise BackupError(f"another process has created {target} in between; choose the name of a new file")
    finally:
        partial.unlink(missing_ok=True)


def restore(db: Database, storage: Storage, source: Path) -> Summary:
    """Restore a backup to an empty database and an empty storage, after verifying the whole file.

    Raises:
        BackupError: the database or storage is not empty, or the file is damaged.
        SchemaError: a newer release wrote the backup.
    """
    manifest = verify(source)
    if schema.current(db.engine) is not None:
        schema.require_head(db.engine)
        with db.read() as session:
            if non_empty := rows.non_empty_tables(session):
                raise BackupError(
                    f"the database is not empty: it has rows in {', '.join(non_empty)}; "
                    "restore to an empty database"
                )
    storage.initialize()
    if (first := next(iter(storage.all_files()), None)) is not None:
        raise BackupError(f"the storage is not empty: it contains {first.key}; restore to an empty storage")
    # The rows are inserted into tables of the backup's revision, and then migrated to this release.
    schema.migrate(db.engine, manifest.revision)
    try:
        _extract_files(storage, source)
        count = _extract_rows(db, source)
    except BaseException:
        with suppress(StorageUnavailableError):
            for key in manifest.files:
                storage.delete(key)
        raise
    schema.migrate(db.engine)
    return Summary(count, len(manifest.files), sum(member.size_bytes for member in manifest.files.values()))


def verify(source: Path) -> Manifest:
    """Check that a backup is complete and undamaged. Return its manifest.

    Raises:
        BackupError: the file is not a backup, or is damaged.
    """
    members_read: dict[str, Member] = {}
    manifest: Manifest | None = None
    if not source.is_file():
        raise BackupError(f"the file {source} does not exist")
    with _members(source) as members:
        for name, file in members:
            if name == MANIFEST:
                manifest = _parse_manifest(source, file.read(_MAX_MANIFEST_BYTES))
                continue
            digest = hashlib.sha256()
            size = 0
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
            members_read[name] = Member(sha256=digest.hexdigest(), size_bytes=size)
    if manifest is None:
        raise BackupError(f"{source} is not a complete backup: its manifest is missing")
    expected = {f"{TABLES}{name}.jsonl": member for name, member in manifest.tables.items()}
    expected |= {f"{FILES}{key}": member for key, member in manifest.files.items()}
    if members_read != expected:
        names = members_read.keys() | expected.keys()
        wrong = sorted(name for name in names if members_read.get(name) != expected.get(name))
        raise BackupError(f"{source} is damaged: {', '.join(wrong[:5])}")
    return manifest


def _record(db: Database) -> None:
    """Record the time of a complete backup. A database that cannot be written does not spoil the backup."""
    try:
        with db.write() as tx:
            counters.count(tx, "backup")
    except DATABASE_UNAVAILABLE as error:
        log.warning("backup.not_recorded", reason=type(error).__name__)


def _parse_manifest(source: Path, content: bytes) -> Manifest:
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        raise BackupError(f"{source} is not a backup that this release can read: {error}") from error


def _write(db: Database, storage: Storage, archive: tarfile.TarFile, spool: Path) -> Summary:
    """Write all members of an archive. Temporary files are created in the folder ``spool``."""
    manifest = Manifest(
        covey=__version__, revision=schema.head(), created_at=datetime.now(UTC), tables={}, files={}
    )
    referenced: set[str] = set()
    count = 0
    with rows.snapshot(db) as session:
        for name in rows.table_names():
            with tempfile.TemporaryFile(dir=spool) as file:
                for row in rows.export_rows(session, name):
                    count += 1
                    referenced.update(row[column] for column in FILE_COLUMNS.get(name, ()) if column in row)
                    file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                manifest.tables[name] = _add(archive, f"{TABLES}{name}.jsonl", file)
    # Other files are copied too: checkpoints of jobs, for example. They can be deleted at the same time.
    for key in sorted(referenced | {file.key for file in storage.all_files()}):
        try:
            path = storage.local(key)
            with path.open("rb") as content:
                manifest.files[key] = _add(archive, f"{FILES}{key}", content)
        except FileNotFoundError:
            continue
    missing = tuple(sorted(referenced - manifest.files.keys()))
    for key in missing:
        log.error("backup.file_missing", key=key)
    with tempfile.TemporaryFile(dir=spool) as file:
        file.write(manifest.model_dump_json(indent=1).encode())
        _add(archive, MANIFEST, file)
    size = sum(member.size_bytes for member in manifest.files.values())
    return Summary(count, len(manifest.files), size, missing)


def _extract_files(storage: Storage, source: Path) -> None:
    """Write the files of a verified archive to the storage."""
    with _members(source) as members:
        for name, file in members:
            if name.startswith(FILES):
                with storage.create(name.removeprefix(FILES)) as target:
                    while chunk := file.read(_CHUNK_BYTES):
                        target.write(chunk)


def _extract_rows(db: Database, source: Path) -> int:
    """Write the rows of a verified archive to the database in one transaction. Return their number."""
    count = 0
    with db.write() as tx, _members(source) as members:
        tables = rows.reflect_tables(tx)
        for name, file in members:
            if name.startswith(TABLES):
                table = tables[name.removeprefix(TABLES).removesuffix(".jsonl")]
                count += rows.import_rows(tx, table, map(json.loads, file))
    return count


@contextmanager
def _new_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Create an archive that only the current user can read, because it contains all data."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with (
            zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as compressed,
            tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            yield archive
        raw.flush()
        os.fsync(raw.fileno())


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes]) -> Member:
    """Add a file to the archive, from its beginning. Return its entry in the manifest."""
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # accepts any binary file
    entry = tarfile.TarInfo(name)
    entry.size = file.tell()
    entry.mode = 0o600
    file.seek(0)
    archive.addfile(entry, file)
    return Member(sha256=digest, size_bytes=entry.size)


@contextmanager
def _members(source: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Iterate over the members of an archive in order. Each must be read before the next one is requested.

    Raises:
        BackupError: the archive is truncated or damaged, or is not an archive.
    """

    def iterate(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
        for entry in archive:
            file = archive.extractfile(entry)
            if file is None:
                raise BackupError(f"{source} is not a backup: its member {entry.name} is not a file")
            yield entry.name, file

    try:
        with (
            source.open("rb") as raw,
            zstandard.ZstdDecompressor().stream_reader(raw) as plain,
            tarfile.open(fileobj=plain, mode="r|") as archive,
        ):
            yield iterate(archive)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise BackupError(f"{source} is not a complete backup: {error}") from error
