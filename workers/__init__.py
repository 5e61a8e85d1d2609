"""The Celery side: thin tasks that call what ``app`` and ``models`` offer; no job is ever lost here."""

import os

# Numerical libraries read these when they are loaded. A worker forks, so it must have no threads of theirs;
# a job raises its own number once it is in a process of its own.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
