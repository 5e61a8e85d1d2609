"""Render the pages of the console."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup

from app.api.guards import actor_of, has_scope
from app.api.request_head import head_of
from app.console.measures import main_measures, main_text
from app.console.schema_form import NAME_LIMITS
from app.console.sessions import COOKIE, csrf_token
from app.console.words import choice_of
from app.pages.rendering import environment
from app.version import __version__

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts and styles come only from files of the service, in case a user's text on a page is not escaped
correctly."""


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """Render a page.

    Templates know ``root`` (the path of the service behind a proxy), ``path`` (the path of the page),
    ``can(scope, …)`` (whether the visitor has one of the scopes), ``signed_in``, ``actor`` (the visitor; None
    if anonymous), ``has_users`` (whether people sign in by an OpenID provider), ``csrf`` and ``version``.

    Args:
        request: the request.
        template: name of the template.
        status: status of the response.
        headers: further headers of the response.
        values: what the template shows.
    """
    cookie = head_of(request).cookie(COOKIE)
    actor = actor_of(request)
    signed_in = cookie is not None and actor is not None
    # An error can occur before a guard knows the scopes of the visitor, who then sees no links to pages.
    is_authorized = "authorized_scopes" in request.scope["state"]
    html = (
        _environment()
        .get_template(template)
        .render(
            root=request.scope.get("root_path", ""),
            path=request.url.path,
            can=lambda *scopes: is_authorized and has_scope(request, *scopes),
            signed_in=signed_in,
            actor=actor,
            has_users=hasattr(request.app.state, "openid"),
            csrf=csrf_token(cookie) if signed_in and cookie is not None else "",
            version=__version__,
            **values,
        )
    )
    policy = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(html, status, headers={**policy, **(headers or {})})


@lru_cache(maxsize=1)
def _environment() -> Environment:
    created = environment("app.console")
    created.filters |= {
        "time": time,
        "number": number,
        "bytes": size,
        "sentence": sentence,
        "main_measures": main_measures,
        "main_text": main_text,
    }
    created.globals |= {"NAME_LIMITS": NAME_LIMITS, "choice_of": choice_of}
    return created


def time(value: datetime | None) -> str:
    """Return an element with a time in UTC. A script shows it in the time zone of the browser.

    >>> time(datetime(2026, 3, 1, 9, 30, 5, tzinfo=UTC))
    Markup('<time datetime="2026-03-01T09:30:05Z">2026-03-01 09:30 UTC</time>')
    >>> time(None)
    '–'
    """
    if value is None:
        return "–"
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"), utc.strftime("%Y-%m-%d %H:%M UTC")
    )


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for people.

    >>> number(12345), number(0.98765), number(None)
    ('12,345', '0.988', '–')
    """
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def duration(seconds: float) -> str:
    """Return a duration for people.

    >>> duration(7.4), duration(100), duration(3700), duration(90000)
    ('7 s', '1 min 40 s', '1 h 1 min', '1 d 1 h')
    """
    left = round(seconds)
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        n, left = divmod(left, length)
        parts.append((n, unit))
    first = next((i for i, (n, _) in enumerate(parts) if n), len(parts) - 1)
    shown = [f"{n} {unit}" for n, unit in parts[first : first + 2] if n or unit == "s"]
    return " ".join(shown) or "0 s"


def sentence(text: str) -> str:
    """Return a message of the service as a sentence.

    >>> sentence("the database is unavailable; try again"), sentence("Why?")
    ('The database is unavailable; try again.', 'Why?')
    """
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?…" else ".")


def size(n_bytes: int | None) -> str:
    """Return a number of bytes for people.

    >>> size(999), size(12_345_678)
    ('999 B', '12.3 MB')
    """
    if n_bytes is None:
        return "–"
    value = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError
