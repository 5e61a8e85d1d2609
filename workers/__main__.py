"""``python -m workers``: one worker, a Celery prefork pool with its supervisor."""

from __future__ import annotations

from app import logs
from app.db import schema
from app.db.session import make_engine
from app.settings import get_settings
from workers.celery import celery


def main() -> None:
    """Check the schema, then work until told to stop."""
    settings = get_settings()
    logs.configure(settings)
    engine = make_engine(settings.resolved_database_url())
    schema.require_head(engine)
    engine.dispose()
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


if __name__ == "__main__":
    main()
