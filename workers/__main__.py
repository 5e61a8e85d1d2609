"""``python -m workers``: one worker."""

from __future__ import annotations

import argparse
import os
import sys

from app import logs
from app.db import schema
from app.db.session import DATABASE_UNAVAILABLE, make_engine, unavailable_reason
from app.settings import get_settings
from workers import supervisor


def main() -> None:
    """Check the schema, then run the worker until a signal stops it."""
    parser = argparse.ArgumentParser(prog="covey worker", allow_abbrev=False)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    ready_fd: int | None = parser.parse_args().ready_fd
    settings = get_settings()
    logs.configure(settings)
    engine = make_engine(settings.resolved_database_url())
    try:
        schema.require_head(engine)
    except schema.SchemaError as error:
        sys.exit(f"covey: {error}")
    except DATABASE_UNAVAILABLE as error:
        sys.exit(f"covey: {unavailable_reason(error)}")
    finally:
        engine.dispose()
    supervisor.run(settings, ready_fd)
    # Nothing is left to do, and a regular exit takes a second to unload every module.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
