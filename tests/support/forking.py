"""Forks a process many times while its maintenance loop runs; each new process writes to the database.

A test runs this file with a data folder and a number of forks. It prints the number of new processes that
could write.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from sqlalchemy import text

from app.db import schema
from app.db.session import Database
from app.settings import Settings
from workers.maintenance import MaintenanceLoop


def can_write(url: str) -> bool:
    """Whether this newly forked process can write. An inherited lock would never be released."""
    db = Database(url)
    with db.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 300000")
        connection.commit()
    try:
        with db.write() as tx:
            tx.session.execute(text("DELETE FROM idempotency_records"))
    except OSError:
        return False
    return True


def main(folder: Path, forks: int) -> int:
    """Fork ``forks`` times, and return the number of processes that could write."""
    settings = Settings(data_dir=folder)
    url = settings.resolved_database_url()
    db = Database(url)
    schema.migrate(db.engine)
    db.close()
    loop = MaintenanceLoop(settings, "wrk_test")
    stop = threading.Event()

    def run_loop() -> None:
        while not stop.is_set():
            loop.tick()

    thread = threading.Thread(target=run_loop)
    thread.start()
    successes = 0
    for _ in range(forks):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = 0 if can_write(url) else 1
            finally:
                os._exit(status)
        successes += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stop.set()
    thread.join()
    return successes


if __name__ == "__main__":
    sys.stdout.write(str(main(Path(sys.argv[1]), int(sys.argv[2]))))
