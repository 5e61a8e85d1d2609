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
