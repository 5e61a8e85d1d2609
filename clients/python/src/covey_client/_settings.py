"""Defaults of the arguments of all clients."""

from __future__ import annotations

import os

TIMEOUT_SECONDS = 60.0
"""How long to wait for the service, by default."""


def get_url(url: str | None) -> str:
    """Return the base URL of the service.

    Raises:
        ValueError: it is no HTTP URL.
    """
    value = url or os.environ.get("COVEY_URL") or "http://127.0.0.1:8000"
    if not value.startswith(("http://", "https://")):
        raise ValueError(f"the URL of the service must start with http:// or https://: {value!r}")
    return value


def get_key(key: str | None) -> str | None:
    """Return the API key without spaces around it, such as the end of a line; None for none.

    Raises:
        ValueError: no key can look like this.
    """
    value = (key or os.environ.get("COVEY_API_KEY") or "").strip()
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("the API key contains characters that no key contains")  # which is a secret
    return value or None
