"""The limit of open files of this process, and the number of connections that it allows."""

from __future__ import annotations

import resource

MAX_OPEN_FILES = 65_536
"""The limit is raised at most to this value, because some programs visit every number below the limit."""


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard limit. Return the new soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_OPEN_FILES
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


def max_connections(wanted: int, open_files: int) -> int:
    """Return how many connections fit, so that files and connections to other services can still be opened.

    >>> max_connections(4096, 65_536), max_connections(4096, 1024)
    (4096, 682)
    """
    return max(1, min(wanted, open_files * 2 // 3))


def backlog(open_files: int) -> int:
    """Return how many connections may wait to be accepted at once, on top of ``max_connections``."""
    return max(16, min(1024, open_files // 8))
