"""``python -m workers``: one worker, which is a Celery prefork pool with a maintenance loop."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from celery.signals import worker_ready

from app import logs
from app.db import schema
from app.db.session import DATABASE_UNAVAILABLE, make_engine, unavailable_reason
from app.settings import get_settings
from workers.celery import celery


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

    def report_ready(**_: Any) -> None:
        if ready_fd is not None:
            os.write(ready_fd, b"\n")
            os.close(ready_fd)

    worker_ready.connect(report_ready, weak=False)
    status: object = 0
    try:
        celery.worker_main(
            [
                "worker",
                "--pool=prefork",
                f"--concurrency={settings.worker_concurrency}",
                f"--loglevel={settings.log_level}",
                "--without-gossip",
                "--without-mingle",
                "--without-heartbeat",
            ]
        )
    except SystemExit as stop:
        status = stop.code
    # Nothing is left to do, and a regular exit takes a second to unload every module.
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    main()
