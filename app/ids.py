"""Opaque identifiers: a prefix, then a ULID, so that the order of ids is the order of creation."""

from __future__ import annotations

import secrets
import time
from typing import Literal, TypeAlias

Prefix: TypeAlias = Literal["ds", "job", "exp", "dec", "key", "req", "wrk", "rtr", "evl"]

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: Prefix) -> str:
    """A fresh identifier.

    >>> first = new_id("ds")
    >>> first.startswith("ds_"), len(first)
    (True, 29)
    """
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    digits = [_CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"
