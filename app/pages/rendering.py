"""Load the templates of pages, with the filters that all pages share."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from app.pages.measures import measure_title


def environment(package: str) -> Environment:
    """Return an environment with the templates of a package and of this one. It escapes values."""
    created = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("app.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    created.filters |= {"measure": measure_title, "percent": percent}
    return created


def percent(value: float | None) -> str:
    """Return a fraction in percent. Only 0 and 1 are shown as 0 % and 100 %.

    >>> percent(0.4567), percent(1.0), percent(0.9996), percent(0.0001), percent(None)
    ('45.7 %', '100 %', '> 99.9 %', '< 0.1 %', '–')
    """
    if value is None:
        return "–"
    if value in (0.0, 1.0):
        return f"{100 * value:.0f} %"
    shown = f"{100 * value:.1f}"
    return {"0.0": "< 0.1", "-0.0": "< 0.1", "100.0": "> 99.9"}.get(shown, shown) + " %"
