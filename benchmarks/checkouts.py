"""Run part of a benchmark with the packages of another checkout of Covey, to compare two versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def run_in(checkout: Path, script: str, *arguments: str) -> Any:
    """Run a script of this checkout in a new process, with the packages of a checkout, and return its JSON.

    Args:
        checkout: the root folder of the checkout.
        script: the file of the script, as in ``__file__``.
        arguments: its arguments.

    Raises:
        FileNotFoundError: the folder is not a checkout.
        RuntimeError: the script failed.
    """
    if not (checkout / "models" / "__init__.py").exists():
        raise FileNotFoundError(f"{checkout} is not a checkout of Covey: it has no package models")
    done = subprocess.run(
        [sys.executable, str(Path(script).resolve()), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout.resolve()), str(HERE)])},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script} failed with the packages of {checkout}")
    return json.loads(done.stdout)
