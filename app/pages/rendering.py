"""Loads the templates of pages."""

from __future__ import annotations

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Allows only inline styles, in case a user's text on the page is not escaped correctly."""


def environment(package: str) -> Environment:
    """Return an environment with the templates of a package and ``page.css``. It escapes values."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("app.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
