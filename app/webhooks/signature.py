"""Signatures of webhooks, as Standard Webhooks defines them (https://www.standardwebhooks.com, version 1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence

_PREFIX = "whsec_"


def new_secret() -> str:
    """Return a new secret of 256 random bits."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secrets_: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that prove who has sent a request, and when.

    Args:
        secrets_: secrets of the webhook. During a rotation there are two, and the receiver knows either.
        message_id: id of the event, the same for every attempt to send it.
        timestamp: time of the attempt in seconds since 1970.
        body: body of the request.
    """
    content = b".".join([message_id.encode(), str(timestamp).encode(), body])
    signatures = [
        hmac.digest(base64.b64decode(secret.removeprefix(_PREFIX)), content, hashlib.sha256)
        for secret in secrets_
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(value).decode()}" for value in signatures),
    }
