"""A backup is whole or refused, and what it was made from does not matter."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import postgres
import pytest
import zstandard
from sqlalchemy import JSON, insert

from app.context import AppContext
from app.db import rows, schema, tables
from app.db.session import Database
from app.maintenance import backup
from app.storage import Found, LocalStorage, Storage

MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
FILES = {
    "datasets/ds_1.1.parquet": b"rows",
    "uploads/ds_2.req": b"",
    "artifacts/job_1.1.covey": random.Random(1).randbytes(300_000),  # noqa: S311 - content, no secret
}


Changed: TypeAlias = tuple[str, bytes] | None
"""A member of an archive under another name or with other content; None: left out."""


def fill(ctx: AppContext) -> None:
    """Something in every table, with every kind of value."""
    with ctx.db.write() as tx:
        for table in tables.Base.metadata.sorted_tables:
            row = {column.name: _example(column) for column in table.columns}
            tx.session.execute(insert(table).values(row))
            if table.name == "datasets":
                again = {
                    **row,
                    "id": "ds_2",
                    "storage_key": None,
                    "label_tree": None,
                    "description": 'A\n"ü"€😀',
                }
                tx.session.execute(insert(table).values({**again, "upload_key": "uploads/ds_2.req"}))
    for key, content in FILES.items():
        with ctx.storage.create(key) as file:
            file.write(content)


def _example(column: Any) -> Any:
    known = {
        "storage_key": "datasets/ds_1.1.parquet",
        "upload_key": None,
        "artifact_key": "artifacts/job_1.1.covey",
        "scopes": ["read", "train"],
        "feedback": [],
    }
    if column.name in known:
        return known[column.name]
    if isinstance(column.type, tables.UtcDateTime):
        return MOMENT
    if isinstance(column.type, JSON):
        return {"deep": [1, 2.5, None, {"ü": "€"}], "true": True}
    return {int: 1, str: "x1", bool: True}[column.type.python_type]


def everything(db: Database) -> dict[str, list[dict[str, Any]]]:
    with rows.snapshot(db) as session:
        return {name: list(rows.exported(session, name)) for name in rows.table_names()}


def contents(storage: Storage) -> dict[str, bytes]:
    return {file.key: storage.local(file.key).read_bytes() for file in storage.all_files()}


@pytest.fixture
def elsewhere(kind_of_database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of the other kind."""
    if kind_of_database == "sqlite":
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        url = server.create()
    else:
        url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    db = Database(url)
    yield db
    db.close()
    if kind_of_database == "sqlite":
        server.drop(url)


def test_everything_goes_from_one_kind_of_database_to_the_other(
    ctx: AppContext, elsewhere: Database, tmp_path: Path
) -> None:
    fill(ctx)
    file = tmp_path / "covey.tar.zst"
    made = backup.back_up(ctx.db, ctx.storage, file)
    assert made.files == 3
    assert file.stat().st_mode & 0o777 == 0o600
    storage = LocalStorage(tmp_path / "elsewhere")
    assert backup.restore(elsewhere, storage, file) == made
    before = everything(ctx.db)
    assert everything(elsewhere) == before
    assert all(before.values()), "a table was not tested"
    assert before["datasets"][0]["created_at"] == "2026-02-03T04:05:06.789012+00:00"
    assert contents(storage) == FILES
    assert schema.current(elsewhere.engine) == schema.head()
    with elsewhere.read() as session:
        assert session.get(tables.Worker, "x1") is None, "processes are not restored"
    with pytest.raises(backup.BackupError, match=r"the database is not empty: .*datasets"):
        backup.restore(elsewhere, LocalStorage(tmp_path / "third"), file)
    with pytest.raises(backup.BackupError, match="is there already"):
        backup.back_up(ctx.db, ctx.storage, file)


def sqlite(path: Path) -> Database:
    return Database(f"sqlite:///{path}")


ON_ONE = pytest.mark.parametrize("kind_of_database", ["sqlite"])
"""For what does not depend on the database."""


@pytest.fixture
def made(ctx: AppContext, tmp_path: Path) -> Path:
    """A backup."""
    fill(ctx)
    backup.back_up(ctx.db, ctx.storage, tmp_path / "made")
    return tmp_path / "made"


@ON_ONE
def test_storage_that_is_not_empty_is_refused(made: Path, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "taken")
    with storage.create("uploads/one"):
        pass
    with pytest.raises(backup.BackupError, match="storage is not empty: there is uploads/one"):
        backup.restore(sqlite(tmp_path / "new.db"), storage, made)


def _rewritten(source: Path, target: Path, change: Callable[[str, bytes], Changed]) -> Path:
    """The archive with other members, as somebody could make it who knows the format."""
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
                made = tarfile.TarInfo(name)
                made.size = len(data)
                new.addfile(made, io.BytesIO(data))
    return target


def _damage(name: str, data: bytes) -> Changed:
    return name, (data[:-1] + bytes([data[-1] ^ 1]) if "artifacts" in name else data)


def _without(words: str) -> Callable[[str, bytes], Changed]:
    return lambda name, data: None if words in name else (name, data)


def _elsewhere(name: str, data: bytes) -> Changed:
    return name.replace("uploads/", "../../"), data.replace(b"uploads/", b"../../")


def _next_format(name: str, data: bytes) -> Changed:
    return name, data.replace(b'"format": 1', b'"format": 2')


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_damage, "damaged: storage/artifacts"),
        (_without("datasets/"), "damaged: storage/datasets"),
        (_without("database/jobs"), "damaged: database/jobs"),
        (_without("manifest"), "its manifest is missing"),
        (_elsewhere, "not a storage key"),
        (_next_format, "not a backup that this release can read"),
    ],
)
@ON_ONE
def test_a_changed_archive_is_refused_and_nothing_is_restored(
    made: Path, tmp_path: Path, change: Callable[[str, bytes], Changed], reason: str
) -> None:
    _refused(_rewritten(made, tmp_path / "changed", change), tmp_path, reason)


@pytest.mark.parametrize("kept", [0, 1, 1000, -1])
@ON_ONE
def test_half_a_file_is_refused(made: Path, tmp_path: Path, kept: int) -> None:
    half = tmp_path / "half"
    half.write_bytes(made.read_bytes()[:kept])
    _refused(half, tmp_path, "not a whole backup")


@ON_ONE
def test_a_changed_byte_is_found_anywhere(made: Path, tmp_path: Path) -> None:
    whole = made.read_bytes()
    damaged = tmp_path / "damaged"
    for place in random.Random(2).sample(range(len(whole)), 25):  # noqa: S311 - places, no secret
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            manifest = backup.verified(damaged)
        except backup.BackupError:
            continue
        # A bit that no content depends on: of the compressed frames or of a header's padding.
        assert manifest == backup.verified(made)


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else entirely")
    _refused(other, tmp_path, "not a whole backup")
    _refused(tmp_path / "absent", tmp_path, "there is no file")


def _refused(file: Path, tmp_path: Path, reason: str) -> None:
    storage = LocalStorage(tmp_path / "untouched")
    db = sqlite(tmp_path / "untouched.db")
    with pytest.raises(backup.BackupError, match=reason):
        backup.restore(db, storage, file)
    assert contents(storage) == {}
    assert schema.current(db.engine) is None
    db.close()


class _Deleting(LocalStorage):
    """A storage from which files go while they are listed, as somebody deletes a data set."""

    def __init__(self, root: Path, doomed: list[str], gone: Callable[[str], None]) -> None:
        super().__init__(root)
        self.doomed = doomed
        self.gone = gone

    def all_files(self) -> Iterator[Found]:
        yield from list(super().all_files())
        if self.doomed:
            key = self.doomed.pop()
            self.delete(key)
            self.gone(key)


@ON_ONE
def test_a_backup_begins_anew_when_a_file_that_it_needs_is_deleted(
    made: Path, ctx: AppContext, tmp_path: Path
) -> None:
    def gone(key: str) -> None:
        with ctx.db.write() as tx:
            tx.session.get_one(tables.Dataset, "ds_2").upload_key = None

    storage = _Deleting(tmp_path / "storage", ["uploads/ds_2.req"], gone)
    assert backup.back_up(ctx.db, storage, tmp_path / "second").files == 2
    manifest = backup.verified(tmp_path / "second")
    assert "uploads/ds_2.req" not in manifest.files


@ON_ONE
def test_a_backup_gives_up_when_a_file_is_missing_for_good(
    made: Path, ctx: AppContext, tmp_path: Path
) -> None:
    ctx.storage.delete("artifacts/job_1.1.covey")
    with pytest.raises(backup.BackupError, match="again and again"):
        backup.back_up(ctx.db, ctx.storage, tmp_path / "second")
    assert [path.name for path in tmp_path.iterdir() if "second" in path.name] == []


@ON_ONE
def test_a_restore_that_fails_leaves_nothing(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(tmp_path / "new")
    db = sqlite(tmp_path / "new.db")

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("app.db.rows.imported", fail)
        with pytest.raises(OSError, match="No space"):
            backup.restore(db, storage, made)
    assert contents(storage) == {}
    assert backup.restore(db, storage, made).files == 3
    db.close()


@ON_ONE
def test_the_manifest_tells_what_is_inside(made: Path) -> None:
    manifest = backup.verified(made)
    for key, content in FILES.items():
        assert manifest.files[key].sha256 == hashlib.sha256(content).hexdigest()
        assert manifest.files[key].size_bytes == len(content)
    assert manifest.revision == schema.head()
