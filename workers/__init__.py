"""The Celery side: a thin layer that claims jobs and runs each one in a process of its own."""

import os

# Numerical libraries read these variables when they are loaded. A worker forks, so it must not have threads
# of these libraries; a job process sets its own number of threads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
