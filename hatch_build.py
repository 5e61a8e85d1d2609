"""Builds the wheel: the library becomes ``covey.models``.

In the repository, the library is the folder ``models``. A top-level package of this name would be shadowed by
any folder ``models`` beside a notebook. The wheel therefore contains it as ``covey/models``, and every import
of it has that name there. An editable installation uses the folders as they are.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = {
    "covey": "covey",
    "models": "covey/models",
    "app": "app",
    "workers": "workers",
    "migrations": "migrations",
}
"""Where each folder of the repository is in the wheel."""

_IMPORT = re.compile(r"^(\s*(?:(?:>>>|\.\.\.) )?from )models(?=[. ])", re.MULTILINE)


class CustomBuildHook(BuildHookInterface[Any]):
    """Copies the folders with renamed imports."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the copies to the wheel."""
        if version == "editable":
            return
        self._copy = Path(tempfile.mkdtemp(prefix="covey-wheel-"))
        for folder, target in FOLDERS.items():
            source = Path(self.root, folder)
            for path in sorted(source.rglob("*")):
                if path.is_dir() or "__pycache__" in path.parts:
                    continue
                name = Path(target, path.relative_to(source)).as_posix()
                copy = self._copy / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                if path.suffix in (".py", ".pyi"):
                    copy.write_text(_IMPORT.sub(r"\1covey.models", path.read_text("utf-8")), "utf-8")
                else:
                    shutil.copyfile(path, copy)
                build_data["force_include"][str(copy)] = name

    def finalize(self, version: str, *_: object) -> None:
        """Delete the copies."""
        if version != "editable":
            shutil.rmtree(self._copy)
