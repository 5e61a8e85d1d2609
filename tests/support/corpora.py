"""Finds the public corpora: in the folder in ``COVEY_DATA``, or in ``../shared/data``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("COVEY_DATA", ROOT.parent / "shared" / "data"))


def needs(*names: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test if one of these files of the corpora is missing."""
    missing = [name for name in names if not (FOLDER / name).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} in {FOLDER} (set COVEY_DATA)")
