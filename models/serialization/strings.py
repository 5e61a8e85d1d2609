"""Stores lists of strings as two plain arrays, because a saved state contains only arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.arrays import AnyArray
from models.serialization.state import require

MAX_BYTES = 4 * 2**30
"""Maximum memory of the strings of one list. A string takes more memory than its characters in a file."""

_STRING_BYTES = 100


def pack_strings(strings: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Encode n strings as one UTF-8 buffer and n + 1 offsets into it.

    >>> buffer, offsets = pack_strings(["a", "bc"])
    >>> bytes(buffer), offsets.tolist()
    (b'abc', [0, 1, 3])
    """
    encoded = [string.encode() for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), offsets


def unpack_strings(buffer: AnyArray, offsets: AnyArray) -> list[str]:
    """Decode the result of :func:`pack_strings`.

    Raises:
        ArtifactError: the offsets are not in order or do not cover the buffer, a string contains NUL, or the
            strings would take too much memory.
    """
    size = len(buffer) + _STRING_BYTES * len(offsets)
    require(
        size <= MAX_BYTES, f"{len(offsets):,} strings would take {size:,} bytes; the limit is {MAX_BYTES:,}"
    )
    data = buffer.tobytes()
    require(b"\0" not in data, "a string contains a NUL character")
    bounds = offsets.tolist()
    require(
        len(bounds) > 0 and bounds[0] == 0 and bounds[-1] == len(data) and bounds == sorted(bounds),
        "string offsets are not in order or do not cover the buffer",
    )
    return [data[a:b].decode() for a, b in pairwise(bounds)]
