"""Imports within models/data run in one direction: ``ingestion -> readers -> data``."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "models" / "data"


def imported_packages(folder: Path) -> set[str]:
    sources = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    return {
        name for source in sources for name in re.findall(r"^from models\.data\.(\w+)", source, re.MULTILINE)
    }


def test_the_root_imports_neither_readers_nor_ingestion() -> None:
    assert not imported_packages(FOLDER) & {"readers", "ingestion"}


def test_readers_import_only_the_root() -> None:
    assert imported_packages(FOLDER / "readers") - {"readers"} <= {
        *("examples", "limits", "options", "record", "record_mapper", "values")
    }
