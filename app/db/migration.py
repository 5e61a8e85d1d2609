"""Migrate the schema of the database with Alembic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, text

from app.db.schema import SchemaError, folder, reject_newer, revisions

ADVISORY_LOCK = 0x636F766579  # "covey"


def config() -> Config:
    """Return the configuration of Alembic. It needs no ini file."""
    alembic_config = Config()
    alembic_config.set_main_option("script_location", str(folder()))
    return alembic_config


def migrate(engine: Engine, revision: str) -> None:
    """Run the migrations; see ``app.db.schema.migrate``."""
    with _locked(engine) as connection:
        alembic_config = config()
        alembic_config.attributes["connection"] = connection
        before = MigrationContext.configure(connection).get_current_revision()
        reject_newer(before)
        order = {"base": 0, **{name: n for n, name in enumerate(revisions(), 1)}, "head": len(revisions())}
        if revision not in order:
            raise SchemaError(f"revision {revision!r} does not exist; choose one of {', '.join(order)}")
        is_downgrade = order[revision] < order[before or "base"]
        (command.downgrade if is_downgrade else command.upgrade)(alembic_config, revision)


@contextmanager
def _locked(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that holds the lock for migrations."""
    with (
        engine.connect().execution_options(covey_write=True) as connection,
        _without_cascades(connection),
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        yield connection
        if connection.dialect.name == "sqlite":
            _check_foreign_keys(connection)


@contextmanager
def _without_cascades(connection: Connection) -> Iterator[None]:
    """Turn off foreign keys on SQLite, which changes a table by creating a copy and dropping the original.

    Dropping a table deletes its rows first, and with them all rows of other tables that refer to them.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA foreign_keys = OFF")  # SQLite ignores it inside a transaction
    try:
        yield
    finally:
        driver.execute("PRAGMA foreign_keys = ON")


def _check_foreign_keys(connection: Connection) -> None:
    violation = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if violation is not None:
        raise SchemaError(
            f"a row of {violation[0]} refers to a row of {violation[2]} that does not exist; the schema was "
            "not changed; restore the database from a backup"
        )
