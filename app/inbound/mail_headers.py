"""The header fields ``X-Covey-…`` that tell mail servers and mailboxes what was decided.

Fields of these names that a message brings along are removed: a sender must not be able to write them.
Everything else of the message stays as it is, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.header import Header

from app.inbound.routed_message import RoutedMessage

PREFIX = b"x-covey-"
"""Start of the names of all fields that are removed, in lower case."""

MAX_LINE = 76
"""Maximum length of a line of an added field, if its words allow it."""

_HEADER_END = re.compile(rb"(?:\A|\n)\r*\n")
_CR_BEFORE_FIELD = re.compile(rb"\r(?=x-covey-)", re.IGNORECASE)
_CRS_AT_END = re.compile(rb"\n\r*\n\Z")
_SPECIAL = re.compile(r'[,"\\;]|^\s|\s$|^$')


def decision_fields(decision: RoutedMessage) -> list[tuple[str, str]]:
    """Return names and values of the fields, not encoded.

    - ``X-Covey-Decision``: the disposition, then ``id``, ``router`` and ``version``.
    - ``X-Covey-Departments``: the labels of the departments, best first, separated by commas. A label that
      contains a special character is in double quotes. Absent if there is no department.
    - ``X-Covey-Score``: the scores of the departments in the same order.
    - ``X-Covey-Probability``: the probability that exactly these departments are right, if it is known.
    - ``X-Covey-Destinations``: the destinations, separated by commas.
    """
    version = decision.model if decision.version is None else f"{decision.model}/{decision.version}"
    fields = [
        (
            "X-Covey-Decision",
            f"{decision.disposition}; id={decision.decision_id}; router={decision.router}; version={version}",
        )
    ]
    if decision.departments:
        fields += [
            ("X-Covey-Departments", _list([department.label for department in decision.departments])),
            ("X-Covey-Score", ", ".join(f"{department.score:.6g}" for department in decision.departments)),
        ]
    if decision.set_probability is not None:
        fields.append(("X-Covey-Probability", f"{decision.set_probability:.4f}"))
    fields.append(("X-Covey-Destinations", _list(decision.destinations)))
    return fields


def field_lines(fields: Sequence[tuple[str, str]], newline: bytes = b"\n") -> bytes:
    """Return fields as lines of a header: folded, and encoded (RFC 2047) unless they are ASCII."""
    lines: list[str] = []
    for name, value in fields:
        # The class encodes nothing that is ASCII, and folds at spaces.
        charset = "us-ascii" if value.isascii() else "utf-8"
        encoded = Header(value, charset, maxlinelen=MAX_LINE, header_name=name).encode(linesep="\n")
        lines += f"{name}: {encoded}".split("\n")
    return b"".join(line.encode("ascii") + newline for line in lines)


def add_fields(message: bytes, fields: Sequence[tuple[str, str]]) -> bytes:
    r"""Return a message with fields at its top, and without the fields of these names that it had.

    Args:
        message: the raw message. A first line ``From …``, as in a mailbox file, stays the first one.
        fields: names and values, see ``decision_fields``.

    Examples:
        >>> add_fields(b"X-Covey-Score: 9\nSubject: Hello\n\nX-Covey: text\n", [("X-Covey-Score", "0.5")])
        b'X-Covey-Score: 0.5\nSubject: Hello\n\nX-Covey: text\n'
    """
    start = message.find(b"\n") + 1 if message.startswith(b"From ") else 0
    first_end = message.find(b"\n")
    newline = b"\r\n" if first_end > 0 and message[first_end - 1 : first_end] == b"\r" else b"\n"
    end = start + header_length(message[start:])
    return message[:start] + header_with(message[start:end], fields, newline) + message[end:]


def header_length(message: bytes) -> int:
    """Return the length of the header of a message with the empty line after it."""
    end = _HEADER_END.search(message)
    return end.end() if end else len(message)


def header_with(header: bytes, fields: Sequence[tuple[str, str]], newline: bytes) -> bytes:
    """Return a header with fields at its top, in which no receiver finds other fields ``X-Covey-…``.

    Args:
        header: the header with the empty line after it.
        fields: names and values.
        newline: the end of a line.
    """
    header = strip_fields(header)
    # Some receivers end a line at CR, and some do not see the end of a header in CR CR LF.
    header = _CR_BEFORE_FIELD.sub(b" ", header)
    header = _CRS_AT_END.sub(b"\n" + newline, header)
    # A first line that begins with a space would continue the last field above.
    separator = newline if header[:1] in (b" ", b"\t") else b""
    return field_lines(fields, newline) + separator + header


def strip_fields(message: bytes) -> bytes:
    """Return a message without its fields ``X-Covey-…``."""
    kept: list[bytes] = []
    position = 0
    for begin, end, removed in _fields(message):
        if removed:
            kept.append(message[position:begin])
            position = end
    return b"".join([*kept, message[position:]]) if kept or position else message


def _fields(message: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield begin and end of each line of the header, and whether its field is removed."""
    begin, removed = 0, False
    while begin < len(message):
        end = message.find(b"\n", begin) + 1 or len(message)
        line = message[begin : min(end, begin + 1000)]
        if not line.strip(b"\r\n"):
            return
        if line[:1] not in (b" ", b"\t"):
            removed = line[: len(PREFIX)].lower() == PREFIX
        yield begin, end, removed
        begin = end


def _list(words: Sequence[str]) -> str:
    return ", ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Return a word that can stand in a list: control characters as spaces, in quotes if necessary."""
    word = "".join(" " if character < " " or character == "\x7f" else character for character in word)
    if _SPECIAL.search(word):
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return word
