"""Runs the shell, Python and HTTP snippets of a page in order, as a reader would who pastes them.

A page says in comments, which a code host hides, what the tests cannot see:

    <!-- not run: needs root -->    before a snippet that no test runs, with the reason
    <!-- file: tickets.csv -->      before a block of any language that the reader saves as this file
    <!-- continues: docs/tour.md --> on a page whose reader has run the snippets of this page before

All snippets of a page share one shell. Each Python snippet is a process of its own, started at its place. A
request is sent to the service, whose response must have the fields of the next block of JSON.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stack import Stack
from waiting import LIMIT_SECONDS

from app.server.parent_death import end_with_parent

ROOT = Path(__file__).parents[2]

CLIENT = ROOT / "clients" / "python"
"""The package ``covey_client``, which readers install."""

SERVICE = "http://127.0.0.1:8000"
"""The address of the service on every page."""

_BLOCK = re.compile(
    r"^(?:[ ]*<!-- (?P<kind>not run|file): (?P<note>.+?) -->\n+)?"
    r"(?P<indent>[ ]*)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_RUNS = {"sh": "sh", "bash": "sh", "python": "python", "http": "http"}
_JSON = re.compile(r"^ *```json\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

# A response with an error fails a page, also within a pipeline.
_PRELUDE = """\
set -Eeuo pipefail
curl() { command curl --fail-with-body "$@"; }
trap 'echo "failed: $PLACE" >&2' ERR
"""


@dataclass(frozen=True)
class Snippet:
    """One code block of a page that is run, saved as a file, or marked as not run."""

    place: str
    """The page and the line."""
    language: str
    """``sh``, ``python``, ``http``, or ``file``."""
    code: str
    file: str = ""
    """The name of the file to save."""
    not_run: str = ""
    """Why no test runs the snippet."""
    response: str = ""
    """The response to a request."""


def pages() -> list[Path]:
    """Return all pages of the documentation, and the README."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return the path of a page in the project."""
    return page.relative_to(ROOT).as_posix()


def snippets(page: Path) -> list[Snippet]:
    """Return the snippets of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in _BLOCK.finditer(text):
        language = "file" if block["kind"] == "file" else _RUNS.get(block["language"])
        if language is None:
            continue
        place = f"{name_of(page)}:{text.count(chr(10), 0, block.start('language')) + 1}"
        code = re.sub(rf"^{block['indent']}", "", block["code"], flags=re.MULTILINE)
        note = {"not run": "not_run", "file": "file"}.get(block["kind"] or "")
        more = {note: block["note"]} if note else {}
        if language == "http":
            response = _JSON.search(text, block.end())
            assert response is not None, f"{place}: no response in JSON follows"
            more["response"] = response[1]
        found.append(Snippet(place, language, code, **more))
    return found


def continued(page: Path) -> Path | None:
    """Return the page that a page continues."""
    found = re.findall(r"^<!-- continues: (.+) -->$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return ROOT / found[0] if found else None


def run(page: Path, folder: Path, addresses: Mapping[str, str]) -> str:
    """Run the snippets of a page in a folder that looks like the project, and return their output.

    Args:
        page: the page.
        folder: an empty folder.
        addresses: what replaces the addresses of the page, such as that of the service.

    Raises:
        AssertionError: if a snippet fails; the message has its place and output.
    """
    for path in ROOT.iterdir():
        if not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    (folder / ".venv").symlink_to(sys.prefix)
    # On a busy machine, the service may ask a client to try again while it loads a version.
    (folder / ".curlrc").write_text("retry = 10\n", encoding="utf-8")
    parts = [_PRELUDE]
    for number, snippet in enumerate(snippets(page)):
        if snippet.not_run:
            continue
        code = snippet.code
        for address, replacement in addresses.items():
            code = code.replace(address, replacement)
        parts.append(f"PLACE={snippet.place}\n")
        if snippet.language == "sh":
            parts.append(code)
        elif snippet.language == "file":
            parts.append(_file(snippet.file, code))
        elif snippet.language == "http":
            parts.append(_file(".request", code) + _file(".response", snippet.response))
            parts.append(".venv/bin/python tests/support/page_request.py .request .response\n")
        else:
            parts.append(_file(f".snippet-{number}.py", code))
            parts.append(f".venv/bin/python .snippet-{number}.py\n")
    result = subprocess.run(
        ["bash", "-c", "".join(parts)],
        cwd=folder,
        env={
            **_environment(),
            "COVEY_URL": addresses[SERVICE],
            "CURL_HOME": str(folder),
            "PYTHONPATH": _client(),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_SECONDS,
        check=False,
        preexec_fn=end_with_parent(),
    )
    assert result.returncode == 0, f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def _file(name: str, content: str) -> str:
    """Return the command that writes a file."""
    return f"cat > {name} <<'END-OF-FILE'\n{content}END-OF-FILE\n"


class ReaderService:
    """The service of all pages, and what its readers have done.

    Args:
        stack: the service, without keys.
        folder: where each page gets a folder of its own.
    """

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder
        self.finished: Path | None = None

    def run(self, page: Path) -> None:
        """Run a page: after the page that it continues, or on a service without data."""
        before = continued(page)
        if before is None:
            self.clear()
        elif self.finished != before:
            self.run(before)
        folder = self.folder / name_of(page).replace("/", "-")
        folder.mkdir()
        try:
            run(page, folder, {SERVICE: self.stack.url})
        finally:
            shutil.rmtree(folder)
        self.finished = before or page

    def clear(self) -> None:
        """Delete what the readers of other pages have made."""
        for path, field in (
            ("/v1/webhooks", "id"),
            ("/v1/routers", "name"),
            ("/v1/models", "name"),
            ("/v1/datasets", "id"),
        ):
            for item in list(self.stack.all(path)):
                self.stack.call("DELETE", f"{path}/{item[field]}", 204)


@cache
def _client() -> str:
    """Return the folder from which ``covey_client`` is imported, after its generated part is up to date."""
    subprocess.run([sys.executable, str(CLIENT / "generate.py")], check=True)
    return str(CLIENT / "src")


def _environment() -> dict[str, str]:
    """Return the environment of a reader: no proxy, no settings, and no covey on the path."""
    own = str(Path(sys.executable).parent)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and not name.startswith(("COVEY_", "VIRTUAL_ENV"))
    }
    path = environment.get("PATH", os.defpath).split(os.pathsep)
    environment["PATH"] = os.pathsep.join(folder for folder in path if folder != own)
    return environment
