"""Draws the charts of ``docs/background/results.md`` as SVG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from benchmarks.papers.frame import RESULTS

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#8c6d31")
"""The colour-blind safe palette of Okabe and Ito, and two more colours."""

mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "covey", "axes.grid": True, "grid.color": "#e6e8eb"}


@dataclass(frozen=True)
class Line:
    """A line in a panel: y by x, times a factor; ``colour`` is an index into ``COLOURS``."""

    name: str
    points: Mapping[int, float]
    colour: int
    style: str = "-"
    factor: float = 1.0


@dataclass(frozen=True)
class Panel:
    """One pair of axes; ``levels`` are named horizontal lines: name, value and colour."""

    title: str
    lines: Sequence[Line]
    x_name: str
    y_name: str
    logarithmic: bool = False
    levels: Sequence[tuple[str, float, int]] = ()


def draw(name: str, panels: Sequence[Panel], *, across: int = 2) -> None:
    """Draw panels into ``docs/background/results/NAME.svg``."""
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(4.6 * across, 3.2 * down + 0.5), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    shown: dict[str, Artist] = {}
    for ax, panel in zip(grid.flat, panels, strict=False):
        for line in panel.lines:
            colour = COLOURS[line.colour % len(COLOURS)]
            y = [line.factor * value for value in line.points.values()]
            drawn = ax.plot(list(line.points), y, line.style, color=colour, linewidth=1.4)
            shown.setdefault(line.name, drawn[0])
        for level, value, place in panel.levels:
            colour = COLOURS[place % len(COLOURS)]
            shown.setdefault(level, ax.axhline(value, color=colour, linestyle="-.", linewidth=1.2))
        if panel.logarithmic:
            ax.set_xscale("log")
        ax.set_title(panel.title, fontsize=10, loc="left")
        ax.set_xlabel(panel.x_name)
        ax.set_ylabel(panel.y_name)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in grid.flat[len(panels) :]:
        ax.set_visible(False)
    figure.legend(
        list(shown.values()), list(shown), loc="outside lower center", ncols=min(5, len(shown)), frameon=False
    )
    path = RESULTS / f"{name}.svg"
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
