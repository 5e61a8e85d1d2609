"""Once the service has had a key, it requires keys until a command allows anonymous requests again."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from catalogs import running_catalog

from app.cli import database as commands
from app.cli.errors import CommandError
from app.context import AppContext
from app.db import tables
from app.db.session import Database
from app.errors import Conflict
from app.keys import service
from app.keys.authenticator import KeyAuthenticator
from app.keys.last_used import LastUsed
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated
from app.keys.service import AuthenticationRequiredError
from app.maintenance import backup as backups
from app.settings import Settings
from app.storage import LocalStorage


def create_key(db: Database, *scopes: str, **fields: Any) -> ApiKeyCreated:
    body = {"name": "test", "scopes": scopes or ["admin"], **fields}
    return service.create(db, ApiKeyCreate.model_validate(body))


def allows_anonymous(db: Database, settings: Settings) -> bool:
    """Whether a process that starts now accepts anonymous requests."""
    return asyncio.run(_allows_anonymous(db, settings))


async def _allows_anonymous(db: Database, settings: Settings) -> bool:
    async with running_catalog(db, settings) as catalog:
        return await KeyAuthenticator(catalog, LastUsed(db)).allows_anonymous()


def delete_all_keys(db: Database) -> None:
    with db.write() as tx:
        tx.session.query(tables.ApiKey).delete()


def test_the_first_key_ends_anonymous_access_also_after_all_keys_are_gone(ctx: AppContext) -> None:
    assert allows_anonymous(ctx.db, ctx.settings)
    create_key(ctx.db)
    assert not allows_anonymous(ctx.db, ctx.settings)
    delete_all_keys(ctx.db)
    assert not allows_anonymous(ctx.db, ctx.settings)


def test_the_last_valid_admin_key_cannot_be_deleted(database: Database) -> None:
    first, second = create_key(database), create_key(database)
    create_key(database, "read")
    expired = create_key(database, expires_at=datetime.now(UTC) + timedelta(hours=1))
    with database.write() as tx:
        row = tx.session.get_one(tables.ApiKey, expired.id)
        row.expires_at = tx.now - timedelta(hours=1)
    service.delete(database, first.id)
    with pytest.raises(Conflict, match="covey keys allow-anonymous") as refused:
        service.delete(database, second.id)
    assert refused.value.code == "last_admin_key"
    service.delete(database, expired.id)
    third = create_key(database)
    service.delete(database, second.id)
    with pytest.raises(Conflict):
        service.delete(database, third.id)


def test_two_administrators_cannot_delete_each_other(database: Database) -> None:
    keys = [create_key(database), create_key(database)]
    outcomes: list[str] = []
    start = threading.Barrier(2)

    def delete(key_id: str) -> None:
        start.wait()
        try:
            service.delete(database, key_id)
            outcomes.append("deleted")
        except Conflict as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=delete, args=(key.id,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["deleted", "last_admin_key"]


def test_two_first_keys_at_the_same_time_both_succeed(ctx: AppContext) -> None:
    start = threading.Barrier(2)
    created: list[ApiKeyCreated] = []

    def create() -> None:
        start.wait()
        created.append(create_key(ctx.db))

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 2
    assert not allows_anonymous(ctx.db, ctx.settings)


def test_a_command_allows_anonymous_requests_until_the_next_key(ctx: AppContext) -> None:
    key = create_key(ctx.db)

    async def while_a_process_runs() -> None:
        async with running_catalog(ctx.db, ctx.settings) as catalog:
            running = KeyAuthenticator(catalog, LastUsed(ctx.db))
            assert not await running.allows_anonymous()
            assert "restarted" in await asyncio.to_thread(commands.allow_anonymous, ctx.settings)
            await catalog.after_miss()
            assert not await running.allows_anonymous(), "a running process stays closed"

    asyncio.run(while_a_process_runs())
    assert allows_anonymous(ctx.db, ctx.settings)
    service.delete(ctx.db, key.id)
    create_key(ctx.db)
    assert not allows_anonymous(ctx.db, ctx.settings)


def test_the_command_is_refused_if_other_machines_can_reach_the_service(ctx: AppContext) -> None:
    create_key(ctx.db)
    settings = ctx.settings.model_copy(update={"host": "192.0.2.1"})
    with pytest.raises(CommandError, match="loopback"):
        commands.allow_anonymous(settings)
    delete_all_keys(ctx.db)
    service.require_keys(settings, ctx.db)  # closed for everyone, but safe
    commands.allow_anonymous(ctx.settings)
    with pytest.raises(AuthenticationRequiredError):
        service.require_keys(settings, ctx.db)


def test_a_restored_service_still_requires_keys(ctx: AppContext, tmp_path: Path) -> None:
    create_key(ctx.db)
    delete_all_keys(ctx.db)
    file = tmp_path / "backup.tar.zst"
    backups.back_up(ctx.db, ctx.storage, file)
    restored = Database(f"sqlite:///{tmp_path / 'restored.db'}")
    backups.restore(restored, LocalStorage(tmp_path / "restored"), file)
    assert not allows_anonymous(restored, ctx.settings)
    restored.close()
