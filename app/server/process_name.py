"""Names of processes, as ``ps`` and ``top`` show them."""

from __future__ import annotations

import sys
from pathlib import Path


def name_process(role: str) -> None:
    """Name this process after its role, for example ``covey-pool``. Does nothing on other systems than Linux.

    Linux keeps 15 characters of a name.
    """
    if sys.platform == "linux":
        Path("/proc/self/comm").write_text(f"covey-{role}")
