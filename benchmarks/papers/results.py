"""Stored results of the papers' scripts, and the page ``docs/results.md`` that is rendered from them.

``docs/results/PART.json`` contains the results of one part by name. Each result has its figures and its origin:

    {"table": {"origin": {"kind": "measured", "commit": "0767aa0"}, "figures": {…}}, "ties": {…}}

``origin.kind`` is ``measured`` if the script stored the figures itself. It is ``page`` if an earlier version of
the script wrote the figures only into the page, rounded, and they were read from the page of that commit.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

Json = dict[str, Any]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "results.md"
CHARTS = DOCS / "results"

PARTS = (
    "defaults",
    "every_learner",
    "mp_boost_table_1",
    "mp_boost_table_2",
    "mp_boost_figure_2",
    "adaboost_lc_figure_3",
    "adaboost_lc_figure_4",
    "h_m3_table_1",
    "h_m3_learning_curve",
    "cos424_curves",
    "cos424_words",
    "cos424_confusion",
    "cos424_errors",
    "mlpp_table_2",
    "mlpp_table_3",
    "mlpp_learning_curve",
    "mlpp_epochs",
    "mlpp_table_4",
    "mlpp_quick_voting",
    "perceptron_variants",
)
"""The modules in the order of the page."""

HEAD = """\
# Results

This page is for readers who want to compare Covey's learners with the papers that describe them. It reproduces the papers'
tables and figures. Each part has its own script in `benchmarks/papers`. The scripts store their results in `docs/results`, and
the page is rendered from the stored results: no figure on it is typed by hand, except those of the papers.

- `make results` measures all parts and renders the page.
- `python -m benchmarks.papers PART` measures one part.
- `python -m benchmarks.papers --render` renders the page from the stored results.
- `make bench-quick` prints small versions of all parts in ten minutes.

Tables show Covey's figures first and the paper's figures in parentheses. Each part describes how its data differs from the
paper's data.
"""


def module_of(part: str) -> ModuleType:
    """Return the module of a part."""
    return import_module(f"benchmarks.papers.{part}")


def path_of(part: str) -> Path:
    """Return the file of a part's results."""
    return CHARTS / f"{part}.json"


def stored(part: str) -> Json:
    """Return the stored results of a part: origin and figures by name of the result."""
    path = path_of(part)
    found: Json = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def store(part: str, result: str, figures: Json, origin: Json | None = None) -> None:
    """Store one result of a part. JSON must be able to represent the figures.

    Args:
        part: name of the part.
        result: name of the result, a key of the module's ``RESULTS``.
        figures: the figures.
        origin: where they come from; by default measured at the current commit.
    """
    found = stored(part) | {result: {"origin": origin or measured_now(), "figures": figures}}
    order = list(module_of(part).RESULTS)
    kept = {name: found[name] for name in order if name in found}
    CHARTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    path_of(part).write_text(text + "\n", "utf-8")


def measured_now() -> Json:
    """Return the origin of figures that are measured with the checked-out commit."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=DOCS, capture_output=True, text=True, check=True
    )
    return {"kind": "measured", "commit": commit.stdout.strip()}


def figures_of(part: str) -> Json:
    """Return the stored figures of a part by name of the result."""
    return {name: result["figures"] for name, result in stored(part).items()}


def render_part(part: str, figures: Json) -> str:
    """Return a part of the page: its heading and the text that the module renders from its figures."""
    module = module_of(part)
    return f"## {module.TITLE}\n\n{module.render(figures).strip()}\n"


def render_page() -> str:
    """Return the page, rendered from the stored results."""
    parts = [f"<!-- part: {part} -->\n{render_part(part, figures_of(part))}<!-- end -->\n" for part in PARTS]
    return "\n".join([HEAD, *parts])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. All columns except the first are right-aligned.

    >>> print(table(["learner", "F1"], [["mmp", ".84"]]))
    | learner | F1 |
    |---|---:|
    | mmp | .84 |
    """
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def with_paper(ours: float, paper: Sequence[float], place: int, form: str) -> str:
    """Return our figure, followed by the paper's figure in parentheses if the paper has one.

    >>> with_paper(0.724, (0.704, 0.759), 0, "{:.3f}"), with_paper(0.85, (0.704,), 1, "{:.3f}")
    ('0.724 (0.704)', '0.850')
    """
    return f"{form.format(ours)} ({form.format(paper[place])})" if place < len(paper) else form.format(ours)
