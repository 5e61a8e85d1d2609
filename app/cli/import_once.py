"""Import the service once, in the supervisor, so that its child processes need not."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from app.server.shared_metrics import share_metrics


def import_once(shared_dir: Path | None) -> None:
    """Import what the API and a worker need, so that the child processes are ready soon after their fork.

    Args:
        shared_dir: folder with the metrics of the API processes; None if there is only one.
    """
    if shared_dir is not None:
        share_metrics(shared_dir)
    # A supervisor that forks must not have threads of numerical libraries. They read these variables when
    # they are loaded.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    # Nothing of what is imported is garbage, and each collection would look at all of it.
    gc.disable()
    import app.cli.serve_api  # noqa: PLC0415
    import app.jobs.relay  # noqa: F401, PLC0415 - with Celery

    gc.collect()
    gc.freeze()  # a collection in a child process copies no memory of its parent
    gc.enable()
