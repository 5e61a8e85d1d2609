"""Encrypt kept messages with AES-256-GCM (NIST SP 800-38D)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_ID_BYTES = 8
_NONCE_BYTES = 12


class UnknownKeyError(Exception):
    """The content was encrypted with another key."""


class DamagedError(Exception):
    """The content is not what was encrypted, or not for this name."""


class MessageCipher:
    """Encrypt with the first key, and decrypt with any of them.

    >>> cipher, name = MessageCipher([bytes(32)]), "messages/dec_1"
    >>> cipher.decrypt(cipher.encrypt(b"text", name), name)
    b'text'

    Args:
        keys: keys of 32 bytes, at least one.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = {_id(key): AESGCM(key) for key in keys}
        self._first = _id(keys[0])

    def encrypt(self, content: bytes, name: str) -> bytes:
        """Return the id of the key, the nonce and the encrypted content.

        Args:
            content: the content.
            name: what only the same name decrypts, so that two files cannot be exchanged.
        """
        nonce = os.urandom(_NONCE_BYTES)
        return self._first + nonce + self._ciphers[self._first].encrypt(nonce, content, name.encode())

    def decrypt(self, encrypted: bytes, name: str) -> bytes:
        """Return the content.

        Raises:
            UnknownKeyError: there is no key with this id.
            DamagedError: the bytes were changed, or encrypted for another name.
        """
        cipher = self._ciphers.get(encrypted[:_ID_BYTES])
        if cipher is None:
            raise UnknownKeyError
        nonce_end = _ID_BYTES + _NONCE_BYTES
        try:
            return cipher.decrypt(encrypted[_ID_BYTES:nonce_end], encrypted[nonce_end:], name.encode())
        except (InvalidTag, ValueError) as error:
            raise DamagedError from error


def _id(key: bytes) -> bytes:
    return hashlib.sha256(b"covey key id" + key).digest()[:_ID_BYTES]
