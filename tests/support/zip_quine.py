"""A zip quine: a zip file that contains only itself (Russ Cox, "Zip Files All The Way Down", 2010).

The deflate stream is a program of two operations, each five bytes long. ``literal(n)`` copies the next n
bytes of the stream to the output, and ``repeat(n)`` copies the last n bytes of the output. The comments below
state what each line of the program prints. All lines together print the file.

The file contains its own checksum several times. A CRC is an affine function of the input bits, so the
correct checksum is the solution of 32 linear equations.
"""

from __future__ import annotations

import zlib
from functools import cache

_NAME = b"a/q.eml"
_LOCAL = 30 + len(_NAME)
_TAIL = 258
"""Bytes of the last line and everything after it: the longest match that deflate can repeat."""


@cache
def zip_quine() -> bytes:
    """Return the file. Its member ``a/q.eml`` is the file itself."""
    base = zlib.crc32(_file(0))
    columns = [zlib.crc32(_file(1 << i)) ^ base ^ (1 << i) for i in range(32)]
    rows = [
        sum((columns[i] >> bit & 1) << i for i in range(32)) | (base >> bit & 1) << 32 for bit in range(32)
    ]
    return _file(_solve(rows))


def _solve(rows: list[int]) -> int:
    """Solve linear equations over GF(2). A row has 32 coefficients and, in bit 32, the right-hand side."""
    by_pivot: dict[int, int] = {}
    for equation in rows:
        row = equation
        for pivot, other in by_pivot.items():
            row ^= other if row >> pivot & 1 else 0
        low = row & 0xFFFFFFFF
        assert low, "no checksum solves the equations; choose another member name"
        new = (low & -low).bit_length() - 1
        by_pivot = {pivot: other ^ (row if other >> new & 1 else 0) for pivot, other in by_pivot.items()} | {
            new: row
        }
    return sum(1 << pivot for pivot, row in by_pivot.items() if row >> 32)


def _file(crc: int) -> bytes:
    """Return the file with a given checksum."""
    size_of_program = len(_program(b"\0" * _LOCAL, b"\0" * (_TAIL - 15)))
    size = _LOCAL + size_of_program + _TAIL - 15
    common = b"".join(
        [
            bytes([20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0]),
            crc.to_bytes(4, "little"),
            size_of_program.to_bytes(4, "little"),
            size.to_bytes(4, "little"),
            len(_NAME).to_bytes(2, "little"),
            bytes(2),
        ]
    )
    local = b"PK\3\4" + common + _NAME
    directory = b"PK\1\2\x14\0" + common + bytes(14) + _NAME
    comment = _TAIL - 15 - len(directory) - 22
    end = b"".join(
        [
            b"PK\5\6\0\0\0\0\1\0\1\0",
            len(directory).to_bytes(4, "little"),
            (_LOCAL + size_of_program).to_bytes(4, "little"),
            comment.to_bytes(2, "little"),
            b" " * comment,
        ]
    )
    tail = directory + end
    return local + _program(local, tail) + tail


def _program(local: bytes, tail: bytes) -> bytes:
    nothing, four, last = _literal(0), _literal(20), _literal(_TAIL)
    begin = _literal(len(local)) + local + _literal(len(local) + 10)
    again = _REPEAT_BEGIN
    end = _REPEAT_TAIL + nothing + _literal(0, final=True)
    lines = [
        _literal(len(local)) + local,  # prints the bytes before the program
        _literal(len(local) + 10) + begin,  # prints the first line, and this one up to its data
        again,  # prints the data of the second line
        _literal(5) + again,  # prints the third line
        _literal(5) + _literal(5),  # prints the fourth line up to its data
        four + again + _literal(5) * 2 + four,  # prints its data, the fifth line, and this one up to its data
        _REPEAT_FOUR,  # prints the data of the sixth line
        four + _REPEAT_FOUR + four + _REPEAT_FOUR + four,  # prints the seventh line, and half of this one
        _REPEAT_FOUR,  # prints the other half, this line, and the next one up to its data
        four + _REPEAT_FOUR + nothing * 2 + last,  # prints its own data
        _REPEAT_FOUR,  # prints this line, the next two, and the one after them up to its data
        nothing,
        nothing,
        last + end + tail,  # prints its own data
        end,  # prints this line and everything after the program
    ]
    return b"".join(lines)


def _literal(n: int, *, final: bool = False) -> bytes:
    return bytes([final]) + n.to_bytes(2, "little") + (n ^ 0xFFFF).to_bytes(2, "little")


def _bits(*fields: tuple[int, int]) -> bytes:
    """Pack (value, width) pairs into bytes, lowest bits first."""
    number = width = 0
    for value, n in fields:
        number |= value << width
        width += n
    return number.to_bytes((width + 7) // 8, "little")


def _code(value: int, width: int) -> tuple[int, int]:
    """Return a Huffman code as a bit field. Deflate stores these highest bit first."""
    return int(f"{value:0{width}b}"[::-1], 2), width


_FIXED, _END = (0b010, 3), (0, 7)
_TEN_FROM_TWENTY = _code(8, 7), _code(8, 5), (20 - 17, 3)
_REPEAT_FOUR = _bits(_FIXED, *_TEN_FROM_TWENTY, *_TEN_FROM_TWENTY, _END)
"""Repeats 20 bytes, the length of four operations."""
_REPEAT_BEGIN = _bits(_FIXED, _code(18, 7), (47 - 43, 3), _code(10, 5), (47 - 33, 4), _END, _FIXED, _END)
"""Repeats 47 bytes: a local header with a name of seven bytes, and two operations. An empty block pads it."""
_REPEAT_TAIL = _bits(_FIXED, _code(0b11000101, 8), _code(16, 5), (258 - 257, 7), _END, _FIXED, _END)
"""Repeats 258 bytes."""
