"""Defaults of the arguments of all clients."""

from __future__ import annotations

import os

TIMEOUT_SECONDS = 60.0
"""How long to wait for the service, by default."""


def get_url(url: str | None) -> str:
    """Return the base URL of the service."""
    return url or os.environ.get("COVEY_URL") or "http://127.0.0.1:8000"


def get_key(key: str | None) -> str | None:
    """Return the API key; None for none."""
    return key or os.environ.get("COVEY_API_KEY") or None
