"""Open the database for a command, and report its failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.cli.errors import CommandError
from app.db.schema import SchemaError
from app.db.session import DATABASE_UNAVAILABLE, Database, unavailable_reason
from app.settings import Settings

CHECK_SECONDS = 2.0
"""Time limit for the check of a SQLite file. It is enough for about a gigabyte."""


@contextmanager
def open_database(settings: Settings) -> Iterator[Database]:
    """Open the database until the block ends, and look for damage first.

    Raises:
        CommandError: the database is damaged or unavailable, or the block raised a ``SchemaError``.
    """
    db = Database(settings.resolved_database_url())
    try:
        db.check_file(CHECK_SECONDS)
        yield db
    except SchemaError as error:
        raise CommandError(str(error)) from error
    except DATABASE_UNAVAILABLE as error:
        file = f" {db.engine.url.database}" if db.engine.dialect.name == "sqlite" else ""
        raise CommandError(
            unavailable_reason(error).replace("the database", f"the database{file}", 1)
        ) from error
    finally:
        db.close()
