"""Load the templates of pages."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def environment(package: str) -> Environment:
    """Return an environment with the templates of a package and of this one. It escapes values."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("app.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
