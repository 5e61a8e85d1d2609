"""Where the public corpora are: the folder that ``COVEY_DATA`` names, or ``../shared/data``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("COVEY_DATA", ROOT.parent / "shared" / "data"))


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test, saying so, where files of the corpora are absent."""
    absent = [name for name in names if not (FOLDER / name).exists()]
    return pytest.mark.skipif(bool(absent), reason=f"no {', '.join(absent)} in {FOLDER} (set COVEY_DATA)")
