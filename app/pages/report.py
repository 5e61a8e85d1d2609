"""The kit of all reports: one resource in several formats, one of them a self-contained HTML page.

The page has inline styles and no scripts. Its template extends ``report_page.html``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fastapi import Request, Response

from app.api.errors import NotAcceptable

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Allows only inline styles, in case a user's text on the page is not escaped correctly."""

Format = TypeVar("Format", bound=str)


def choose_format(
    request: Request, response: Response, media_types: Mapping[Format, str], requested: Format | None = None
) -> Format:
    """Return the requested format, or the one that ``Accept`` prefers.

    Raises:
        NotAcceptable: the report has none of the accepted media types.
    """
    response.headers["Vary"] = "Accept"  # a cache must not return one format to a client that prefers another
    return requested or negotiate(request.headers.get("accept", ""), media_types)


def text_response(text: str, media_type: str) -> Response:
    """Return a report in a format other than JSON."""
    headers = {"Vary": "Accept"}
    if media_type == "text/html":
        headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return Response(text, media_type=f"{media_type}; charset=utf-8", headers=headers)


def negotiate(accept: str, media_types: Mapping[Format, str]) -> Format:
    """Return the format that an ``Accept`` header prefers; among equals, the first one.

    Args:
        accept: the header; empty if there is none.
        media_types: the media type of each format.

    Raises:
        NotAcceptable: the header accepts none of the formats.

    >>> formats = {"json": "application/json", "html": "text/html"}
    >>> negotiate("text/html,application/xhtml+xml,*/*;q=0.8", formats)
    'html'
    >>> negotiate("*/*", formats), negotiate("", formats)
    ('json', 'json')
    """
    if not accept.strip():
        return next(iter(media_types))
    accepted: dict[str, float] = {}
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        try:
            accepted[name] = float(quality)
        except ValueError:
            continue

    def quality_of(media: str) -> float:
        kind = media.split("/", maxsplit=1)[0] + "/*"
        return next((accepted[name] for name in (media, kind, "*/*") if name in accepted), 0.0)

    best = max(media_types, key=lambda form: quality_of(media_types[form]))
    if quality_of(media_types[best]) <= 0:
        raise NotAcceptable(f"the formats of a report are {', '.join(media_types.values())}")
    return best
