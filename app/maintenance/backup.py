"""``covey backup`` and ``covey restore``: everything that the service knows, in one file.

The file is a tar archive, compressed with zstd: the rows of each table as JSON lines, every file of the
storage under its key, and last a manifest with the digest of each. It does not depend on what the rows and
files came from: what was SQLite and a folder can become PostgreSQL and a bucket.

The rows are of one moment. Files are never changed once they are there, so those that the rows name can be
copied after that moment, while the service runs on.
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

from app.db import rows, schema
from app.db.session import Database
from app.storage import Storage
from app.storage.interface import checked
from app.version import __version__

log = structlog.get_logger()

MANIFEST = "manifest.json"
TABLES = "database/"
FILES = "storage/"
ATTEMPTS = 5
"""How often a backup begins anew when a file that its rows name was deleted meanwhile."""

NAMES_FILES = {"datasets": ("upload_key", "storage_key"), "model_versions": ("artifact_key",)}
"""Columns without whose files a restored service would not be whole. (A job without its checkpoint is.)"""

_CHUNK = 1024 * 1024
_LARGEST_MANIFEST = 256 * 1024 * 1024


class BackupError(RuntimeError):
    """Nothing was backed up or restored, and why."""


class _VanishedError(Exception):
    """A file that a row names has been deleted since."""


class Member(BaseModel):
    """One member of the archive."""

    model_config = ConfigDict(extra="forbid")

    sha256: str
    size_bytes: int


class Manifest(BaseModel):
    """What is in a backup."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    covey: str
    revision: str
    created_at: datetime
    tables: dict[str, Member]
    files: dict[Annotated[str, AfterValidator(checked)], Member]


@dataclass(frozen=True)
class Summary:
    """What was backed up or restored.

    Attributes:
        rows: of all tables.
        files: of the storage.
        bytes: of all files together.
    """

    rows: int
    files: int
    bytes: int


def back_up(db: Database, storage: Storage, target: Path) -> Summary:
    """Write everything to a new file, which appears when it is whole.

    Raises:
        BackupError: there is a file of that name, or things are deleted faster than they are copied.
        SchemaError: the database is another release's.
    """
    schema.require_head(db.engine)
    if target.exists():
        raise BackupError(f"{target} is there already; a backup is written to a new file")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with _new_archive(partial) as archive:
                    summary = _written(db, storage, archive, target.parent)
                break
            except _VanishedError as error:
                log.info("backup.again", attempt=attempt, reason=str(error))
        else:
            raise BackupError("files were deleted while they were copied, again and again; try again later")
        with suppress(FileExistsError):
            os.link(partial, target)
            return summary
        raise BackupError(f"{target} has appeared meanwhile; a backup is written to a new file")
    finally:
        partial.unlink(missing_ok=True)


def restore(db: Database, storage: Storage, source: Path) -> Summary:
    """Fill an empty database and an empty storage from a backup, once all of it has been checked.

    Raises:
        BackupError: they are not empty, or the file is damaged.
        SchemaError: the backup is a newer release's.
    """
    manifest = verified(source)
    if schema.current(db.engine) is not None:
        schema.require_head(db.engine)
        with db.read() as session:
            if taken := rows.holds_rows(session):
                raise BackupError(f"the database is not empty: there are rows in {', '.join(taken)}")
    if (found := next(iter(storage.all_files()), None)) is not None:
        raise BackupError(f"the storage is not empty: there is {found.key}")
    # As empty tables of the backup's revision; they are brought to this release's with the rows in them.
    schema.migrate(db.engine, manifest.revision)
    try:
        count = _read(db, storage, source)
    except BaseException:
        for key in manifest.files:
            storage.delete(key)
        raise
    schema.migrate(db.engine)
    return Summary(count, len(manifest.files), sum(member.size_bytes for member in manifest.files.values()))


def verified(source: Path) -> Manifest:
    """The manifest of a backup, every member of which is there as it was written.

    Raises:
        BackupError: the file is no backup, or is damaged.
    """
    found: dict[str, Member] = {}
    manifest: Manifest | None = None
    if not source.is_file():
        raise BackupError(f"there is no file {source}")
    with _members(source) as members:
        for name, file in members:
            if name == MANIFEST:
                manifest = _manifest(source, file.read(_LARGEST_MANIFEST))
                continue
            digest = hashlib.sha256()
            size = 0
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
            found[name] = Member(sha256=digest.hexdigest(), size_bytes=size)
    if manifest is None:
        raise BackupError(f"{source} is not a whole backup: its manifest is missing")
    told = {f"{TABLES}{name}.jsonl": member for name, member in manifest.tables.items()}
    told |= {f"{FILES}{key}": member for key, member in manifest.files.items()}
    if found != told:
        wrong = sorted(name for name in found.keys() | told.keys() if found.get(name) != told.get(name))
        raise BackupError(f"{source} is damaged: {', '.join(wrong[:5])}")
    return manifest


def _manifest(source: Path, content: bytes) -> Manifest:
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        raise BackupError(f"{source} is not a backup that this release can read: {error}") from error


def _written(db: Database, storage: Storage, archive: tarfile.TarFile, spool: Path) -> Summary:
    manifest = Manifest(
        covey=__version__, revision=schema.head(), created_at=datetime.now(UTC), tables={}, files={}
    )
    needed: set[str] = set()
    count = 0
    with rows.snapshot(db) as session:
        for name in rows.table_names():
            with tempfile.TemporaryFile(dir=spool) as file:
                for row in rows.exported(session, name):
                    count += 1
                    needed.update(row[column] for column in NAMES_FILES.get(name, ()) if column in row)
                    file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                manifest.tables[name] = _add(archive, f"{TABLES}{name}.jsonl", file)
    # Uploads first: they are the ones that soon go.
    keys = sorted((found.key for found in storage.all_files()), key=lambda key: (key not in needed, key))
    for key in keys:
        try:
            path = storage.local(key)
            with path.open("rb") as content:
                manifest.files[key] = _add(archive, f"{FILES}{key}", content)
        except FileNotFoundError:
            continue
    if vanished := needed - manifest.files.keys():
        raise _VanishedError(f"{min(vanished)} has been deleted")
    with tempfile.TemporaryFile(dir=spool) as file:
        file.write(manifest.model_dump_json(indent=1).encode())
        _add(archive, MANIFEST, file)
    return Summary(count, len(manifest.files), sum(member.size_bytes for member in manifest.files.values()))


def _read(db: Database, storage: Storage, source: Path) -> int:
    """Write what an archive that was verified holds; gives the number of rows."""
    count = 0
    with db.write() as tx, _members(source) as members:
        tables = rows.reflected(tx)
        for name, file in members:
            if name.startswith(FILES):
                with storage.create(name.removeprefix(FILES)) as target:
                    while chunk := file.read(_CHUNK):
                        target.write(chunk)
            elif name.startswith(TABLES):
                table = tables[name.removeprefix(TABLES).removesuffix(".jsonl")]
                count += rows.imported(tx, table, map(json.loads, file))
    return count


@contextmanager
def _new_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """An archive that only its owner can read: it holds everything."""
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
    """Add a whole file, from its beginning, under a name; gives what the manifest says of it."""
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type] # any binary file
    entry = tarfile.TarInfo(name)
    entry.size = file.tell()
    entry.mode = 0o600
    file.seek(0)
    archive.addfile(entry, file)
    return Member(sha256=digest, size_bytes=entry.size)


@contextmanager
def _members(source: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """The archive's members in their order; each is to be read before the next is asked for.

    Raises:
        BackupError: what was asked for last cannot be read.
    """

    def each(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
        for entry in archive:
            file = archive.extractfile(entry)
            if file is None:
                raise BackupError(f"{source} is not a backup: {entry.name} is no file")
            yield entry.name, file

    try:
        with (
            source.open("rb") as raw,
            zstandard.ZstdDecompressor().stream_reader(raw) as plain,
            tarfile.open(fileobj=plain, mode="r|") as archive,
        ):
            yield each(archive)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise BackupError(f"{source} is not a whole backup: {error}") from error
