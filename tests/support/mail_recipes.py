"""The recipes of the pages in docs/mail, and the mail filter that some of them need."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fork_server
from waiting import LIMIT_SECONDS

FOLDER = Path(__file__).parents[2] / "docs" / "mail"


def recipe(name: str) -> str:
    """Return a recipe of the pages."""
    pages = "\n".join(path.read_text() for path in FOLDER.glob("*.md"))
    match = re.search(rf"<!-- recipe: {name} -->\n```\n(.*?)```", pages, re.DOTALL)
    assert match is not None, name
    return match[1]


def smtp_filter(port: int, next_port: int) -> tuple[str, str]:
    """Return the content filter and the services of Postfix with ``covey smtp``.

    Args:
        port: the port of ``covey smtp``, instead of the one in the recipe.
        next_port: the port on which Postfix accepts the message again.
    """
    master = recipe("postfix-smtp-filter").replace(":10025", f":{port}").replace(":10026", f":{next_port}")
    content_filter = re.search(r"content_filter=(\S+)", master)
    assert content_filter is not None
    return content_filter[1], master[master.index("covey  ") :]


@contextmanager
def covey_smtp(url: str, *options: str) -> Iterator[None]:
    """Run ``covey smtp`` for a service until the block ends; then it must end by itself after SIGTERM."""
    words = ["smtp", "--router", "frontdesk", "--url", url, *options]
    output, output_write = os.pipe()
    process = fork_server.start(words, os.environ, output_write, 2)
    os.close(output_write)
    with os.fdopen(output) as lines:
        try:
            assert lines.readline().startswith("Covey filters mail at ")
            yield
        finally:
            process.terminate()
            assert process.wait(LIMIT_SECONDS) == 0
