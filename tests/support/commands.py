"""Commands that a test runs to their end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

import fork_server


def covey(
    *words: str, environment: Mapping[str, str] | None = None, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``covey`` with the words as arguments. It ends with this process at the latest.

    Args:
        words: the command and its options.
        environment: variables to add to those of this process.
        check: whether an exit status other than 0 is an error.
    """
    ended = fork_server.run(words, {**os.environ, **(environment or {})})
    assert not check or ended.returncode == 0, ended.stderr.decode()
    return subprocess.CompletedProcess(words, ended.returncode, ended.stdout.decode(), ended.stderr.decode())
