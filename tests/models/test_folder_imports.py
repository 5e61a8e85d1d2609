"""The folders of ``models`` do not import each other in cycles, and do not import the rest of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "models").rglob("*.py"))


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder_of(name: str) -> str:
    """Return the folder of an imported name, or the module if it is at the root of ``models``."""
    parts = name.split(".")
    while True:
        path = ROOT.joinpath(*parts)
        if path.is_dir() or (path.with_suffix(".py").exists() and len(parts) == 2):
            return ".".join(parts)
        parts.pop()


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_folders_do_not_import_each_other_in_cycles() -> None:
    imports: dict[str, set[str]] = {}
    for file in FILES:
        folder = folder_of(module_name(file))
        imported = {folder_of(name) for name in imported_modules(file) if name.startswith("models.")}
        imports.setdefault(folder, set()).update(imported - {folder})
    assert imports["models.catalog"] >= {"models.base", "models.boosting"}
    tuple(TopologicalSorter(imports).static_order())  # raises CycleError, which lists the cycle


def test_models_do_not_import_the_rest_of_the_program() -> None:
    for file in FILES:
        others = [name for name in imported_modules(file) if name.split(".")[0] in ("app", "workers")]
        assert not others, f"{file} imports {others}"
