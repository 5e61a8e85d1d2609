"""Names of folders if a server keeps those of a user below a prefix, such as ``INBOX.`` (RFC 2342)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from imap_tools.imap_utf7 import utf7_decode

_TOKEN: Final = re.compile(rb'[()]|"((?:[^"\\]|\\.)*+)"|[^\s()"]+')
_ESCAPED: Final = re.compile(rb"\\(.)")


class Namespaces:
    """The prefixes of a server, and the characters that separate the levels of its folders.

    Args:
        prefix: what the folders of the user begin with, such as ``INBOX.``; can be empty.
        delimiter: separates the levels of these folders; empty if the server has no levels.
        others: prefixes and delimiters of folders that several users share.
    """

    def __init__(self, prefix: str, delimiter: str, others: Iterable[tuple[str, str]] = ()) -> None:
        self._own = (prefix, delimiter)
        self._all = [self._own, *others]

    @property
    def delimiters(self) -> frozenset[str]:
        """All characters that separate levels."""
        return frozenset(delimiter for _, delimiter in self._all if delimiter)

    def folder_name(self, path: str) -> str:
        """Return the server's name of a folder.

        Args:
            path: the name with ``/`` between the levels. It can begin with a prefix.

        >>> namespaces = Namespaces("INBOX.", ".", [("Shared/", "/")])
        >>> [namespaces.folder_name(path) for path in ("INBOX", "Sales/New", "INBOX/Sales", "Shared/Sales")]
        ['INBOX', 'INBOX.Sales.New', 'INBOX.Sales', 'Shared/Sales']
        """
        first, slash, rest = path.partition("/")
        if first.upper() == "INBOX":  # the only name whose case does not matter
            path = f"INBOX{slash}{rest}"
        for prefix, delimiter in self._all:
            for start in (prefix, prefix.replace(delimiter, "/") if delimiter else prefix):
                if start and path.startswith(start):
                    return prefix + _with_delimiter(path.removeprefix(start), delimiter)
        prefix, delimiter = self._own
        return path if path == "INBOX" else prefix + _with_delimiter(path, delimiter)


def _with_delimiter(path: str, delimiter: str) -> str:
    return path.replace("/", delimiter) if delimiter else path


def read_namespaces(response: list[Any]) -> Namespaces | None:
    """Return the namespaces that the response to the command NAMESPACE names; None if it names no own one.

    >>> read_namespaces([b'(("INBOX." ".")) NIL (("Public/" "/"))']).folder_name("Public/New/Sales")
    'Public/New/Sales'
    """
    groups: list[list[tuple[str, str]]] = []
    depth = 0
    strings: list[str] = []
    for token, text in _tokens(response):
        if token == b"(":
            depth += 1
            if depth == 1:
                groups.append([])
            elif depth == 2:
                strings = []
        elif token == b")":
            depth -= 1
            if depth == 1 and len(strings) > 1:
                groups[-1].append((strings[0], strings[1]))
        elif depth == 0:
            groups.append([])  # NIL
        elif depth == 2:  # extensions are deeper
            strings.append(text)
    own, *shared = groups or [[]]
    if not own:
        return None
    return Namespaces(*own[0], others=[*own[1:], *(each for group in shared for each in group)])


def _tokens(response: list[Any]) -> Iterator[tuple[bytes, str]]:
    """Yield tokens and the text of each, which is empty unless it is a string."""
    for part in response:
        line, literal = part if isinstance(part, tuple) else (part or b"", None)
        if literal is not None:
            line = line[: line.rfind(b"{")]
        for token in _TOKEN.finditer(line):
            yield token[0], utf7_decode(_ESCAPED.sub(rb"\1", token[1] or b""))
        if literal is not None:
            yield b"{", utf7_decode(literal)
