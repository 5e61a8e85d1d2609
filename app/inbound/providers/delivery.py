"""The common part of all providers: a delivery, how it is read, and the checks of its time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from pydantic import SecretStr

from app.api.request_head import RequestHead
from app.errors import Forbidden, NotFound, NotReady
from app.settings import Settings, split

MAX_AGE_SECONDS = 86_400.0
"""Maximum age of a signature. Providers repeat a request for hours with the same signature. A repetition gets
the first decision."""

MAX_AHEAD_SECONDS = 300.0
"""How far the clock of a provider can be ahead of ours."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A verified delivery of one message.

    Attributes:
        provider: name of the provider.
        key: identifies the delivery among all of the provider; None if the provider gives it no id.
        message: the raw message.
        single_use: whether the key is valid for one message only, because the signature does not cover the
            message.
    """

    provider: str
    key: str | None
    message: bytes
    single_use: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """A verified request that brings no message.

    Attributes:
        confirm_url: the URL that an operator must open, if there is one.
    """

    confirm_url: str | None = None


ReadVerified: TypeAlias = Callable[[], Delivery | Notice]
"""Returns what a verified body brings; raises a ``ServiceError`` if it brings nothing that can be read."""

VerifyBody: TypeAlias = Callable[[bytes], ReadVerified]
"""Verifies the body of a request, and returns what reads it; raises a ``ServiceError`` if the provider did
not send it. Anybody can send a body, so this must not need much more memory or time than to receive it."""


@dataclass(frozen=True, slots=True)
class Provider:
    """An e-mail provider that posts messages.

    Attributes:
        name: name of the provider.
        path: the end of the path of its operation.
        media_types: media types of its requests.
        check_head: refuses a request by its headers and the name of its router, before its body is read;
            returns what verifies the body.
        max_bytes: the maximum size of a body, if it is less than that of the middleware.
    """

    name: str
    path: str
    media_types: frozenset[str]
    check_head: Callable[[Settings, RequestHead, str], VerifyBody]
    max_bytes: int | None = None


def accepted_by(router: str, setting: str | SecretStr) -> list[str]:
    """Return the keys, topics or credentials in a setting that a router accepts.

    The names of routers can follow each of them. Then a delivery cannot be sent again to another router.

    >>> accepted_by("desk", "key1 desk front, key2 front, key3")
    ['key1', 'key3']
    """
    entries = [entry.split() for entry in split(setting)]
    return [entry[0] for entry in entries if not entry[1:] or router in entry[1:]]


def not_configured(provider: str, variable: str) -> NotFound:
    """Return the error for a provider without a secret that the router accepts."""
    return NotFound(
        f"this router does not accept messages of {provider}; the administrator must set {variable}",
        code="provider_not_configured",
    )


def misconfigured(variable: str, reason: object) -> NotReady:
    """Return the error for a secret that cannot be used. The provider keeps the message and tries again."""
    return NotReady(f"{variable} cannot be used: {reason}", retry_after=60)


def invalid_signature(detail: str) -> Forbidden:
    """Return the error for a delivery that the provider did not sign."""
    return Forbidden(detail, code="invalid_signature")


def check_age(signed_at: float, now: float) -> None:
    """Refuse a delivery that is too old.

    Args:
        signed_at: time of the signature, in seconds since 1970.
        now: the time.

    Raises:
        Forbidden: the delivery is too old, or its time is in the future.
    """
    if not -MAX_AHEAD_SECONDS <= now - signed_at <= MAX_AGE_SECONDS:  # also if it is NaN
        raise Forbidden(
            f"the delivery was signed at {_time(signed_at)}, and this service accepts an age of "
            f"{MAX_AGE_SECONDS:,.0f} s; check the clock",
            code="expired_signature",
        )


def digest(*parts: bytes) -> str:
    """Return a SHA-256 digest of several parts, which depends on where each part ends."""
    total = hashlib.sha256()
    for part in parts:
        total.update(b"%d:" % len(part))
        total.update(part)
    return total.hexdigest()


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return "an impossible time"
