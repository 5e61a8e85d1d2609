"""Selects the format of a response by the ``Accept`` header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from app.api.errors import NotAcceptable

Format = TypeVar("Format", bound=str)


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
