"""Generates ``covey_client.generated`` from openapi.json, if it is not up to date.

    python clients/python/generate.py

The build of the package runs this too. The folder contains the digest of what it was generated from.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent
CONFIGURATION = ROOT / "generator.yaml"
PACKAGE = ROOT / "src" / "covey_client"
FOLDER = PACKAGE / "generated"
DIGEST = "source.sha256"
"""File of the generated folder with the digest of its source."""


UNSET = [
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"^from \.+types import UNSET, Unset\n", ""),
        (r"^class Unset:\n(?: .*\n)+|^UNSET: Unset = Unset\(\)\n", ""),
        (r"(import .*), UNSET\b", r"\1"),
        (r'"UNSET", |, "Unset"', ""),
        (r"not isinstance\(([\w.]+), +Unset\)", r"\1 is not None"),
        (r"isinstance\(([\w.]+), +Unset\)", r"\1 is None"),
        (r"\b(?:UNSET|Unset)\b", "None"),
        (r"\bNone(?: \| None)+\b", "None"),
    )
]
"""What replaces the object of the generator that stands for a field without a value."""


class GenerationError(Exception):
    """The generator failed, or left something out of the client."""


def openapi_document() -> Path:
    """Return openapi.json: the one of a source distribution, or that of the repository."""
    own = ROOT / "openapi.json"
    return own if own.exists() else ROOT.parents[1] / "openapi.json"


def source_digest() -> str:
    """Return the digest of everything that decides on the generated code."""
    digest = hashlib.sha256(version("openapi-python-client").encode())
    for file in (openapi_document(), CONFIGURATION, Path(__file__)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def generate(folder: Path) -> None:
    """Generate the client into a new folder.

    Raises:
        GenerationError: the generator failed or printed a warning.
    """
    completed = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", str(openapi_document()), "--config", str(CONFIGURATION)),
            *("--output-path", str(folder)),
        ],
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = completed.stdout + completed.stderr
    if completed.returncode or any(word in output.lower() for word in ("warning", "unsupported", "unable")):
        raise GenerationError(output)
    for file in folder.rglob("*.py"):
        file.write_text(without_unset(file.read_text("utf-8")), "utf-8")
    (folder / DIGEST).write_text(source_digest() + "\n")


def without_unset(source: str) -> str:
    """Return generated code in which a field without a value is None instead of an object ``UNSET``.

    The API treats null and absent fields alike, except the description of a data set: null removes it.

    >>> without_unset("version: int | Unset = UNSET")
    'version: int | None = None'
    >>> without_unset("if not isinstance(self.version, Unset) and version is not UNSET:")
    'if self.version is not None and version is not None:'
    >>> without_unset("from ...types import Response, UNSET")
    'from ...types import Response'
    """
    for pattern, replacement in UNSET:
        source = pattern.sub(replacement, source)
    return source


def is_up_to_date() -> bool:
    """Whether the generated folder was generated from the current document."""
    file = FOLDER / DIGEST
    return file.exists() and file.read_text().strip() == source_digest()


def ensure_generated() -> None:
    """Generate the client, unless it is up to date. Several processes can call this at the same time."""
    with _lock():
        if is_up_to_date():
            return
        with tempfile.TemporaryDirectory(dir=PACKAGE.parent, prefix=".generating-") as temporary:
            generate(Path(temporary) / "generated")
            shutil.rmtree(FOLDER, ignore_errors=True)
            (Path(temporary) / "generated").rename(FOLDER)


@contextmanager
def _lock() -> Iterator[None]:
    try:
        import fcntl  # noqa: PLC0415 - not on Windows, where only one process may generate
    except ImportError:
        yield
        return
    with (ROOT / "generate.py").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    ensure_generated()
