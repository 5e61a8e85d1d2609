"""Finds copies of one message in a store of mail, such as a message that is in several folders.

Two messages are copies of each other if they have the same Message-ID, author, date, subject and body. Line
ends, the header fields that mail servers add, and the end of the body can differ. Messages without a
Message-ID are copies if all their bytes are equal.

The finder compares 64-bit hashes, so that two different messages count as copies with a probability of 1 in
2^64.
"""

from __future__ import annotations

import re
import zlib
from array import array

import numpy as np

from models.arrays import Bools, Ints
from models.data.mail_stores.mailbox_file import header_block
from models.mail.reader import message_identity

_MESSAGE_ID = re.compile(rb"^message-id[ \t]*+:\s*+([^\s]{1,998}+)", re.IGNORECASE | re.MULTILINE)
_USUAL_NAMES = (b"\nMessage-ID:", b"\nMessage-Id:")


def message_id_key(headers: bytes) -> int | None:
    """Return the key of a message with a Message-ID; None if it has none.

    Args:
        headers: its header fields.

    >>> message_id_key(b"MESSAGE-ID: <1@b.example>") == message_id_key(b"Message-Id:  <1@b.example> (x)")
    True
    """
    # A search for bytes is many times faster than one for a pattern that ignores case.
    start = max(headers.find(name) for name in _USUAL_NAMES) + 1
    match = _MESSAGE_ID.match(headers, start) if start else _MESSAGE_ID.search(headers)
    return hash(match[1]) if match else None


def content_key(n_bytes: int, crc: int) -> int:
    """Return the key of a message without a Message-ID from its size and CRC-32."""
    return hash((n_bytes, crc))


def message_key(raw: bytes) -> int:
    """Return a key that is equal for all copies of a message, and for few other messages."""
    key = message_id_key(header_block(raw))
    return content_key(len(raw), zlib.crc32(raw)) if key is None else key


def identity_key(raw: bytes) -> int:
    """Return a key that is equal for all copies of a message, and for no other message."""
    message_id, digest = message_identity(raw)
    return hash((message_id, digest) if message_id else raw)


class CopyFinder:
    """Finds the first copy of every message from 8 to 16 bytes for each message.

    Add the key of every message, in order, with :meth:`add_key`. Then add the identity of every message for
    which :meth:`candidates` is true, in order, with :meth:`add_identity`.
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._identities = array("q")

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._keys)

    def add_key(self, key: int | None) -> None:
        """Add the next message. None stands for a message that cannot be read, which has no copies."""
        self._keys.append(hash((None, len(self._keys))) if key is None else key)

    def candidates(self) -> Bools:
        """Return for each message whether another message has the same key."""
        keys = np.array(self._keys, dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        repeated = keys[order][1:] == keys[order][:-1]
        result = np.zeros(len(keys), dtype=np.bool_)
        result[order[1:][repeated]] = True
        result[order[:-1][repeated]] = True
        return result

    def add_identity(self, identity: int | None) -> None:
        """Add the identity of the next candidate. None stands for a message that has no copies."""
        self._identities.append(hash((None, len(self._identities))) if identity is None else identity)

    def first_copies(self, candidates: Bools) -> Ints:
        """Return for each message the position of its first copy, which can be its own position."""
        first = np.arange(len(self._keys))
        positions = np.flatnonzero(candidates)
        _, firsts, groups = np.unique(
            np.array(self._identities, dtype=np.int64), return_index=True, return_inverse=True
        )
        first[positions] = positions[firsts[groups]]
        return first
