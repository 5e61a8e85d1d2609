"""The database's schema: migrating it, and refusing one that is not at head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

import migrations

ADVISORY_LOCK = 0x636F766579  # "covey"


class SchemaError(RuntimeError):
    """The database's schema is not the one that this release needs."""


def config() -> Config:
    """Alembic's configuration; there is no ini file to find."""
    made = Config()
    made.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return made


def head() -> str:
    """The newest revision."""
    revision = ScriptDirectory.from_config(config()).get_current_head()
    if revision is None:
        raise SchemaError("there are no migrations")
    return revision


def current(engine: Engine) -> str | None:
    """The revision that the database is at."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def require_head(engine: Engine) -> None:
    """Refuse to work on another schema.

    Raises:
        SchemaError: what to do first.
    """
    found = current(engine)
    _refuse_newer(found)
    if found != head():
        raise SchemaError(
            f"the database is at revision {found or 'none'}, this release needs {head()}; run `covey migrate`"
        )


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to a revision, alone: a second one waits until the first has finished.

    Args:
        engine: of the database.
        revision: a revision, older or newer than the database's; ``head`` for the newest, ``base`` for none.

    Raises:
        SchemaError: there is no such revision, or the database is a newer release's.
    """
    with _locked(engine) as connection:
        made = config()
        made.attributes["connection"] = connection
        known = MigrationContext.configure(connection).get_current_revision()
        _refuse_newer(known)
        order = _revisions()
        places = {"base": 0, **{name: place for place, name in enumerate(order, 1)}, "head": len(order)}
        if revision not in places:
            raise SchemaError(f"there is no revision {revision!r}; there are {', '.join(places)}")
        down = places[revision] < places[known or "base"]
        (command.downgrade if down else command.upgrade)(made, revision)


def _revisions() -> list[str]:
    """Every revision, the oldest first."""
    return [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()][::-1]


def _refuse_newer(found: str | None) -> None:
    if found is not None and found not in _revisions():
        raise SchemaError(
            f"the database is at revision {found}, which this release does not know: "
            "it was migrated by a newer release; run that one"
        )


@contextmanager
def _locked(engine: Engine) -> Iterator[Connection]:
    """One transaction that nobody else can migrate beside."""
    with engine.connect().execution_options(covey_write=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        yield connection
