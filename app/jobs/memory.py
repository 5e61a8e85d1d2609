"""The memory of the machine, and the share of it that a job can use."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from app.settings import Settings

SHARE = 0.8
"""Share of the machine's memory that all jobs of a worker can use together by default."""

SCORE_BYTES = 24
"""Memory that every evaluation takes at least for each example and label: scores, and their order."""

_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:")


def job_limit(settings: Settings) -> int:
    """Return the maximum memory of a job's process in bytes; 0 if there is no limit."""
    if settings.job_memory_bytes is not None:
        return settings.job_memory_bytes
    return int(SHARE * machine_memory()) // settings.worker_concurrency


def check_training(settings: Settings, n_examples: int, n_labels: int) -> None:
    """Check that a training can fit in memory at all: its evaluation has a score for every example and label.

    Args:
        settings: contain the limit.
        n_examples: number g of training examples.
        n_labels: number k of labels.

    Raises:
        MemoryError: every training on these examples exceeds the limit of a job.
    """
    limit, needed = job_limit(settings), SCORE_BYTES * n_examples * n_labels
    if limit and memory_of(os.getpid()) + needed > limit:
        raise MemoryError(
            f"the scores of {n_examples:,} training examples for {n_labels:,} labels take "
            f"{needed / 2**30:,.1f} GiB, and the limit of a job is {limit / 2**30:,.1f} GiB"
        )


def memory_of(pid: int) -> int:
    """Return the memory of a process in bytes; 0 if the system does not report it (only Linux does)."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_COUNTED))


def machine_memory(root: Path = Path("/")) -> int:
    """Return the memory of the machine in bytes, or the limit of the container if it is smaller.

    Args:
        root: the root of the file system, which has the limits of control groups (Linux).
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_container_limits(root)])


def _container_limits(root: Path) -> list[int]:
    """Return the memory limits of all control groups that contain this process."""
    files = [root / "sys/fs/cgroup/memory/memory.limit_in_bytes"]  # version 1, as a container sees it
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for group in groups:
        number, _, path = group.split(":", 2)
        if number == "0":  # version 2
            inside = PurePosixPath(path.lstrip("/"))
            files += [root / "sys/fs/cgroup" / part / "memory.max" for part in (inside, *inside.parents)]
    limits = []
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal():  # "max" stands for no limit
            limits.append(int(text))
    return limits
