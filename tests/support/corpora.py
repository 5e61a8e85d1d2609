"""The public corpora: in the folder in ``COVEY_DATA``, or in ``../shared/data``.

A test that reads them has the mark ``corpora`` with the names of its files and folders. The mark skips the
test where they are missing, and selects it where ``.ci/run`` runs such tests with the corpora.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("COVEY_DATA", ROOT.parent / "shared" / "data"))


def skip_if_missing(names: tuple[str, ...]) -> None:
    """Skip the test if one of these files and folders, or the whole folder, does not exist."""
    missing = [name for name in names if not (FOLDER / name).exists()]
    if missing or not FOLDER.is_dir():
        pytest.skip(f"no {', '.join(missing) or 'corpora'} in {FOLDER} (set COVEY_DATA)")
