"""Stored results of benchmarks, and the tables of the documentation that are rendered from them.

A benchmark that measures stores its results with ``store``. Its ``rendered()`` returns the Markdown of each
table by the name of its marks. ``show`` writes the tables into the pages that have the marks. Sentences of a
page are written by hand, also those that quote a result. ``tests/test_measured_tables.py`` compares pages and
results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "stored"
DOCS = Path(__file__).parents[1] / "docs"

Result = dict[str, Any]


def stored(name: str) -> list[Result]:
    """Return the stored results of a benchmark."""
    path = STORED / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def store(name: str, results: Sequence[Result], key: Sequence[str]) -> None:
    """Store results. They replace those with the same values of the fields ``key``, in place."""
    merged = {tuple(result[field] for field in key): result for result in [*stored(name), *results]}
    text = ",\n".join(json.dumps(result, ensure_ascii=False) for result in merged.values())
    (STORED / f"{name}.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


def insert(page: str, mark: str, text: str) -> str:
    r"""Return a page with other text between two marks.

    >>> insert("a\n<!-- x -->\nold\n<!-- end x -->\nb", "x", "new")
    'a\n<!-- x -->\nnew\n<!-- end x -->\nb'

    Raises:
        ValueError: the page does not have the marks.
    """
    start, end = f"<!-- {mark} -->\n", f"<!-- end {mark} -->"
    changed, count = re.subn(
        f"({re.escape(start)}).*?({re.escape(end)})",
        lambda match: f"{match[1]}{text.rstrip()}\n{match[2]}",
        page,
        flags=re.DOTALL,
    )
    if count != 1:
        raise ValueError(f"the page has {count} places with the mark {mark!r}")
    return changed


def page_with(mark: str) -> Path:
    """Return the page that has the marks of a table.

    Raises:
        ValueError: no page has the marks, or several have them.
    """
    pages = [path for path in DOCS.rglob("*.md") if f"<!-- {mark} -->\n" in path.read_text(encoding="utf-8")]
    if len(pages) != 1:
        raise ValueError(f"{len(pages)} pages have the mark {mark!r}")
    return pages[0]


def show(tables: Mapping[str, str]) -> None:
    """Write tables into the pages, each between its marks."""
    for mark, text in tables.items():
        path = page_with(mark)
        path.write_text(insert(path.read_text(encoding="utf-8"), mark, text), encoding="utf-8")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """Return a Markdown table.

    Args:
        head: names of the columns.
        rows: the cells.
        numbers: whether all columns except the first are right-aligned.

    >>> print(markdown(["learner", "F1"], [["mmp", ".84"]], numbers=True))
    | learner | F1 |
    |---|---:|
    | mmp | .84 |
    """
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    lines = [f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([f"| {' | '.join(head)} |", *lines])


def figure(value: float, digits: int = 3, *, sign: str = "") -> str:
    """Return a number between -1 and 1 without its zero.

    >>> figure(0.877), figure(-0.25), figure(1.0), figure(0.25, sign="+")
    ('.877', '-.250', '1.000', '+.250')
    """
    text = f"{value:{sign}.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def interval(found: Mapping[str, float], *, sign: str = "") -> str:
    """Return a value with its interval.

    >>> interval({"value": 0.5, "low": 0.25, "high": 0.75})
    '.500 [.250, .750]'
    """
    value, low, high = (figure(found[name], sign=sign) for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"
