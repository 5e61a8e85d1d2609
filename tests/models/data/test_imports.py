"""Imports within models/data run in one direction: from ingestion down to records."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "models" / "data"
LAYERS = (
    *("values", "options", "roles", "record_mapper"),
    *("files", "syntax", "mail_stores"),
    *("readers", "ingestion"),
)
"""What each layer may import: those before it, and the other modules in the root."""


def imported(path: Path) -> set[str]:
    source = path.read_text(encoding="utf-8")
    return set(re.findall(r"^from models\.data\.(\w+)", source, re.MULTILINE))


def test_each_layer_imports_only_lower_ones() -> None:
    wrong = []
    for path in FOLDER.rglob("*.py"):
        name = path.relative_to(FOLDER).with_suffix("").parts[0]
        later = LAYERS[LAYERS.index(name) + 1 :] if name in LAYERS else LAYERS
        wrong += [f"{path.name} imports {other}" for other in imported(path) & set(later)]
    assert wrong == []


def test_every_folder_is_a_layer() -> None:
    folders = {path.name for path in FOLDER.iterdir() if (path / "__init__.py").exists()}
    assert folders | {"options", "record_mapper"} == set(LAYERS)
