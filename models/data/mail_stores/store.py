"""Yields the messages of a store of mail, with one record for all copies of a message.

The store is read twice: first to find messages that can be copies of each other, then to yield the records.
Only messages that share a key are compared, in a pass between the two.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from models.arrays import Bools
from models.data.limits import IngestLimits
from models.data.mail_stores.copies import CopyFinder, identity_key, message_key
from models.data.mail_stores.mailbox_file import MailboxMessage, Oddities, Places, is_expunged, split_mailbox
from models.data.record import Declarations, Items, Record, RecordError
from models.errors import BadRecord
from models.mail.email import Email


class StoredMessage(NamedTuple):
    """A message in a file.

    Attributes:
        line: number of its first line in the file.
        raw: its bytes.
        fault: why it cannot be used; empty if it can.
    """

    line: int
    raw: bytes
    fault: str = ""


class MailFile(Protocol):
    """A file that contains messages. It yields the same messages each time."""

    def keys(self) -> Iterator[int | None]:
        """Yield for each message a key that its copies share; None if it cannot be used."""
        ...

    def messages(self) -> Iterator[StoredMessage]:
        """Yield the messages."""
        ...

    def labels(self, raw: bytes) -> list[str]:
        """Return the labels of a message.

        Raises:
            RecordError: a label is invalid.
        """
        ...

    def place(self, message: StoredMessage, position: int) -> tuple[int, str | None]:
        """Return the line and the field that a record of a message states.

        Args:
            message: a message of the file.
            position: its position in the store, from 0.
        """
        ...


class Mailbox:
    """A mailbox file (mbox).

    Args:
        name: its name in a zip; empty if it is not in a zip.
        open_: returns the file at its beginning.
        labels: returns the labels of a message.
        limits: limits on a message.

    Attributes:
        name: its name in a zip.
        oddities: the odd lines; complete after the first use of :meth:`keys`.
    """

    def __init__(
        self,
        name: str,
        open_: Callable[[], BinaryIO],
        labels: Callable[[bytes], list[str]],
        limits: IngestLimits,
    ) -> None:
        self.name = name
        self.labels = labels
        self.oddities = Oddities()
        self._open = open_
        self._places = Places()
        self._max_bytes = limits.record_bytes

    def keys(self) -> Iterator[int | None]:
        """Yield the key of each message."""
        self.oddities = Oddities()
        self._places = Places()
        read = self._open().read
        for line, raw in split_mailbox(read, self._max_bytes, self.oddities, self._places):
            if raw is not None and is_expunged(raw):
                self.oddities.expunged.add(line)
                self._places.remove_last()
            else:
                yield None if raw is None else message_key(raw)

    def messages(self) -> Iterator[StoredMessage]:
        """Yield the messages, after :meth:`keys` has found them."""
        for line, raw in self._found():
            if raw is None:
                yield StoredMessage(line, b"", too_long(self._max_bytes))
            else:
                yield StoredMessage(line, raw)

    def _found(self) -> Iterator[MailboxMessage]:
        if not self._places.must_split:
            yield from self._places.messages(self._open().read)
            return
        for message in split_mailbox(self._open().read, self._max_bytes):
            if message.raw is None or not is_expunged(message.raw):
                yield message

    def place(self, message: StoredMessage, position: int) -> tuple[int, str | None]:
        """Return the line of the separator; in a zip, the number of the message and its place in the file."""
        if self.name:
            return position + 1, f"{self.name}, line {message.line}"
        return message.line, None


def too_long(max_bytes: int) -> str:
    """Return why a message that is too long cannot be used."""
    return f"the message is longer than the limit of {max_bytes:,} bytes"


def read_store(
    files: Sequence[MailFile],
    declare: Callable[[], Declarations],
    begin_pass: Callable[[], None] = lambda: None,
) -> Items:
    """Yield the declarations, then one record for each message, in the order of the files.

    The record of a message has the labels of all its copies and stands in the place of the first one.

    Args:
        files: the files of the store.
        declare: returns the declarations; called after the first pass.
        begin_pass: called before each pass over the files.
    """
    store = _Store(files)
    begin_pass()
    store.add_keys()
    candidates = store.finder.candidates()
    first = positions = np.arange(len(candidates))
    merged: dict[int, list[str]] = {}
    if candidates.any():
        begin_pass()
        labels = store.compare(candidates)
        first = store.finder.first_copies(candidates)
        merged = {int(position): [] for position in first[first != positions]}
        for position, of_copy in zip(first[candidates].tolist(), labels, strict=True):
            if position in merged:
                merged[position].extend(of_copy)
    is_first = first == positions
    declarations = declare()
    n_copies = len(positions) - int(np.count_nonzero(is_first))
    if n_copies:
        warning = (
            f"copies of messages, such as one message in several folders: {n_copies:,}; "
            "each message is one example with the labels of all its copies"
        )
        declarations = replace(declarations, warnings=[*declarations.warnings, warning])
    yield declarations
    begin_pass()
    for position, file, message in store.messages(is_first):
        line, field = file.place(message, position)
        try:
            if message.fault:
                raise RecordError(message.fault)
            names = merged.get(position)
            labels_ = file.labels(message.raw) if names is None else names
            yield Record(line=line, labels=labels_, email=Email(raw=message.raw))
        except RecordError as error:
            yield BadRecord(line, error.reason, field or error.field)


class _Store:
    def __init__(self, files: Sequence[MailFile]) -> None:
        self._files = files
        self._ends = array("q")  # for each file, the number of messages up to its end
        self.finder = CopyFinder()

    def add_keys(self) -> None:
        for file in self._files:
            for key in file.keys():  # noqa: SIM118 - not a mapping
                self.finder.add_key(key)
            self._ends.append(len(self.finder))

    def compare(self, candidates: Bools) -> list[tuple[str, ...]]:
        """Add the identity of each candidate to the finder. Return its labels."""
        labels: list[tuple[str, ...]] = []
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        for _, file, message in self.messages(candidates):
            identity: int | None = None
            names: tuple[str, ...] = ()
            if not message.fault:
                try:
                    names = tuple(file.labels(message.raw))
                    identity = identity_key(message.raw)
                except RecordError:
                    pass  # the last pass reports it
            self.finder.add_identity(identity)
            labels.append(shared.setdefault(names, names))
        return labels

    def messages(self, wanted: Bools) -> Iterator[tuple[int, MailFile, StoredMessage]]:
        """Yield the position, file and content of the wanted messages."""
        flags = wanted.tobytes()
        start = 0
        for file, end in zip(self._files, self._ends, strict=True):
            if 1 in flags[start:end]:
                for position, message in enumerate(file.messages(), start):
                    if flags[position]:
                        yield position, file, message
            start = end
