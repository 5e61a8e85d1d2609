"""The kit of all charts: SVG elements in one style, and the parts that several of them have."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#8c6d31")
"""The palette of Okabe and Ito, which is safe for color-blind readers, and two more colors."""

TEXT_COLOR = "#3c4149"
LINE_COLOR = "#8a8f98"

SHARES = (-0.02, 1.02)
"""Limits of an axis of shares or probabilities."""

LOG_SCALE_RATIO = 50
"""The axis of steps is logarithmic if the last step is at least this many times the first."""

_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # names come from users and may have dollar signs in them
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.size": 10,
    "figure.facecolor": "none",  # the page is dark for readers who prefer that
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE_COLOR,
    "axes.labelcolor": TEXT_COLOR,
    "xtick.color": TEXT_COLOR,
    "ytick.color": TEXT_COLOR,
    "axes.grid": True,
    "grid.color": "#e6e8eb",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
}

_TAG = re.compile(r"<[^>]+>")
_STYLE_ATTRIBUTE = re.compile(r' style="([^"]*)"')
_STYLE_ELEMENT = re.compile(r"<style[^>]*>[^<]*</style>")

_matplotlib_lock = threading.Lock()  # the settings of matplotlib are global to the process


@dataclass
class Chart:
    """A chart that is drawn.

    Attributes:
        figure: the figure to draw on.
        svg: the SVG element; set after the end of the block.
    """

    figure: Figure
    svg: Markup = Markup()  # noqa: RUF009 - it is immutable


@contextmanager
def draw(width: float, height: float, salt: str, *, label: str = "") -> Iterator[Chart]:
    """Yield a chart to draw on; it has its SVG when the block ends.

    Args:
        width: width in inches.
        height: height in inches.
        salt: makes the ids of SVG elements reproducible, and unique on a page with several charts.
        label: describes the chart for readers who do not see it.
    """
    # Imported here because it takes a second, and most processes of the API never draw a chart.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with _matplotlib_lock, mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # The font of matplotlib lacks some scripts, but the browser draws the text in a font of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        chart = Chart(Figure(figsize=(width, height), layout="constrained"))
        yield chart
        raw = io.StringIO()
        chart.figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None})
    text = raw.getvalue()
    text = _without_styles(text[text.index("<svg") :])
    if label:
        text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    # The chart is safe: matplotlib escapes text, and colors and sizes do not come from users.
    chart.svg = Markup(text)  # noqa: S704


def _without_styles(svg: str) -> str:
    """Replace styles by attributes, so that a page needs no permission for inline styles.

    >>> _without_styles('<svg><style>*{stroke-linecap: butt}</style><path style="fill: none"/></svg>')
    '<svg stroke-linejoin="round" stroke-linecap="butt"><path fill="none"/></svg>'
    """
    svg = _STYLE_ELEMENT.sub("", svg).replace("<svg", '<svg stroke-linejoin="round" stroke-linecap="butt"', 1)
    return _TAG.sub(lambda tag: _STYLE_ATTRIBUTE.sub(_attributes, tag[0]), svg)


def _attributes(style: re.Match[str]) -> str:
    pairs = (declaration.partition(":") for declaration in style[1].split(";") if declaration.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in pairs)


def shorten(name: str, max_length: int = 34) -> str:
    """Return a name that fits beside a chart."""
    return name if len(name) <= max_length else name[: max_length - 1] + "…"


def color_of(i: int) -> str:
    """Return the color of the i-th of several things, such as configurations or versions."""
    return COLORS[i % len(COLORS)]


def panels(figure: Figure, n: int, max_columns: int, **options: Any) -> list[Axes]:
    """Return axes for n panels, in rows of at most ``max_columns``."""
    n_columns = min(max_columns, n)
    axes = list(figure.subplots(-(-n // n_columns), n_columns, squeeze=False, **options).flat)
    for ax in axes[n:]:
        ax.set_visible(False)
    return axes[:n]


def set_title(ax: Axes, title: str) -> None:
    """Write a title above a panel."""
    ax.set_title(title, fontsize=10, loc="left", color=TEXT_COLOR)


def name_rows(ax: Axes, names: Sequence[str], max_length: int = 24, *, n_ticks: int = 5) -> None:
    """Write names beside rows, the first on top."""
    ax.set_yticks(range(len(names)), [shorten(name, max_length) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.locator_params(axis="x", nbins=n_ticks)


def set_steps(ax: Axes, unit: str, first: int, last: int) -> None:
    """Make the horizontal axis one of steps."""
    from matplotlib.ticker import NullFormatter  # noqa: PLC0415

    if last >= LOG_SCALE_RATIO * first:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(unit)


def reliability_diagram(figure: Figure) -> Axes:
    """Return axes for observed shares by predicted probabilities, with a line where both are equal."""
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color=LINE_COLOR, linewidth=1, linestyle="--")
    ax.set(xlim=SHARES, ylim=SHARES, xlabel="predicted probability", ylabel="observed share")
    return ax
