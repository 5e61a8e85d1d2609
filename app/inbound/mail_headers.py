"""The header fields ``X-Covey-…`` that tell mail servers and mailboxes what was decided.

Fields of these names that a message brings along are removed: a sender must not be able to write them.
Everything else of the message stays as it is, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from app.inbound.routed_message import RoutedMessage

PREFIX = b"x-covey-"
"""Start of the names of all fields that are removed, in lower case."""

MAX_LINE = 76
"""Maximum length of a line of an added field, if its words allow it."""

MAX_WORD = 52
"""Maximum length of an encoded word, so that one fits on the first line of each field."""

# A header can be as long as a message. So each repetition is possessive or ends at the next LF, and a search
# begins with a byte. Between the characters of a name there can be CR, because some receivers drop it.
_NAME = rb"\r*+".join(re.escape(PREFIX[i : i + 1]) for i in range(len(PREFIX)))
_EMPTY_LINE = re.compile(rb"\r*+\n")
_HEADER_END = re.compile(rb"\n\r*+\n")
_FIRST_FIELD = re.compile(rb"\r*+" + _NAME, re.IGNORECASE)
_FIELD = re.compile(rb"\n\r*+" + _NAME, re.IGNORECASE)
_NEXT_LINE = re.compile(rb"\n(?![ \t])")
_CR_BEFORE_FIELD = re.compile(rb"\r(?<!\r\r)\r*+(?=" + _NAME + rb")", re.IGNORECASE)
_ENVELOPE_LINE = re.compile(rb"From [^\r\n]*+\r*+\n")
_STARTS_WITH_SPACE = re.compile(rb"\r*+[ \t]")
_SPECIAL = re.compile(r'[,"\\;]|^\s|\s$|^$')
_PIECES = re.compile(r" +[^ ]+")


def decision_fields(decision: RoutedMessage) -> list[tuple[str, str]]:
    """Return names and values of the fields, not folded.

    - ``X-Covey-Decision``: the disposition, then ``id``, ``router`` and ``version``.
    - ``X-Covey-Departments``: the labels of the departments, best first, separated by commas. A label that
      contains a special character is in double quotes. Absent if there is no department.
    - ``X-Covey-Score``: the scores of the departments in the same order.
    - ``X-Covey-Probability``: the probability that exactly these departments are right, if it is known.
    - ``X-Covey-Destinations``: the destinations, separated by commas.

    A label that is not ASCII is an encoded word (RFC 2047) between the commas; so is a destination, except
    that the domain of an address is in its ASCII form (RFC 3490).
    """
    version = decision.model if decision.version is None else f"{decision.model}/{decision.version}"
    names = f"router={_encoded(decision.router)}; version={_encoded(version)}"
    fields = [("X-Covey-Decision", f"{decision.disposition}; id={decision.decision_id}; {names}")]
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
    """Return fields as lines of a header, folded after commas, and at other spaces if a word is too long."""
    lines: list[str] = []
    for name, value in fields:
        lines.append(f"{name}:")
        is_first = True
        for words in value.replace(", ", ",\n").split("\n"):
            for piece in [f" {words}"] if len(words) < MAX_LINE else _PIECES.findall(f" {words}"):
                if is_first or len(lines[-1]) + len(piece) <= MAX_LINE:
                    lines[-1] += piece
                else:
                    lines.append(piece)
                is_first = False
    return b"".join(line.encode("ascii") + newline for line in lines)


def add_fields(message: bytes, fields: Sequence[tuple[str, str]]) -> bytes:
    r"""Return a message with fields at its top, and without the fields of these names that it had.

    Args:
        message: the raw message.
        fields: names and values, see ``decision_fields``.

    Examples:
        >>> add_fields(b"X-Covey-Score: 9\nSubject: Hello\n\nX-Covey: text\n", [("X-Covey-Score", "0.5")])
        b'X-Covey-Score: 0.5\nSubject: Hello\n\nX-Covey: text\n'
    """
    end = header_length(message)
    return header_with(message[:end], fields, has_crlf=b"\r\n" in message) + message[end:]


def header_length(message: bytes) -> int:
    """Return the length of the header of a message with the empty line after it.

    The header ends where a receiver ends it whose lines end in LF and who drops CR before it. Receivers whose
    lines also end in CR do not end it later.
    """
    end = _EMPTY_LINE.match(message) or _HEADER_END.search(message)
    return end.end() if end else len(message)


def covey_fields(header: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each field ``X-Covey-…`` of a header, with its line ends.

    Args:
        header: the beginning of a message, see ``header_length``.
    """
    first = _FIRST_FIELD.match(header)
    found = first or _FIELD.search(header)
    while found:
        begin = found.start() + (found is not first)
        following = _NEXT_LINE.search(header, found.end())
        end = following.end() if following else len(header)
        yield begin, end
        found = _FIELD.search(header, end - 1)


def header_with(header: bytes, fields: Sequence[tuple[str, str]], *, has_crlf: bool) -> bytes:
    """Return a header with fields at its top, in which no receiver finds other fields ``X-Covey-…``.

    Receivers end lines at LF, at CR LF alone, or at CR too.

    Args:
        header: the header with the empty line after it, see ``header_length``. A first line ``From …``, as in
            a mailbox file, stays the first one.
        fields: names and values.
        has_crlf: whether there is a CR LF in the message.
    """
    first = header.find(b"\n")
    end_of_header = b"\r\n" if has_crlf else b"\n"
    ends_in_crlf = header[:first].endswith(b"\r") if first >= 0 else has_crlf
    newline = b"\r\n" if ends_in_crlf else b"\n"
    lines = header.rstrip(b"\r\n")
    if header.count(b"\n", len(lines)) > bool(lines):  # there is an empty line
        # After CR CR LF, or LF LF in a message of CR LF, the header would continue for some receivers.
        header = lines + end_of_header * (1 + bool(lines))
    envelope_line = _ENVELOPE_LINE.match(header)
    begin = envelope_line.end() if envelope_line else 0
    rest = _CR_BEFORE_FIELD.sub(b" ", _without_fields(header[begin:]))
    separator = b""
    if _STARTS_WITH_SPACE.match(rest):
        # It would continue the last field above.
        separator = newline = end_of_header
    elif rest == end_of_header:
        newline = end_of_header
    return header[:begin] + field_lines(fields, newline) + separator + rest


def _without_fields(header: bytes) -> bytes:
    kept: list[bytes] = []
    position = 0
    for begin, end in covey_fields(header):
        kept.append(header[position:begin])
        position = end
    return b"".join([*kept, header[position:]]) if position else header


def _list(words: Sequence[str]) -> str:
    return ", ".join(_encoded(_quoted(word)) for word in words)


def _encoded(word: str) -> str:
    """Return a word as ASCII. Each word is encoded alone (RFC 2047), so that filters find the others."""
    if word.isascii() and "=?" not in word:
        return word
    name, at, domain = word.rpartition("@")
    if at and name.isascii() and not domain.isascii():
        with suppress(UnicodeError):  # no domain
            return f"{name}@{domain.encode('idna').decode()}"
    from email.header import Header

    return Header(word, "utf-8", maxlinelen=MAX_WORD).encode(linesep="").replace("\n", "")


def _quoted(word: str) -> str:
    """Return a word that can stand in a list: control characters as spaces, in quotes if necessary."""
    word = "".join(" " if character < " " or character == "\x7f" else character for character in word)
    if _SPECIAL.search(word):
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return word
