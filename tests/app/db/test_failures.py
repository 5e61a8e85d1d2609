"""A database that is full, read-only or damaged is reported as what it is."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, text

from app.api import problem_handlers
from app.context import AppContext
from app.db import schema, tables
from app.db.failures import (
    DatabaseDamagedError,
    DatabaseFullError,
    DatabaseReadOnlyError,
    DatabaseStateError,
    failure_type,
)
from app.db.session import Database, unavailable_reason
from app.health.service import check_readiness
from app.ids import new_id

ONLY_SQLITE = pytest.mark.parametrize("kind_of_database", ["sqlite"])
ONLY_POSTGRESQL = pytest.mark.parametrize("kind_of_database", ["postgresql"])


def write(db: Database, size: int = 10) -> None:
    with db.write() as tx:
        tx.session.add(tables.Model(name=new_id("ds"), last_version=1, created_at=tx.now))
        tx.session.add(
            tables.IdempotencyRecord(
                caller="c", key=new_id("req"), fingerprint="f", response={"x": "y" * size}, created_at=tx.now
            )
        )


def count(db: Database) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(tables.IdempotencyRecord)) or 0


def response_to(call: Callable[[], object]) -> tuple[int, str, str]:
    """Call a function in a request handler. Return status, code and detail of the response."""
    app = FastAPI()
    problem_handlers.install(app)

    @app.get("/")
    def _() -> None:
        call()

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://covey") as client:
            return await client.get("/")

    response = asyncio.run(get())
    assert response.headers["content-type"] == "application/problem+json"
    assert int(response.headers["retry-after"]) > 0
    return response.status_code, response.json()["code"], response.json()["detail"]


@ONLY_SQLITE
def test_a_full_disk_is_reported_and_reading_continues(database: Database) -> None:
    write(database)
    with database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    database.close()
    limited = Database(str(database.engine.url))
    with limited.engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    assert response_to(lambda: write(limited, 1_000_000)) == (
        503,
        "database_full",
        "the database is full; the administrator must free space on its disk",
    )
    assert count(limited) == 1
    limited.close()


@ONLY_SQLITE
def test_a_read_only_file_is_reported_and_reading_continues(database: Database, tmp_path: Path) -> None:
    write(database)
    database.close()
    read_only = Database(f"sqlite:///file:{tmp_path / 'covey.db'}?mode=ro&uri=true")
    assert response_to(lambda: write(read_only))[:2] == (503, "database_read_only")
    assert count(read_only) == 1
    read_only.close()


@ONLY_POSTGRESQL
def test_a_read_only_server_is_reported_and_reading_continues(database: Database) -> None:
    write(database)
    database.close()
    read_only = Database(
        database.engine.url.update_query_dict(
            {"options": "-c default_transaction_read_only=on"}, append=True
        ).render_as_string(hide_password=False)
    )
    assert response_to(lambda: write(read_only))[:2] == (503, "database_read_only")
    assert count(read_only) == 1
    read_only.close()


@ONLY_POSTGRESQL
@pytest.mark.parametrize(
    ("sqlstate", "code"),
    [("53100", "database_full"), ("XX001", "database_damaged"), ("XX002", "database_damaged")],
)
def test_errors_of_postgresql_are_reported_by_their_state(
    database: Database, sqlstate: str, code: str
) -> None:
    def fail() -> None:
        with database.write() as tx:
            tx.session.execute(
                text(f"DO $$ BEGIN RAISE EXCEPTION 'invalid page' USING ERRCODE = '{sqlstate}'; END $$")
            )

    assert response_to(fail)[:2] == (503, code)
    write(database)  # other tables can still be used
    assert count(database) == 1


def filled_file(folder: Path, migrated: Path) -> Path:
    """Return a database file with many pages."""
    path = folder / "filled.db"
    shutil.copyfile(migrated, path)
    db = Database(f"sqlite:///{path}")
    for _ in range(50):
        write(db, 5000)
    db.truncate_wal()
    db.close()
    return path


def damage(path: Path, first: float, last: float) -> None:
    """Overwrite a part of a file: from one fraction of its length to another."""
    content = bytearray(path.read_bytes())
    start, end = int(len(content) * first), int(len(content) * last)
    content[start:end] = b"\xa5" * (end - start)
    path.write_bytes(content)


@pytest.mark.parametrize("part", [(0.0, 0.001), (0.2, 0.9)], ids=["header", "middle"])
def test_a_damaged_file_is_found_before_it_is_used(
    tmp_path: Path, migrated_sqlite: Path, part: tuple[float, float]
) -> None:
    path = filled_file(tmp_path, migrated_sqlite)
    db = Database(f"sqlite:///{path}")
    db.check_file(60)
    db.close()
    damage(path, *part)
    with pytest.raises(DatabaseDamagedError) as caught:
        db.check_file(60)
    assert "restore a backup" in unavailable_reason(caught.value)
    db.close()


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000])
def test_a_file_that_is_not_a_database_is_found_unless_it_is_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    db = Database(f"sqlite:///{path}")
    if not content:
        db.check_file(60)
        assert schema.current(db.engine) is None
    else:
        with pytest.raises(DatabaseDamagedError):
            db.check_file(60)
    db.close()


def test_a_large_file_is_checked_in_part(tmp_path: Path, migrated_sqlite: Path) -> None:
    db = Database(f"sqlite:///{filled_file(tmp_path, migrated_sqlite)}")
    db.check_file(0.0)  # interrupted at once
    db.check_file(0.0, every=1000)
    assert count(db) == 50
    db.close()


@ONLY_SQLITE
def test_damage_while_the_service_runs_makes_it_not_ready_and_every_request_503(
    ctx: AppContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        write(ctx.db, 5000)
    ctx.db.truncate_wal()
    monkeypatch.setattr("app.health.service.FILE_CHECK_SECONDS", 60)
    monkeypatch.setattr("app.health.service.FILE_CHECK_INTERVAL", 0)
    assert check_readiness(ctx).database
    assert count(ctx.db) == 50
    damage(tmp_path / "covey.db", 0.3, 0.95)
    state = check_readiness(ctx)
    assert (state.ready, state.reasons) == (False, ["the database is damaged"])
    assert response_to(lambda: count(ctx.db)) == (
        503,
        "database_damaged",
        f"the database is damaged; the administrator must {DatabaseDamagedError.hint}",
    )
    assert response_to(lambda: write(ctx.db))[:2] == (503, "database_damaged")


@ONLY_SQLITE
def test_damage_that_a_request_finds_makes_the_service_not_ready(ctx: AppContext, tmp_path: Path) -> None:
    for _ in range(50):
        write(ctx.db, 5000)
    ctx.db.truncate_wal()
    assert check_readiness(ctx).database
    ctx.db.close()
    damage(tmp_path / "covey.db", 0.3, 0.95)

    def read_all() -> None:
        with ctx.db.read() as session:
            session.scalars(select(tables.IdempotencyRecord)).all()

    assert response_to(read_all)[:2] == (503, "database_damaged")
    assert check_readiness(ctx).reasons == ["the database is damaged"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.DiskFull(), DatabaseFullError),
        (psycopg.errors.ReadOnlySqlTransaction(), DatabaseReadOnlyError),
        (psycopg.errors.UndefinedFile(), DatabaseDamagedError),
        (psycopg.errors.UniqueViolation(), None),
        (psycopg.OperationalError(), None),
        (sqlite3.OperationalError("locked"), None),
        (OSError(), None),
        (None, None),
    ],
)
def test_the_kind_of_an_error(error: BaseException | None, expected: type[DatabaseStateError] | None) -> None:
    assert failure_type(error) is expected
