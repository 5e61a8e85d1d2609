"""``python -m workers``: a worker for all queues, with further arguments for ``celery worker``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from celery.exceptions import SecurityWarning

from app import logs
from app.server.process_name import name_process
from app.settings import get_settings
from workers import celery, maintenance


def main() -> None:
    """Run the worker until a signal stops it."""
    parser = argparse.ArgumentParser(prog="covey worker", allow_abbrev=False)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    arguments, of_celery = parser.parse_known_args()
    maintenance.report_ready_to(arguments.ready_fd)
    # Celery says there that it stops, between the lines of the log if both go to one file.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    # Celery warns of root because of pickled messages, which this worker does not accept.
    warnings.simplefilter("ignore", SecurityWarning)
    name_process("worker")
    settings = get_settings()
    logs.configure(settings)
    celery.app.worker_main(
        [
            "--quiet",  # its banner would stand between the lines of the log
            "worker",
            f"--loglevel={settings.log_level}",
            # Workers need not know each other.
            "--without-gossip",
            "--without-mingle",
            "--hostname=covey-%h-" + str(os.getpid()),
            *of_celery,
        ]
    )


if __name__ == "__main__":
    main()
