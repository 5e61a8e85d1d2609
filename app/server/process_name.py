"""Names of processes, as ``ps`` and ``top`` show them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def name_process(role: str) -> None:
    """Name this process after its role, for example ``covey-pool``. Does nothing on other systems than Linux.

    Linux keeps 15 characters of a name.
    """
    if sys.platform == "linux":
        Path("/proc/self/comm").write_text(f"covey-{role}")


def descendants(pid: int) -> list[int]:
    """Return the ids of the descendants of a process, without the process; none without Linux."""
    found: list[int] = []
    pending = [pid]
    while pending:
        parent = pending.pop()
        with suppress(OSError):  # it has ended
            children = [
                int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            ]
            found += children
            pending += children
    return found


def siblings_of_same_name() -> list[int]:
    """Return the ids of the processes with the parent and name of this one; only this one without Linux."""
    parent, own = os.getppid(), os.getpid()
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        name = Path("/proc/self/comm").read_text()
    except OSError:
        return [own]
    found = {own}
    for child in children:
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{child}/comm").read_text() == name:
                found.add(int(child))
    return sorted(found)
