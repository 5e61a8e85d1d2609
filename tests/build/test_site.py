"""``make docs`` builds the documentation site from the pages, and the site needs no other server."""

from __future__ import annotations

import html.parser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.server.parent_death import end_with_parent

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 600

pytestmark = pytest.mark.build

LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}
"""The attributes that name what a browser loads with a page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    (command,) = re.findall(
        r"^\t\$\(BIN\)/sphinx-build (.*) docs build/site$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    options = command.replace("build/doctrees", str(folder / "doctrees")).split()
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "docs", str(folder / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
        preexec_fn=end_with_parent(),
    )
    assert result.returncode == 0, result.stderr[-6000:]
    return folder / "site"


class Loads(html.parser.HTMLParser):
    """Collects what a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        url = dict(attrs).get(LOADED.get(tag, ""))
        if url is not None:
            self.urls.add(url)


def test_the_site_loads_nothing_from_other_servers(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text("utf-8"))
        assert loads.urls, page
        assert not [url for url in loads.urls if re.match(r"(?:\w+:)?//", url)], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text("utf-8")), sheet


def test_every_page_of_docs_is_in_the_navigation(site: Path) -> None:
    start = (site / "index.html").read_text("utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").with_suffix(".html")
        if page.name != "index.html":
            assert re.search(rf'<a class="[^"]*reference internal" href="{page}"', start), page


def test_the_reference_shows_every_operation(site: Path) -> None:
    shown = "".join(page.read_text("utf-8") for page in (site / "reference").glob("*.html"))
    operations = re.findall(r'"operationId": "(\w+)"', (ROOT / "openapi.json").read_text("utf-8"))
    assert operations
    assert [name for name in operations if f'<span class="pre">{name}</span>' not in shown] == []
