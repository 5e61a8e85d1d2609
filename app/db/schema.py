"""The revision of the schema of the database. A database whose schema is not up to date is rejected.

Alembic is imported only to change a schema: each start would take the time that its import takes.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, column, inspect, select, table

import migrations

_VERSIONS = table("alembic_version", column("version_num"))


class SchemaError(RuntimeError):
    """The schema of the database is not the one that this release needs."""


def folder() -> Path:
    """Return the folder of the migrations."""
    return Path(migrations.__file__).parent


def revisions() -> list[str]:
    """Return all revisions, the oldest first: the names of the files begin with them."""
    return sorted(file.stem.partition("_")[0] for file in (folder() / "versions").glob("[0-9]*.py"))


def head() -> str:
    """Return the newest revision."""
    return revisions()[-1]


def current(engine: Engine) -> str | None:
    """Return the revision of the database, or None if it was never migrated."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(_VERSIONS.name):
            return None
        revision: str | None = connection.scalar(select(_VERSIONS.c.version_num))
        return revision


def require_head(engine: Engine) -> None:
    """Check that the database is at the newest revision.

    Raises:
        SchemaError: it is not. The message states what to do.
    """
    revision = current(engine)
    reject_newer(revision)
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
    if revision in {"head", head()} and current(engine) == head():
        return
    from app.db import migration  # noqa: PLC0415 - with Alembic

    migration.migrate(engine, revision)


def reject_newer(revision: str | None) -> None:
    """Check that this release knows the revision of the database.

    Raises:
        SchemaError: it does not.
    """
    if revision is not None and revision not in revisions():
        raise SchemaError(
            f"the database is at revision {revision}, which this release does not know, "
            "because a newer release migrated it; run that release"
        )
