"""The secrets of webhooks, as the database stores them: encrypted, if ``COVEY_ENCRYPTION_KEY`` is set.

A signature needs the secret itself, so a digest is not enough.
"""

from __future__ import annotations

import base64
import secrets

from app.routing.message_cipher import MessageCipher, UnknownKeyError
from app.settings import Settings

_ENCRYPTED = "aes:"
"""Beginning of an encrypted secret; others begin with ``whsec_``."""


def new_secret() -> str:
    """Return a new secret of 256 random bits, in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def stored(settings: Settings, webhook_id: str, secret: str) -> str:
    """Return a secret of a webhook in the form that is stored."""
    keys = settings.encryption_keys()
    if not keys:
        return secret
    encrypted = MessageCipher(keys).encrypt(secret.encode(), f"webhooks/{webhook_id}")
    return _ENCRYPTED + base64.b64encode(encrypted).decode()


def revealed(settings: Settings, webhook_id: str, stored_secret: str) -> str:
    """Return a secret of a webhook from the form that is stored.

    Raises:
        UnknownKeyError: it is encrypted with a key that the settings do not have, or they have none.
        DamagedError: it is not what was encrypted for this webhook.
    """
    if not stored_secret.startswith(_ENCRYPTED):
        return stored_secret
    keys = settings.encryption_keys()
    if not keys:
        raise UnknownKeyError
    encrypted = base64.b64decode(stored_secret.removeprefix(_ENCRYPTED))
    return MessageCipher(keys).decrypt(encrypted, f"webhooks/{webhook_id}").decode()
