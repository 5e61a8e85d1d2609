"""Stores lists of strings as two plain arrays, because a saved state contains only arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.arrays import AnyArray
from models.serialization.state import require


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
        ArtifactError: the offsets are not in order or do not cover the buffer.
    """
    data = buffer.tobytes()
    bounds = offsets.tolist()
    require(
        len(bounds) > 0 and bounds[0] == 0 and bounds[-1] == len(data) and bounds == sorted(bounds),
        "string offsets are not in order or do not cover the buffer",
    )
    return [data[a:b].decode() for a, b in pairwise(bounds)]
