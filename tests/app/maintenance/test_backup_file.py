"""Backups are verified before they are restored, and can be restored to another kind of database."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import in_process
import postgres
import pytest
import zstandard
from sqlalchemy import JSON, insert, select, update
from waiting import wait_for

from app.cli import database as commands
from app.cli.errors import CommandError
from app.context import AppContext
from app.datasets import creation
from app.datasets import service as datasets
from app.datasets.schemas import DatasetCreate
from app.db import backup_lock, rows, schema, tables
from app.db.session import Database
from app.maintenance import backup, retention
from app.settings import Settings
from app.storage import FileInfo, LocalStorage, Storage

MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
FILES = {
    "messages/2026-11-30/dec_1.zst": b"message",
    "datasets/ds_1.1.parquet": b"rows",
    "uploads/ds_2.req": b"",
    "predictions/job_2.1.ndjson": b"{}",
    "artifacts/job_1.1.covey": random.Random(1).randbytes(300_000),  # noqa: S311 - test data, not a secret
}


ChangedMember: TypeAlias = tuple[str, bytes] | None
"""Name and content of a changed member of an archive, or None if the member is removed."""


def fill(ctx: AppContext) -> None:
    """Insert rows into every table, with every type of value, and store files."""
    with ctx.db.write() as tx:
        for table in tables.Base.metadata.sorted_tables:
            row = {column.name: _example_value(column) for column in table.columns}
            tx.session.execute(insert(table).values(row))
            if table.name == "datasets":
                second = {
                    **row,
                    "id": "ds_2",
                    "storage_key": None,
                    "label_tree": None,
                    "description": 'A\n"ü"€😀',
                }
                tx.session.execute(insert(table).values({**second, "upload_key": "uploads/ds_2.req"}))
    for key, content in FILES.items():
        with ctx.storage.create(key) as file:
            file.write(content)


def _example_value(column: Any) -> Any:
    by_name = {
        "storage_key": "datasets/ds_1.1.parquet",
        "upload_key": None,
        "artifact_key": "artifacts/job_1.1.covey",
        "result_key": "predictions/job_2.1.ndjson",
        "kept_message": "messages/2026-11-30/dec_1.zst",
        "scopes": ["read", "train"],
        "feedback": [],
    }
    if column.name in by_name:
        return by_name[column.name]
    if isinstance(column.type, tables.UtcDateTime):
        return MOMENT
    if isinstance(column.type, JSON):
        return {"deep": [1, 2.5, None, {"ü": "€"}], "true": True}
    return {int: 1, str: "x1", bool: True, float: 0.25}[column.type.python_type]


def all_rows(db: Database) -> dict[str, list[dict[str, Any]]]:
    with rows.snapshot(db) as session:
        return {name: list(rows.export_rows(session, name)) for name in rows.table_names()}


def contents(storage: Storage) -> dict[str, bytes]:
    return {file.key: storage.local(file.key).read_bytes() for file in storage.all_files()}


@pytest.fixture
def other_database(
    kind_of_database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Database]:
    """An empty database of the other kind."""
    if kind_of_database == "sqlite":
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create()
    else:
        url = f"sqlite:///{tmp_path / 'other.db'}"
    db = Database(url)
    yield db
    db.close()
    if kind_of_database == "sqlite":
        server.drop(url)


def test_a_backup_can_be_restored_to_the_other_kind_of_database(
    ctx: AppContext, other_database: Database, tmp_path: Path
) -> None:
    fill(ctx)
    before = all_rows(ctx.db)
    file = tmp_path / "covey.tar.zst"
    summary = backup.back_up(ctx.db, ctx.storage, file)
    assert summary.files == len(FILES)
    assert file.stat().st_mode & 0o777 == 0o600
    storage = LocalStorage(tmp_path / "other")
    assert backup.restore(other_database, storage, file) == summary
    assert all_rows(other_database) == before
    assert all(before.values()), "every table has rows"
    assert before["datasets"][0]["created_at"] == "2026-02-03T04:05:06.789012+00:00"
    assert contents(storage) == FILES
    assert schema.current(other_database.engine) == schema.head()
    with other_database.read() as session:
        assert session.get(tables.Worker, "x1") is None, "workers are not restored"
    with pytest.raises(backup.BackupError, match=r"the database is not empty: .*datasets"):
        backup.restore(other_database, LocalStorage(tmp_path / "third"), file)
    with pytest.raises(backup.BackupError, match="already exists"):
        backup.back_up(ctx.db, ctx.storage, file)


def sqlite(path: Path) -> Database:
    return Database(f"sqlite:///{path}")


ONLY_SQLITE = pytest.mark.parametrize("kind_of_database", ["sqlite"])
"""For tests that do not depend on the database."""


@pytest.fixture
def backup_file(ctx: AppContext, tmp_path: Path) -> Path:
    """A backup of all tables and files."""
    fill(ctx)
    backup.back_up(ctx.db, ctx.storage, tmp_path / "backup")
    return tmp_path / "backup"


@ONLY_SQLITE
def test_restoring_to_a_storage_that_is_not_empty_is_rejected(backup_file: Path, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "not empty")
    storage.initialize()
    with storage.create("uploads/one"):
        pass
    with pytest.raises(backup.BackupError, match="storage is not empty: it contains uploads/one"):
        backup.restore(sqlite(tmp_path / "new.db"), storage, backup_file)


def _rewrite(source: Path, target: Path, change: Callable[[str, bytes], ChangedMember]) -> Path:
    """Write an archive with changed members that is valid as an archive."""
    with (
        zstandard.open(source, "rb") as plain,
        tarfile.open(fileobj=plain, mode="r|") as old,
        zstandard.open(target, "wb") as compressed,
        tarfile.open(fileobj=compressed, mode="w|") as new,
    ):
        for entry in old:
            content = old.extractfile(entry)
            assert content is not None
            if (changed := change(entry.name, content.read())) is not None:
                name, data = changed
                member = tarfile.TarInfo(name)
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
    return target


def _damage(name: str, data: bytes) -> ChangedMember:
    return name, (data[:-1] + bytes([data[-1] ^ 1]) if "artifacts" in name else data)


def _without(part_of_name: str) -> Callable[[str, bytes], ChangedMember]:
    return lambda name, data: None if part_of_name in name else (name, data)


def _with_path_traversal(name: str, data: bytes) -> ChangedMember:
    return name.replace("uploads/", "../../"), data.replace(b"uploads/", b"../../")


def _next_format(name: str, data: bytes) -> ChangedMember:
    return name, data.replace(b'"format": 1', b'"format": 2')


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_damage, "damaged: storage/artifacts"),
        (_without("datasets/"), "damaged: storage/datasets"),
        (_without("database/jobs"), "damaged: database/jobs"),
        (_without("manifest"), "its manifest is missing"),
        (_with_path_traversal, "not a storage key"),
        (_next_format, "not a backup that this release can read"),
    ],
)
@ONLY_SQLITE
def test_a_changed_archive_is_rejected_and_nothing_is_restored(
    backup_file: Path, tmp_path: Path, change: Callable[[str, bytes], ChangedMember], reason: str
) -> None:
    _check_rejected(_rewrite(backup_file, tmp_path / "changed", change), tmp_path, reason)


@pytest.mark.parametrize("kept", [0, 1, 1000, -1])
@ONLY_SQLITE
def test_a_truncated_file_is_rejected(backup_file: Path, tmp_path: Path, kept: int) -> None:
    truncated = tmp_path / "truncated"
    truncated.write_bytes(backup_file.read_bytes()[:kept])
    _check_rejected(truncated, tmp_path, "not a complete backup")


@ONLY_SQLITE
def test_a_changed_byte_is_detected_at_any_position(backup_file: Path, tmp_path: Path) -> None:
    content = backup_file.read_bytes()
    damaged = tmp_path / "damaged"
    for position in random.Random(2).sample(range(len(content)), 25):  # noqa: S311 - positions, not a secret
        changed = bytes([content[position] ^ 0x10])
        damaged.write_bytes(content[:position] + changed + content[position + 1 :])
        try:
            manifest = backup.verify(damaged)
        except backup.BackupError:
            continue
        # No content depends on some bits of the compressed frames and of the padding of headers.
        assert manifest == backup.verify(backup_file)


def test_a_file_that_is_not_a_backup_is_rejected(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else entirely")
    _check_rejected(other, tmp_path, "not a complete backup")
    _check_rejected(tmp_path / "absent", tmp_path, "does not exist")


def _check_rejected(file: Path, tmp_path: Path, reason: str) -> None:
    storage = LocalStorage(tmp_path / "untouched")
    db = sqlite(tmp_path / "untouched.db")
    with pytest.raises(backup.BackupError, match=reason):
        backup.restore(db, storage, file)
    assert not storage.root.exists()
    assert schema.current(db.engine) is None
    db.close()


class _HeldStorage(LocalStorage):
    """A storage that calls a function after the snapshot of the rows, before the first file is copied."""

    def __init__(self, root: Path, before_copying: Callable[[], None]) -> None:
        super().__init__(root)
        self._before_copying = before_copying

    def all_files(self) -> Iterator[FileInfo]:
        """List all files."""
        self._before_copying()
        return super().all_files()


def test_a_backup_contains_the_files_of_data_sets_that_are_deleted_meanwhile(
    ctx: AppContext, tmp_path: Path
) -> None:
    def create_dataset() -> str:
        created = creation.create(ctx, DatasetCreate(name="n"), in_process.WITHOUT_KEY)
        key = datasets.new_upload_key(created.id)
        with ctx.storage.create(key) as file:
            file.write(b"{}")
        datasets.attach_content(ctx, created.id, key, None)
        with ctx.db.write() as tx:  # it need not wait for a worker
            tx.session.execute(update(tables.Job).values(state="cancelled", finished_at=tx.now))
        return created.id

    impatient = replace(ctx, settings=ctx.settings.model_copy(update={"collect_seconds": 1e-9}))
    before = create_dataset()
    meanwhile = []

    def delete_and_upload() -> None:
        datasets.delete(ctx, before)
        meanwhile.append(create_dataset())
        datasets.delete(ctx, create_dataset())
        retention.apply_retention(impatient)

    assert isinstance(ctx.storage, LocalStorage)
    storage = _HeldStorage(ctx.storage.root, delete_and_upload)
    summary = backup.back_up(ctx.db, storage, tmp_path / "backup")
    assert summary.missing == ()
    uploads = [key for key in backup.verify(tmp_path / "backup").files if key.startswith("uploads/")]
    assert any(before in key for key in uploads)
    # The backup has ended, so retention deletes what it had locked.
    retention.apply_retention(impatient)
    assert [meanwhile[0] in file.key for file in ctx.storage.files("uploads")] == [True]
    restored = sqlite(tmp_path / "restored.db")
    backup.restore(restored, LocalStorage(tmp_path / "restored"), tmp_path / "backup")
    with restored.read() as session:
        assert session.scalars(select(tables.Dataset.id)).all() == [before]
    restored.close()


def test_the_lock_of_a_backup_that_was_killed_expires(
    ctx: AppContext, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_lock, "database_now", lambda _: clock.now)

    def locked() -> bool:
        with ctx.db.read() as session:
            return backup_lock.are_files_locked(session)

    with backup_lock.lock_files(ctx.db):
        assert locked()
    assert not locked()
    with ctx.db.write() as tx:
        expires_at = tx.now + timedelta(seconds=backup_lock.LOCK_SECONDS)
        tx.session.add(tables.BackupLock(id="killed", expires_at=expires_at))
    assert locked()
    clock.advance(backup_lock.LOCK_SECONDS)
    assert not locked()
    with backup_lock.lock_files(ctx.db), ctx.db.read() as session:
        assert session.get(tables.BackupLock, "killed") is None


def test_the_lock_of_a_backup_is_renewed(ctx: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup_lock, "LOCK_SECONDS", 0.5)

    def expiry() -> datetime:
        with ctx.db.read() as session:
            return session.scalars(select(tables.BackupLock.expires_at)).one()

    with backup_lock.lock_files(ctx.db):
        first = expiry()
        wait_for(lambda: expiry() > first or None, what="the lock to be renewed")


@ONLY_SQLITE
def test_a_read_only_database_can_be_backed_up(backup_file: Path, ctx: AppContext, tmp_path: Path) -> None:
    ctx.db.close()
    read_only = Database(f"sqlite:///file:{tmp_path / 'covey.db'}?mode=ro&uri=true")
    summary = backup.back_up(read_only, ctx.storage, tmp_path / "second")
    assert backup.verify(tmp_path / "second").files == backup.verify(backup_file).files
    assert summary.missing == ()
    read_only.close()


@ONLY_SQLITE
def test_a_backup_names_files_that_the_storage_has_lost_and_contains_everything_else(
    backup_file: Path, ctx: AppContext, tmp_path: Path
) -> None:
    ctx.storage.delete("artifacts/job_1.1.covey")
    settings = Settings(data_dir=tmp_path, database_url=str(ctx.db.engine.url))
    with pytest.raises(CommandError, match=r"the backup: artifacts/job_1\.1\.covey") as caught:
        commands.back_up(settings, tmp_path / "second")
    assert caught.value.exit_code == commands.MISSING_FILES
    files = backup.verify(tmp_path / "second").files
    assert set(files) == set(FILES) - {"artifacts/job_1.1.covey"}


@ONLY_SQLITE
def test_a_failed_restore_leaves_no_files_or_rows(
    backup_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path / "new")
    db = sqlite(tmp_path / "new.db")

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.db.rows.import_rows", fail)
        with pytest.raises(OSError, match="No space"):
            backup.restore(db, storage, backup_file)
    assert contents(storage) == {}
    assert backup.restore(db, storage, backup_file).files == len(FILES)
    db.close()


@ONLY_SQLITE
def test_the_manifest_lists_the_files_and_the_revision(backup_file: Path) -> None:
    manifest = backup.verify(backup_file)
    for key, content in FILES.items():
        assert manifest.files[key].sha256 == hashlib.sha256(content).hexdigest()
        assert manifest.files[key].size_bytes == len(content)
    assert manifest.revision == schema.head()
