"""Every transaction that changes keys, aliases or routers increments a revision, and no other one does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from overlap import overlap
from sqlalchemy import event, select, update

from app.cli import database as commands
from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.keys import service as keys
from app.keys.last_used import LastUsed
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyRotate
from app.maintenance import backup as backups
from app.registry import aliases, publishing
from app.registry import service as registry
from app.registry.publishing import NewVersion
from app.registry.schemas import AliasPut
from app.routing import service as routing
from app.routing.schemas import RouterPut
from app.storage import LocalStorage, StoredFile
from models.data.examples import Examples
from models.features import TextFeatures, TextFeaturesParameters
from models.perceptrons import MLPP
from models.pipeline import Pipeline


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """A pipeline that was fitted to two short texts."""
    examples = Examples("text", ["red", "green"], [("a",), ("b",)])
    return Pipeline(TextFeatures(TextFeaturesParameters(kind="text")), MLPP()).fit(examples)


@pytest.fixture
def publish(ctx: AppContext, pipeline: Pipeline) -> Callable[[Any], int]:
    """Returns a function that publishes a version of the model ``m`` with a rule for its promotion."""

    def publish(promote: Any) -> int:
        new = NewVersion(
            model="m",
            pipeline=pipeline,
            artifact=StoredFile("artifacts/a.covey", "0" * 64, 10),
            metrics={},
            warnings=[],
            dataset_id=None,
            dataset_sha256=None,
            training_job_id=None,
            timings={},
        )
        with ctx.db.write() as tx:
            return publishing.publish(tx, new, promote).version

    return publish


def revisions(db: Database) -> Mapping[str, int]:
    with db.read() as session:
        return {row.part: row.revision for row in session.scalars(select(tables.CatalogRevision))}


def changed(db: Database, change: Callable[[], object]) -> set[str]:
    """Make a change, and return the parts whose revision it has incremented, each once."""
    before = revisions(db)
    change()
    after = revisions(db)
    assert all(after[part] == revision + 1 for part, revision in before.items() if after[part] != revision)
    return {part for part, revision in after.items() if before.get(part) != revision}


def create_key(db: Database) -> ApiKeyCreated:
    return keys.create(db, ApiKeyCreate(name="test", scopes=["admin"]))


def put_router(db: Database, **fields: Any) -> None:
    routing.put(db, "desk", RouterPut.model_validate({"model": "m", "fallback": "f@example.org", **fields}))


def test_every_change_of_a_key_increments_the_revision_of_the_keys(ctx: AppContext) -> None:
    created = [create_key(ctx.db)]
    for change in (
        lambda: created.append(create_key(ctx.db)),
        lambda: commands.create_key(ctx.settings, "test", ["read"]),
        lambda: keys.rotate(ctx.db, created[0].id, ApiKeyRotate()),
        lambda: keys.delete(ctx.db, created[0].id),
        lambda: commands.allow_anonymous(ctx.settings),
    ):
        assert changed(ctx.db, change) == {"keys"}


def test_every_change_of_a_version_an_alias_or_a_router_increments_its_revision(
    ctx: AppContext, publish: Callable[[Any], int]
) -> None:
    db = ctx.db
    for change, parts in (
        (lambda: publish("if_first"), {"models"}),
        (lambda: publish("always"), {"models"}),
        (lambda: aliases.put(db, "m", "spare", AliasPut(version=1), None), {"models"}),
        (lambda: aliases.put(db, "m", "spare", AliasPut(version=2), None), {"models"}),
        (lambda: put_router(db, version="spare"), {"routers"}),
        (lambda: put_router(db, version="live"), {"routers"}),
        (lambda: aliases.delete(db, "m", "spare"), {"models"}),
        (lambda: registry.delete_version(ctx, "m", 1), {"models"}),
        (lambda: routing.delete(db, "desk"), {"routers"}),
        (lambda: registry.delete_model(ctx, "m"), {"models"}),
    ):
        assert changed(db, change) == parts


def test_a_new_version_without_an_alias_changes_nothing(
    ctx: AppContext, publish: Callable[[Any], int]
) -> None:
    publish("if_first")
    assert changed(ctx.db, lambda: publish("never")) == set()


def test_recording_the_use_of_a_key_changes_nothing(database: Database) -> None:
    key = create_key(database)
    last_used = LastUsed(database)
    last_used.record(key.id, 1.7e9)
    assert changed(database, last_used.flush) == set()
    with database.read() as session:
        assert session.get_one(tables.ApiKey, key.id).last_used_at is not None


def test_a_restore_increments_every_revision_of_its_rows(
    ctx: AppContext, publish: Callable[[Any], int], tmp_path: Path
) -> None:
    create_key(ctx.db)
    publish("if_first")
    put_router(ctx.db)
    file = tmp_path / "backup.tar.zst"
    backups.back_up(ctx.db, ctx.storage, file)
    restored = Database(f"sqlite:///{tmp_path / 'restored.db'}")
    backups.restore(restored, LocalStorage(tmp_path / "restored"), file)
    assert set(revisions(restored)) == {"keys", "models", "routers"}
    restored.close()


@pytest.mark.parametrize("change", ["objects", "statement"])
def test_the_increment_is_the_last_statement_before_the_commit(database: Database, change: str) -> None:
    key = create_key(database)
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    with database.write() as tx:
        if change == "objects":
            tx.session.get_one(tables.ApiKey, key.id).name = "another"  # flushed at the end
        else:
            tx.session.execute(update(tables.ApiKey).values(name="another"))
    assert "UPDATE api_keys" in statements[-3] or "UPDATE api_keys" in statements[-2]
    assert statements[-1].startswith("INSERT INTO catalog_revisions")


def test_a_transaction_that_fails_increments_nothing(database: Database) -> None:
    create_key(database)
    assert changed(database, lambda: rename_keys_and_fail(database)) == set()


def rename_keys_and_fail(db: Database) -> None:
    def work() -> None:
        with db.write() as tx:
            tx.session.execute(update(tables.ApiKey).values(name="another"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_the_process_is_told_after_the_commit_and_after_an_unclear_one(database: Database) -> None:
    seen: list[int] = []

    def count_keys() -> None:
        with database.read() as session:
            seen.append(len(session.scalars(select(tables.ApiKey.id)).all()))

    database.catalog_changed = count_keys
    create_key(database)
    assert seen == [1]
    rename_keys_and_fail(database)  # as if the connection had broken during the commit
    assert seen == [1, 1]
    last_used = LastUsed(database)
    last_used.record("key_1", 1.7e9)
    last_used.flush()
    assert seen == [1, 1]


@pytest.mark.parametrize("kind_of_database", ["postgresql"], indirect=True)
def test_a_transaction_with_a_later_revision_commits_later(database: Database, database_url: str) -> None:
    """Otherwise a process could read the later revision without the rows of the earlier one."""
    create_key(database)
    before = revisions(database)["keys"]
    second_is_visible: list[bool] = []

    def names() -> set[str]:
        with database.read() as session:
            return set(session.scalars(select(tables.ApiKey.name)))

    def first(db: Database) -> None:
        keys.create(db, ApiKeyCreate(name="first", scopes=["read"]))

    def second(db: Database) -> None:
        # Runs while the first one is held before its commit. It waits for the lock on the revision.
        event.listen(db.engine, "commit", lambda _: second_is_visible.append("first" in names()))
        keys.create(db, ApiKeyCreate(name="second", scopes=["read"]))

    overlap(database_url, first, second)
    assert second_is_visible == [True]
    assert revisions(database)["keys"] == before + 2
    assert {"first", "second"} <= names()
