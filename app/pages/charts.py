"""Draws charts as SVG elements."""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from markupsafe import escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#8c6d31")
"""The palette of Okabe and Ito, which is safe for color-blind readers, and two more colors."""

TEXT_COLOR = "#3c4149"

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
    "axes.edgecolor": "#8a8f98",
    "axes.labelcolor": TEXT_COLOR,
    "xtick.color": TEXT_COLOR,
    "ytick.color": TEXT_COLOR,
    "axes.grid": True,
    "grid.color": "#e6e8eb",
    "axes.axisbelow": True,
}

_TAG = re.compile(r"<[^>]+>")
_STYLE_ATTRIBUTE = re.compile(r' style="([^"]*)"')
_STYLE_ELEMENT = re.compile(r"<style[^>]*>[^<]*</style>")

_matplotlib_lock = threading.Lock()  # the settings of matplotlib are global to the process


@contextmanager
def svg_figure(
    width: float, height: float, salt: str, *, label: str = ""
) -> Iterator[tuple[Figure, io.StringIO]]:
    """Yield a figure and a buffer; write the figure's SVG to the buffer when the block ends.

    Args:
        width: width in inches.
        height: height in inches.
        salt: makes the ids of SVG elements reproducible, and unique on a page with several charts.
        label: describes the chart for readers who do not see it.
    """
    # Imported here because it takes a second, and most processes of the API never draw a chart.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    out = io.StringIO()
    with _matplotlib_lock, mpl.rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        # The font of matplotlib lacks some scripts, but the browser draws the text in a font of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, out
        raw = io.StringIO()
        figure.savefig(raw, format="svg", metadata={"Date": None, "Creator": None})
    text = raw.getvalue()
    text = _without_styles(text[text.index("<svg") :])
    if label:
        text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    out.write(text)


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
