"""Reads the labels of a message from its header fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Annotated

from pydantic import Field

from models.data.limits import IngestLimits
from models.data.mail_stores.mailbox_file import header_block
from models.data.record import RecordError, check_name
from models.data.values.label_cells import split_labels

HeaderName = Annotated[str, Field(pattern=r"^[!-9;-~]{1,100}$")]
"""The name of a header field."""

GMAIL_LABELS = "X-Gmail-Labels"
"""The header field in which Google Takeout writes the labels."""

# Matches whole lines: matching byte by byte would store a backtracking state for every byte.
_VALUE = re.compile(rb"[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)")
_FOLD = re.compile(r"\r*\n[ \t]+")
_MAX_REMEMBERED = 10_000
_MAX_REMEMBERED_BYTES = 1000


class HeaderLabels:
    """Reads labels from header fields.

    A field can be folded and can contain encoded words (RFC 2047). A label that contains the separator stands
    in double quotes, as in ``"Sales, EMEA",Billing``.

    Args:
        names: the header fields.
        separator: the separator between labels.
        ignore: labels to omit.
        limits: limits on the labels.
    """

    def __init__(
        self, names: Sequence[str], separator: str, ignore: Sequence[str], limits: IngestLimits
    ) -> None:
        self._names = {b"\n" + name.lower().encode(): name for name in names}
        self._separator = separator
        self._ignore = frozenset(ignore)
        self._limits = limits
        self._remembered: dict[tuple[str, bytes], list[str]] = {}

    def of(self, raw: bytes) -> list[str]:
        """Return the labels of a message; none if it has none of the fields.

        Raises:
            RecordError: a field cannot be decoded, or a label is invalid.
        """
        headers = header_block(raw)
        lowered = b"\n" + headers.lower()
        labels = []
        for key, name in self._names.items():
            start = lowered.find(key)
            while start >= 0:
                if field := _VALUE.match(headers, start + len(key) - 1):
                    value = field[1]
                    names = self._remembered.get((name, value))
                    labels += self._labels_of(value, name) if names is None else names
                start = lowered.find(key, start + 1)
        return labels

    def _labels_of(self, value: bytes, name: str) -> list[str]:
        """Return the labels in a field, and remember them, because many messages have the same value."""
        labels = [
            check_name(label, "a label", name, self._limits.name_length)
            for label in split_labels(_decode(value, name), self._separator, name)
            if label not in self._ignore
        ]
        if len(value) <= _MAX_REMEMBERED_BYTES and len(self._remembered) < _MAX_REMEMBERED:
            self._remembered[name, value] = labels
        return labels


def _decode(value: bytes, name: str) -> str:
    try:
        text = _FOLD.sub(" ", value.decode()).strip()
        return str(make_header(decode_header(text))) if "=?" in text else text
    except (UnicodeDecodeError, HeaderParseError, LookupError, ValueError) as error:
        raise RecordError(f"the header field cannot be decoded: {error}", name) from error
