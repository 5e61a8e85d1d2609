"""Migrate the schema of the database, and reject a database whose schema is not up to date."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

import migrations

ADVISORY_LOCK = 0x636F766579  # "covey"


class SchemaError(RuntimeError):
    """The schema of the database is not the one that this release needs."""


def config() -> Config:
    """Return the configuration of Alembic. It needs no ini file."""
    alembic_config = Config()
    alembic_config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return alembic_config


def head() -> str:
    """Return the newest revision."""
    revision = ScriptDirectory.from_config(config()).get_current_head()
    if revision is None:
        raise SchemaError("there are no migrations")
    return revision


def current(engine: Engine) -> str | None:
    """Return the revision of the database, or None if it was never migrated."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def require_head(engine: Engine) -> None:
    """Check that the database is at the newest revision.

    Raises:
        SchemaError: it is not. The message states what to do.
    """
    revision = current(engine)
    _reject_newer(revision)
    if revision != head():
        raise SchemaError(
            f"the database is at revision {revision or 'none'}, this release needs {head()}; "
            "run `covey migrate`"
        )


def migrate(engine: Engine, revision: str = "head") -> None:
    """Upgrade or downgrade the schema to a revision. If another migration is running, wait for its end.

    Args:
        engine: engine of the database.
        revision: the target: a revision, ``head`` (the newest) or ``base`` (no tables).

    Raises:
        SchemaError: the revision does not exist, or a newer release migrated the database.
    """
    with _locked(engine) as connection:
        alembic_config = config()
        alembic_config.attributes["connection"] = connection
        before = MigrationContext.configure(connection).get_current_revision()
        _reject_newer(before)
        revisions = _revisions()
        order = {"base": 0, **{name: n for n, name in enumerate(revisions, 1)}, "head": len(revisions)}
        if revision not in order:
            raise SchemaError(f"revision {revision!r} does not exist; choose one of {', '.join(order)}")
        is_downgrade = order[revision] < order[before or "base"]
        (command.downgrade if is_downgrade else command.upgrade)(alembic_config, revision)


def _revisions() -> list[str]:
    """Return all revisions, the oldest first."""
    return [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()][::-1]


def _reject_newer(revision: str | None) -> None:
    if revision is not None and revision not in _revisions():
        raise SchemaError(
            f"the database is at revision {revision}, which this release does not know, "
            "because a newer release migrated it; run that release"
        )


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
