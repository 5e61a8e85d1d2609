"""A marker file tells the folder of the storage from the empty folder on which it is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.context import AppContext
from app.db import tables
from app.maintenance.storage_setup import prepare_storage
from app.storage import LocalStorage, StorageUnavailableError
from app.storage.local import EMPTY, MARKER


def refer_to_a_file(ctx: AppContext) -> None:
    with ctx.db.write() as tx:
        tx.session.add(
            tables.Dataset(
                id="ds_1",
                name="d",
                state="ready",
                options={},
                storage_key="datasets/ds_1.1.parquet",
                created_at=tx.now,
            )
        )


def test_the_first_start_creates_the_folder_and_its_marker(ctx: AppContext, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "new" / "storage")
    assert prepare_storage(ctx.db, storage) is None
    assert [path.name for path in storage.root.iterdir()] == [MARKER]
    before = (storage.root / MARKER).stat()
    assert prepare_storage(ctx.db, storage) is None
    assert (storage.root / MARKER).stat().st_mtime_ns == before.st_mtime_ns


def test_a_folder_with_files_of_an_earlier_release_gets_its_marker(ctx: AppContext, tmp_path: Path) -> None:
    refer_to_a_file(ctx)
    storage = LocalStorage(tmp_path / "existing")
    (storage.root / "datasets").mkdir(parents=True)
    (storage.root / "datasets" / "ds_1.1.parquet").write_bytes(b"content")
    assert prepare_storage(ctx.db, storage) is None
    assert storage.local("datasets/ds_1.1.parquet").read_bytes() == b"content"


@pytest.mark.parametrize("exists", [False, True])
def test_an_empty_folder_stays_as_it_is_if_the_database_refers_to_files(
    exists: bool, ctx: AppContext, tmp_path: Path
) -> None:
    refer_to_a_file(ctx)
    storage = LocalStorage(tmp_path / "mount point")
    if exists:
        (storage.root / "tmp").mkdir(parents=True)
    reason = prepare_storage(ctx.db, storage)
    assert reason is not None
    assert EMPTY in reason
    assert storage.root.exists() == exists
    assert not (storage.root / MARKER).exists()
    # The administrator decides that the files are lost.
    storage.root.mkdir(exist_ok=True)
    (storage.root / MARKER).touch()
    assert prepare_storage(ctx.db, storage) is None
    storage.check()


def test_without_the_marker_nothing_is_written(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    storage.root.mkdir()
    source = tmp_path / "source"
    source.write_bytes(b"content")

    def create() -> None:
        with storage.create("uploads/one") as file:
            file.write(b"content")

    for call in (
        create,
        storage.check,
        lambda: storage.put("uploads/one", source),
        lambda: storage.delete("uploads/one"),
        lambda: storage.local("uploads/one"),
        lambda: storage.size("uploads/one"),
        lambda: list(storage.files("uploads")),
        lambda: list(storage.all_files()),
    ):
        with pytest.raises(StorageUnavailableError, match=MARKER):
            call()
    assert list(storage.root.iterdir()) == []
    assert source.exists()


def test_a_folder_that_vanishes_while_a_file_is_written_is_not_created_again(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    storage.initialize()

    def write() -> None:
        with storage.temporary_file() as path:
            storage.root.rename(tmp_path / "away")
            path.write_bytes(b"content")

    with pytest.raises(StorageUnavailableError, match=MARKER):
        write()
    assert not storage.root.exists()


def test_migrate_prepares_the_storage_and_names_the_problem_if_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVEY_STORAGE_URL", f"file://{tmp_path}/files")
    run = CliRunner()
    first = run.invoke(cli, ["migrate", "--data", str(tmp_path / "data")])
    assert first.exit_code == 0, first.output
    assert (tmp_path / "files" / MARKER).is_file()
    (tmp_path / "taken").touch()
    monkeypatch.setenv("COVEY_STORAGE_URL", f"file://{tmp_path}/taken/files")
    second = run.invoke(cli, ["migrate", "--data", str(tmp_path / "data")])
    assert second.exit_code == 0, second.output
    assert "the storage is unavailable" in second.output
