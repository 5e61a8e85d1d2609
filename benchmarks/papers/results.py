"""The page ``docs/results.md``: one part for each table or figure, each replaced by its own script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "results.md"
PICTURES = DOCS / "results"

HEAD = """\
# The papers' tables, made again

Every table and figure here was made through the HTTP API of a running service by a script of its own in
`benchmarks/papers`. `make results` makes all of them anew, `python -m benchmarks.papers PART` one, and
`make bench-quick` small versions of all in ten minutes, which it prints. Ours stands first, the paper's figure in
parentheses; what differs in the data is said with each.
"""

_PART = re.compile(r"<!-- part: (?P<name>\w+) -->\n(?P<text>.*?)<!-- end -->\n", re.DOTALL)


def write(name: str, title: str, text: str, *, order: Sequence[str]) -> None:
    """Put a part into the page, in the place of an older one of its name.

    Args:
        name: of the part.
        title: its heading.
        text: Markdown below it.
        order: the names of all parts, in the page's order; others are dropped.
    """
    old = PAGE.read_text() if PAGE.exists() else ""
    parts = {found["name"]: found["text"] for found in _PART.finditer(old)}
    parts[name] = f"## {title}\n\n{text.strip()}\n"
    shown = [f"<!-- part: {key} -->\n{parts[key]}<!-- end -->\n" for key in order if key in parts]
    PAGE.write_text("\n".join([HEAD, *shown]))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is flush right.

    >>> print(table(["learner", "F1"], [["mmp", ".84"]]))
    | learner | F1 |
    |---|---:|
    | mmp | .84 |
    """
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def beside(ours: float, paper: Sequence[float], place: int, form: str) -> str:
    """Our figure, and behind it the paper's where it has one.

    >>> beside(0.724, (0.704, 0.759), 0, "{:.3f}"), beside(0.85, (0.704,), 1, "{:.3f}")
    ('0.724 (0.704)', '0.850')
    """
    return f"{form.format(ours)} ({form.format(paper[place])})" if place < len(paper) else form.format(ours)
