"""The frame of the papers' tables and figures: parts, their stored results, and their tables in the page.

``docs/background/results/PART.json`` has the results of one part, one on a line. Each result has its figures
and its origin:

    {"table": {"origin": {"kind": "measured", "commit": "0767aa0"}, "figures": {…}}, "ties": {…}}

``origin.kind`` is ``measured`` if the figures were stored when they were measured. It is ``page`` if an
earlier version wrote the figures only into the page, rounded, and they were read from the page of that
commit.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.tables import DOCS, markdown

if TYPE_CHECKING:
    from benchmarks.papers.bench import Bench

Json = dict[str, Any]

PAGE = DOCS / "background/results.md"
RESULTS = DOCS / "background/results"

Tables = Iterable[str]
table = partial(markdown, numbers=True)


@dataclass(frozen=True)
class Part:
    """A table or figure of a paper, or a study.

    Attributes:
        results: by name, what measures a result. It gets a client of a running service, and returns what JSON
                can represent: numbers, names, lists and dicts with string keys. With ``bench.quick``, it is a
                small version.
        tables: returns the tables of the page from the figures of the results, by their names.
    """

    results: Mapping[str, Callable[[Bench], Json]]
    tables: Callable[[Json], Tables]

    def marked(self, name: str, figures: Json) -> dict[str, str]:
        """Return the tables by their marks in the page."""
        return {f"{name} {number}": text for number, text in enumerate(self.tables(figures), start=1)}


def stored(part: str) -> Json:
    """Return the stored results of a part: origin and figures by name of the result."""
    path = RESULTS / f"{part}.json"
    results: Json = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return results


def figures_of(part: str) -> Json:
    """Return the stored figures of a part by name of the result."""
    return {name: result["figures"] for name, result in stored(part).items()}


def store(part: str, result: str, figures: Json, order: Iterable[str]) -> None:
    """Store one result of a part, measured with the checked-out commit.

    Args:
        part: name of the part.
        result: name of the result.
        figures: its figures.
        order: the names of all results of the part.
    """
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=DOCS, capture_output=True, text=True, check=True
    )
    origin = {"kind": "measured", "commit": commit.stdout.strip()}
    results = stored(part) | {result: {"origin": origin, "figures": figures}}
    lines = [
        f"{json.dumps(name)}: {json.dumps(results[name], ensure_ascii=False)}"
        for name in order
        if name in results
    ]
    (RESULTS / f"{part}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def with_paper(ours: float, paper: Sequence[float], place: int, form: str) -> str:
    """Return our figure, followed by the paper's figure in parentheses if the paper has one.

    >>> with_paper(0.724, (0.704, 0.759), 0, "{:.3f}"), with_paper(0.85, (0.704,), 1, "{:.3f}")
    ('0.724 (0.704)', '0.850')
    """
    return f"{form.format(ours)} ({form.format(paper[place])})" if place < len(paper) else form.format(ours)
