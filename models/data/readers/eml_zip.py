"""Reads a zip of mail in folders or mailboxes that are named after the labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from posixpath import commonpath
from typing import Annotated, Literal

from pydantic import Field

from models.data.advice import Advice, Suggestion
from models.data.files.input_file import InputFile
from models.data.files.zip_archive import ZipArchive, open_zip_archive
from models.data.files.zip_names import NameEncoding
from models.data.limits import IngestLimits
from models.data.mail_stores.copies import content_key, message_id_key
from models.data.mail_stores.folders import HEAD_BYTES, Kind, MailFinder, MailMember, Skipped
from models.data.mail_stores.header_labels import GMAIL_LABELS, HeaderLabels, HeaderName
from models.data.mail_stores.mailbox_file import MAX_HEADER_BYTES, header_block, split_mailbox
from models.data.mail_stores.store import Mailbox, MailFile, StoredMessage, read_store, too_long
from models.data.options import FormatOptionsBase, Name
from models.data.record import Declarations, Items, check_name, quoted
from models.errors import BadDataError

_TAKEOUT = "Takeout"
_EMLX_COUNT = re.compile(rb"\s{0,100}(\d{1,10})[ \t]*\r?\n")
_OUTLOOK_FORMAT = (
    "the file is in Outlook's own format (.msg); save the message as .eml, or drag it into a folder of "
    "Thunderbird and export the folder"
)
_PLIST = b"<?xml version="
_HEAD_SIZES = (2**11, 2**15, MAX_HEADER_BYTES)
_MAX_ODD_MAILBOXES = 3


class EmlZipOptions(FormatOptionsBase):
    """How folders become labels."""

    format: Literal["eml_zip"]
    root: str | None = None
    """The folder in the zip that contains the label folders; empty for the top level. By default, an outer
    folder that contains all others and no message is not a part of the labels."""
    tree: bool = False
    """Whether nested folders are a label tree. If false, ``a/b`` is an ordinary label."""
    label_header: HeaderName | Annotated[list[HeaderName], Field(min_length=1, max_length=20)] | None = None
    """The header fields that contain the labels, or the only field, instead of folders. By default,
    mailboxes in a folder ``Takeout`` have their labels in ``X-Gmail-Labels``."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """The separator between labels in a header field. White space around labels is removed."""
    ignore: tuple[Name, ...] = ()
    """Labels to omit, such as ``Inbox``."""
    name_encoding: NameEncoding | None = None
    """The encoding of names in the zip that are not marked as UTF-8. By default, it is UTF-8 if the name is
    valid in it, and otherwise cp437 or cp1252: the one that gives more letters."""


def read_eml_zip(file: InputFile, options: EmlZipOptions, limits: IngestLimits) -> Items:
    """Yield the messages of a zip in the order of their names, with one record for all copies of a message.

    The label is the path of the folder or mailbox. A message outside the label folders has no label, and a
    message in several folders has several. A warning counts the files that are not read. The line of a record
    is the number of the message in the zip.
    """
    with open_zip_archive(file, limits, options.name_encoding) as archive:
        skipped = Skipped()
        skipped.add("files of the operating system", count=archive.n_system_files)
        root = (options.root or "").strip("/")
        members = _find_members(archive, root, skipped, limits)
        if not members:
            raise _no_messages(root, skipped)
        labels = _Labels(options, limits)

        def label_folders() -> set[str]:
            return {
                member.folder
                for member in members
                if labels.in_header(member, archive.names[member.index]) is None
            }

        folders = label_folders()
        outer = _outer_folder(folders) if options.root is None else ""
        if outer:
            members = [replace(member, folder=member.folder.removeprefix(outer)) for member in members]
            folders = label_folders()
        files = [_open_member(archive, member, labels, limits) for member in members]
        yield Declarations(warnings=[*archive.warnings, *skipped.warnings()])
        messages = [file for file in files if isinstance(file, _MessageFile)]
        for message in sorted(messages, key=lambda file: file.position):  # sequential reads are faster
            message.find_key()
        yield from read_store(
            files, lambda: _declarations(folders, files, options, outer), archive.begin_pass
        )


def _find_members(archive: ZipArchive, root: str, skipped: Skipped, limits: IngestLimits) -> list[MailMember]:
    """Return the files with mail in the root folder in the order of their names, with folders from there."""

    def has_several(index: int) -> bool:
        with archive.open(index) as stream:
            messages = split_mailbox(stream.read, limits.record_bytes)
            return next(messages, None) is not None and next(messages, None) is not None

    finder = MailFinder(archive.names, lambda index: archive.read(index, HEAD_BYTES), has_several)
    members = []
    for member in finder.find(skipped):
        name, folder = archive.names[member.index], member.folder
        if not root or folder == root or folder.startswith(root + "/"):
            members.append(MailMember(member.index, member.kind, folder[len(root) :].lstrip("/")))
        else:
            skipped.add(f"messages or mailboxes outside the folder {root!r}", name)
    return sorted(members, key=lambda member: archive.names[member.index])


def _outer_folder(folders: Collection[str]) -> str:
    """Return the path of the folders that contain all label folders and no message, with a slash at the end.

    A single folder is a label with its whole path, because nothing tells where the label begins.

    >>> _outer_folder(["mail/2026/a", "mail/2026/b"]), _outer_folder(["mail", "mail/a"])
    ('mail/2026/', '')
    >>> _outer_folder(["mail/a"])
    ''
    """
    if len(folders) < 2:
        return ""
    path = commonpath([folder.rpartition("/")[0] for folder in folders])
    return f"{path}/" if path else ""


def _no_messages(root: str, skipped: Skipped) -> BadDataError:
    where = f" in the folder {root!r}; check the option root" if root else ""
    found = f"; it contains {found}" if (found := skipped.describe()) else ""
    return BadDataError(f"the zip contains no messages{where}{found}")


class _Labels:
    """Finds the labels of messages in their header or their folder."""

    def __init__(self, options: EmlZipOptions, limits: IngestLimits) -> None:
        self._ignore = frozenset(options.ignore)
        self._limits = limits
        header = options.label_header
        names = [header] if isinstance(header, str) else header
        self._header = self._header_labels(names, options) if names else None
        self._takeout = self._header_labels([GMAIL_LABELS], options)
        self._of_folder: dict[str, Callable[[bytes], list[str]]] = {}

    def _header_labels(self, names: Sequence[str], options: EmlZipOptions) -> HeaderLabels:
        return HeaderLabels(names, options.label_separator, options.ignore, self._limits)

    def in_header(self, member: MailMember, name: str) -> HeaderLabels | None:
        """Return the reader of the header if it contains the labels of a file."""
        is_takeout = member.kind is Kind.MAILBOX and name.startswith(f"{_TAKEOUT}/")
        return self._header or (self._takeout if is_takeout else None)

    def in_folder(self, folder: str) -> Callable[[bytes], list[str]]:
        """Return the function that returns the labels of the messages in a folder."""
        if folder not in self._of_folder:
            labels = [folder] if folder and folder not in self._ignore else []

            def of_message(_: bytes) -> list[str]:
                return [check_name(label, "a label", "", self._limits.name_length) for label in labels]

            self._of_folder[folder] = of_message
        return self._of_folder[folder]


def _open_member(archive: ZipArchive, member: MailMember, labels: _Labels, limits: IngestLimits) -> MailFile:
    index, name = member.index, archive.names[member.index]
    header = labels.in_header(member, name)
    of_message = labels.in_folder(member.folder) if header is None else header.of
    if member.kind is Kind.MAILBOX:
        return Mailbox(name, lambda: archive.open(index), of_message, limits)
    return _MessageFile(archive, member, of_message, limits)


class _MessageFile:
    """A file in a zip that contains one message."""

    __slots__ = ("_archive", "_index", "_key", "_kind", "_max_bytes", "labels")

    def __init__(
        self,
        archive: ZipArchive,
        member: MailMember,
        labels: Callable[[bytes], list[str]],
        limits: IngestLimits,
    ) -> None:
        self._archive = archive
        self._index = member.index
        self._kind = member.kind
        self._key: int | None = None
        self._max_bytes = limits.record_bytes
        self.labels = labels

    @property
    def position(self) -> int:
        """The position of the file in the zip."""
        return self._archive.position(self._index)

    def find_key(self) -> None:
        """Find the key of the message. Reads no more than its header fields if it has a Message-ID."""
        if self._kind is Kind.OUTLOOK:
            return
        size, crc = self._archive.signature(self._index)
        for n_bytes in _HEAD_SIZES:
            head = self._archive.read(self._index, n_bytes)
            if self._kind is Kind.EMLX:
                head = _without_count(head)
            headers = header_block(head)
            self._key = message_id_key(headers)
            if self._key is not None:
                return
            if len(headers) < len(head) or size <= n_bytes:
                break
        self._key = content_key(size, crc)

    def keys(self) -> Iterator[int | None]:
        """Yield the key of the message."""
        yield self._key

    def messages(self) -> Iterator[StoredMessage]:
        """Yield the message."""
        raw = self._archive.read(self._index, self._max_bytes + 1)
        if len(raw) > self._max_bytes:
            yield StoredMessage(1, b"", too_long(self._max_bytes))
            return
        if self._kind is Kind.OUTLOOK:
            yield StoredMessage(1, b"", _OUTLOOK_FORMAT)
            return
        if self._kind is Kind.EMLX:
            raw = _strip_emlx(raw)
        elif raw.startswith(b"From "):
            raw = raw.partition(b"\n")[2]
        yield StoredMessage(1, raw)

    def place(self, message: StoredMessage, position: int) -> tuple[int, str | None]:  # noqa: ARG002
        """Return the number of the message in the zip, and the name of the file."""
        return position + 1, self._archive.names[self._index]


def _without_count(raw: bytes) -> bytes:
    match = _EMLX_COUNT.match(raw)
    return raw[match.end() :] if match else raw


def _strip_emlx(raw: bytes) -> bytes:
    r"""Return the message in a file of Apple Mail: a line with its length, the message, and a property list.

    >>> _strip_emlx(b"14      \nSubject: x\n\nhi<?xml version='1.0'?><plist/>")
    b'Subject: x\n\nhi'
    """
    match = _EMLX_COUNT.match(raw)
    if match is None:
        return raw
    start, end = match.end(), match.end() + int(match[1])
    if end <= len(raw) and raw[end:].lstrip().startswith(_PLIST):
        return raw[start:end]
    plist = raw.rfind(_PLIST, start)
    return raw[start : plist if plist >= 0 else len(raw)]


def _declarations(
    folders: set[str], files: Sequence[MailFile], options: EmlZipOptions, outer: str
) -> Declarations:
    warnings: list[str] = []
    tops = {folder.partition("/")[0] for folder in folders}
    if outer:
        text = (
            f"the outer folder {outer} is not a part of the labels; if it is one, set the option root to ''"
        )
        warnings.append(Advice(text, Suggestion("options/root", "")))
    elif len(tops) == 1 and len(folders) > 1:
        (top,) = tops
        text = (
            f"every label begins with {top}; if {top} is only an outer folder, set the option root to {top}"
        )
        warnings.append(Advice(text, Suggestion("options/root", top)))
    odd = [file for file in files if isinstance(file, Mailbox) and any(file.oddities.warnings())]
    for file in odd[:_MAX_ODD_MAILBOXES]:
        warnings += file.oddities.warnings(f" in {quoted(file.name)}")
    if len(odd) > _MAX_ODD_MAILBOXES:
        warnings.append(f"other mailboxes with such lines: {len(odd) - _MAX_ODD_MAILBOXES:,}")
    parents: dict[str, str] = {}
    if options.tree:
        for folder in folders:
            parts = folder.split("/")
            parents |= {"/".join(parts[: d + 1]): "/".join(parts[:d]) for d in range(1, len(parts))}
    return Declarations(parents=parents, warnings=warnings)
