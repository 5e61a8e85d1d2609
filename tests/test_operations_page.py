"""The pages in ``docs/operations`` name existing log events and quote existing messages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*(ROOT / "docs/operations").glob("*.md"), ROOT / "docs/privacy.md"]
TEXT = "\n".join(path.read_text("utf-8") for path in PAGES)
SOURCE = "".join(
    path.read_text("utf-8") for folder in ("app", "workers") for path in sorted((ROOT / folder).rglob("*.py"))
)
FIELDS = {"error.log", "result.promotion"}
"""Names with a dot that are not log events. Attributes of spans begin with ``covey.``."""


def test_log_events_on_the_page_exist() -> None:
    logged = set(re.findall(r'\blog\.\w+\(\s*"([a-z_.]+)"', SOURCE))
    events = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", TEXT)) - FIELDS
    events = {name for name in events if not name.startswith("covey.")}
    assert events
    assert events - logged == set()


def test_quoted_messages_exist() -> None:
    page = (ROOT / "docs/operations/fail.md").read_text("utf-8")
    quoted = re.findall(r"(?<!\*)\*([a-zA-Z][^*|\n]+)\*(?!\*)", page)
    sections = set(re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE))
    messages = [message for message in quoted if message not in sections]
    pieces = [piece.strip() for message in messages for piece in message.split("…") if piece.strip()]
    assert pieces
    assert [piece for piece in pieces if piece not in SOURCE] == []
