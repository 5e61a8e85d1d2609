"""Every snippet of the client's README runs against a real service, in the order of the page."""

from __future__ import annotations

import doctest
import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from covey_client._async import client as async_client
from covey_client._async import routing as async_routing
from covey_client._sync import client, routing
from stack import Stack, departments

ROOT = Path(__file__).parents[2]
README = ROOT / "clients" / "python" / "README.md"
PAGE = ROOT / "docs" / "python-client.md"

MESSAGE = b"""\
From: Ann <ann@example.com>
Subject: Late parcel
Message-ID: <readme@example.com>

The courier says the parcel is late. Where is the delivery?
"""


def snippets(page: Path) -> list[tuple[str, str]]:
    """Return the heading and the code of each snippet of a page."""
    heading, found = "", []
    pattern = re.compile(r"^## (.*?)$|^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for match in pattern.finditer(page.read_text("utf-8")):
        if match[1] is not None:
            heading = match[1]
        else:
            found.append((heading, match[2]))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the snippets read."""
    lines = (json.dumps(example) for example in departments(80))
    (tmp_path / "helpdesk.jsonl").write_text("\n".join(lines))
    (tmp_path / "message.eml").write_bytes(MESSAGE)
    for label in ("billing", "shipping"):
        (tmp_path / "mail" / label).mkdir(parents=True)
        for number in range(3):
            content = MESSAGE.replace(b"readme@", b"%s-%d@" % (label.encode(), number))
            (tmp_path / "mail" / label / f"{number}.eml").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.system
@pytest.mark.xdist_group("stack")
def test_every_snippet_runs(
    stack: Stack, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COVEY_URL", stack.url)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(MESSAGE)))
    names: dict[str, Any] = {"__name__": "snippets"}
    printed: dict[str, str] = {}
    for heading, code in snippets(README):
        exec(compile(code, f"README.md, {heading}", "exec"), names)  # noqa: S102 - our own README
        if heading == "Mail servers":
            names["main"]()
        printed[heading] = printed.get(heading, "") + capsys.readouterr().out
    names["covey"].close()
    names["router"].close()
    for module in (client, async_client, routing, async_routing):  # the examples of the classes
        result = doctest.testmod(module)
        assert (result.failed, result.attempted > 2) == (0, True), capsys.readouterr().out
    assert "['shipping']" in printed["From a file to a routed message"]
    assert "routed ['office@example.org']" in printed["From a file to a routed message"]
    assert names["mail"].n_examples == 6
    assert names["mail"].n_labels == 2
    assert names["generated"].n_examples == 40
    assert (names["known"].version, names["live"].version) == (1, 1)
    assert names["live"].revision == names["known"].revision + 2
    assert names["job"].model == "later"
    assert names["job"].state == "succeeded"
    assert "Where is it? ['" in printed["Review messages, and learn from corrections"]
    assert names["corrected"].n_examples == names["dataset"].n_examples + 2
    assert '"labels"' in printed["Predict for a whole data set"]
    assert "boosting" in printed["Experiments"]
    assert "invalid_request req_" in printed["Errors"]
    assert "'/learner/rounds'" in printed["Errors"]
    assert printed["Mail servers"].strip() == "office@example.org"
    assert "[1]" in printed["Async"]
    assert "1" in printed["Every other operation"]


@pytest.mark.system
@pytest.mark.xdist_group("stack")
def test_the_snippet_of_the_page_runs(stack: Stack, folder: Path) -> None:
    ((_, code),) = snippets(PAGE)
    names: dict[str, Any] = {}
    exec(code.replace("http://127.0.0.1:8000", stack.url), names)  # noqa: S102 - our own page
    assert names["job"].result.version >= 1
    assert names["decision"].router == "frontdesk"
    names["covey"].close()
