"""Decodes the names of the members of a zip.

A flag states that a name is in UTF-8. Without it, the standard defines code page 437. In practice, macOS and
many programs write UTF-8 without the flag, and others write the Windows code page.
"""

from __future__ import annotations

import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from models.data.record import quoted

NameEncoding: TypeAlias = Literal[
    "utf-8",
    "cp437",
    "cp850",
    "cp852",
    "cp866",
    "cp932",
    "cp936",
    "cp949",
    "cp950",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "cp1254",
]
"""The encoding of names in a zip."""

_UTF8_FLAG = 0x800
_UNICODE_PATH = 0x7075
_GUESSES: tuple[NameEncoding, ...] = ("cp437", "cp1252")


def decode_names(
    members: Sequence[zipfile.ZipInfo], encoding: NameEncoding | None
) -> tuple[list[str], list[str]]:
    """Return the names of members with ``/`` between folders, and warnings about the encoding.

    Names without the UTF-8 flag are in UTF-8 if they are valid UTF-8. All others in the zip are in code page
    437 or 1252: in the one that gives more Latin letters.

    Args:
        members: the members.
        encoding: the encoding of names without the UTF-8 flag; None guesses it.
    """
    names = [info.orig_filename for info in members]
    other: dict[int, bytes] = {}
    for j, info in enumerate(members):
        if info.flag_bits & _UTF8_FLAG or names[j].isascii():
            continue
        raw = names[j].encode("cp437")
        unicode_path = _unicode_path(info.extra, raw)
        if unicode_path is not None:
            names[j] = unicode_path
        elif encoding is not None:
            names[j] = raw.decode(encoding, "replace")
        elif (text := _as_utf8(raw)) is not None:
            names[j] = text
        else:
            other[j] = raw
    warnings = []
    if other:
        guess = max(_GUESSES, key=lambda name: _n_letters(other.values(), name))
        for j, raw in other.items():
            names[j] = raw.decode(guess, "replace")
        example = quoted(names[min(other)])
        warnings.append(
            f"names in the zip whose encoding is not stated: {len(other):,}; they were read as {guess}, such "
            f"as {example}; if this is wrong, set the option name_encoding"
        )
    return [_clean(name) for name in names], warnings


def _as_utf8(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _n_letters(names: Iterable[bytes], encoding: str) -> int:
    """Return the number of letters of Western European languages beyond ASCII."""
    return sum(
        unicodedata.category(char) in {"Lu", "Ll"} and unicodedata.name(char, "").startswith("LATIN ")
        for raw in names
        for char in raw.decode(encoding, "replace")
        if char > "\x7f"
    )


def _unicode_path(extra: bytes, raw: bytes) -> str | None:
    """Return the name in the extra field of Info-ZIP if it belongs to the name."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _UNICODE_PATH and len(field) > 5 and field[0] == 1:
            (checksum,) = struct.unpack_from("<I", field, 1)
            return _as_utf8(field[5:]) if checksum == zlib.crc32(raw) else None
    return None


def _clean(name: str) -> str:
    r"""Return a name with ``/`` between folders, without empty parts, ``.``, ``..`` and the name of a drive.

    Some programs of Windows write ``\``.

    >>> _clean("C:\\mail\\a.eml"), _clean("./b/a.eml"), _clean("b/")
    ('mail/a.eml', 'b/a.eml', 'b/')
    """
    name = name.partition("\0")[0]
    if "\\" in name and "/" not in name:
        name = name.replace("\\", "/")
    if name[1:3] == ":/":
        name = name[3:]
    if not name.startswith(("/", ".")) and "//" not in name and "/." not in name:
        return name
    parts = name.split("/")
    kept = [part for part in parts[:-1] if part not in {"", ".", ".."}]
    return "/".join([*kept, parts[-1]])
