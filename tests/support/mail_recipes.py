"""The recipes of docs/mail.md, and the mail filter that some of them need."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import LIMIT_SECONDS

from app.server.parent_death import end_with_parent

PAGE = Path(__file__).parents[2] / "docs" / "mail.md"


def recipe(name: str) -> str:
    """Return a recipe of the page."""
    match = re.search(rf"<!-- recipe: {name} -->\n```\n(.*?)```", PAGE.read_text(), re.DOTALL)
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
    command = [sys.executable, "-m", "app", "smtp", "--router", "frontdesk", "--url", url, *options]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("Covey filters mail at ")
            yield
        finally:
            process.terminate()
            assert process.wait(LIMIT_SECONDS) == 0
