"""Commands that a test runs to their end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from waiting import LIMIT_SECONDS

from app.server.parent_death import end_with_parent


def covey(
    *words: str, environment: Mapping[str, str] | None = None, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``covey`` with the words as arguments. It ends with this process at the latest.

    Args:
        words: the command and its options.
        environment: variables to add to those of this process.
        check: whether an exit status other than 0 is an error.
    """
    return subprocess.run(
        [sys.executable, "-m", "app", *words],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=check,
        preexec_fn=end_with_parent(),
    )
