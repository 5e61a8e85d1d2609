"""Reads mbox: consecutive raw messages, with their labels in header fields."""

from __future__ import annotations

from typing import Annotated, BinaryIO, Literal

from pydantic import Field

from models.data.files.input_file import InputFile
from models.data.limits import IngestLimits
from models.data.mail_stores.header_labels import GMAIL_LABELS, HeaderLabels, HeaderName
from models.data.mail_stores.store import Mailbox, read_store
from models.data.options import FormatOptionsBase, Name
from models.data.record import Declarations, Items


class MboxOptions(FormatOptionsBase):
    """Where a message contains its labels."""

    format: Literal["mbox"]
    label_header: HeaderName | Annotated[list[HeaderName], Field(min_length=1, max_length=20)] = GMAIL_LABELS
    """The header fields that contain the labels, or the only field. Google Takeout writes
    ``X-Gmail-Labels``, and Thunderbird writes tags to ``X-Mozilla-Keys``, separated by spaces."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """The separator between labels. White space around labels is removed."""
    ignore: tuple[Name, ...] = ()
    """Labels to omit, such as ``Inbox``."""


def read_mbox(file: InputFile, options: MboxOptions, limits: IngestLimits) -> Items:
    """Yield the messages of a mailbox, with one record for all copies of a message.

    The line of a record is the line of the separator before its message. A message without the header field
    has no label.
    """
    names = [options.label_header] if isinstance(options.label_header, str) else options.label_header
    labels = HeaderLabels(names, options.label_separator, options.ignore, limits)
    with file.open_seekable() as stream:

        def rewind() -> BinaryIO:
            stream.seek(0)
            return stream

        mailbox = Mailbox("", rewind, labels.of, limits)
        yield from read_store([mailbox], lambda: Declarations(warnings=list(mailbox.oddities.warnings())))
