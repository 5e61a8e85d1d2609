"""Recognizes the files in a folder of mail by their names and first bytes: what each one is, and its label.

The layouts are: ``.eml`` files in folders, Maildir and Maildir++, MH, mailboxes in folders (Thunderbird nests
them in ``NAME.sbd``), exports of Apple Mail (``NAME.mbox/mbox`` and ``NAME.mbox/.../1.emlx``), and Outlook's
``.msg`` files in folders.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from models.data.record import quoted

HEAD_BYTES = 2**12
"""Bytes at the beginning of a file that show what it is."""

_MESSAGE_SUFFIXES = (".eml", ".msg", ".emlx")
_MAILBOX_SUFFIXES = (".mbox", ".mbx")
_OUTLOOK_STORES = (".pst", ".ost", ".dbx", ".olm", ".nsf")
_ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar", ".zst")
_INDEX_SUFFIXES = (".msf", ".cmeta", ".ev-summary", ".ev-summary-meta", ".ibex.index", ".plist")
_INDEX_FILES = re.compile(
    r"maildirfolder|maildirsize|table_of_contents|subscriptions|\.?mh_sequences|\.uidvalidity|\.subscriptions"
    r"|\.?dovecot.*|\.?courier.*|msgfilterrules\.dat|filterlog\.html|popstate\.dat|panacea\.dat"
)
_MAILDIR = frozenset({"cur", "new", "tmp"})
_MH_NAME = re.compile(r"\d+\.?")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FIELD = re.compile(rb"([!-9;-~]{1,100}+)[ \t]*:[^\n]*+(?:\n[ \t][^\n]*+)*+(?:\n|\Z)")
_ENVELOPE = re.compile(rb"\s*+(?:>?From [^\n]*+\n)?")
_MESSAGE_FIELD = re.compile(
    rb"from|to|cc|subject|date|sent|received|message-id|return-path|delivered-to|reply-to|mime-version"
    rb"|content-type|x-.*|path|newsgroups|dkim-signature|list-.*",
    re.IGNORECASE,
)
_OTHER = "files that are not messages"
_OUTLOOK_STORE = (
    "data files of Outlook or another mail program (.pst, .ost, .olm, .dbx, .nsf); export their folders as "
    ".eml files or mailboxes, for example with readpst or Thunderbird"
)
_MUTF7 = re.compile(r"&([A-Za-z0-9+,]*)-")


class Kind(Enum):
    """What a file contains."""

    MESSAGE = "a message"
    EMLX = "a message of Apple Mail"
    OUTLOOK = "a message of Outlook"
    MAILBOX = "a mailbox"


@dataclass(frozen=True)
class MailMember:
    """A file with mail.

    Attributes:
        index: its position in the list of names.
        kind: what it contains.
        folder: the folder or mailbox of its messages, with ``/`` between levels; empty at the top level.
    """

    index: int
    kind: Kind
    folder: str


class Skipped:
    """Counts the files that are not read, with an example for each reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, reason: str, name: str | None = None, count: int = 1) -> None:
        """Count files.

        Args:
            reason: what the files are, in the plural; after a semicolon, what to do.
            name: the name of one of them.
            count: their number.
        """
        if not count:
            return
        self._counts[reason] += count
        if name is not None:
            self._examples.setdefault(reason, name)

    def describe(self) -> str:
        """Return the counts of all reasons."""
        descriptions = []
        for reason, count in self._counts.items():
            what, _, hint = reason.partition("; ")
            example = f", such as {quoted(self._examples[reason])}" if reason in self._examples else ""
            descriptions.append(f"{what}: {count:,}{example}" + (f" ({hint})" if hint else ""))
        return "; ".join(descriptions)

    def warnings(self) -> Iterator[str]:
        """Yield a warning if a file was not read."""
        if total := self._counts.total():
            yield f"files in the zip that were not read: {total:,}; {self.describe()}"


def is_mail_store(names: Iterable[str]) -> bool:
    """Return whether the names of files show that they are mail in folders.

    A single mailbox is no store, because its labels are usually in its messages.

    >>> is_mail_store(["a/1.eml"]), is_mail_store(["a.mbox", "b.mbox"]), is_mail_store(["a/cur/1:2,S"])
    (True, True, True)
    >>> is_mail_store(["train.csv", "readme.txt"]), is_mail_store(["all.mbox"])
    (False, False)
    """
    n_mailboxes = n_numbers = n_files = 0
    for name in names:
        *folders, base = name.lower().split("/")
        n_files += 1
        n_mailboxes += base.endswith(_MAILBOX_SUFFIXES)
        n_numbers += _MH_NAME.fullmatch(base) is not None
        if base.endswith((*_MESSAGE_SUFFIXES, ".msf")) or (folders and folders[-1] == "cur"):
            return True
        if any(folder.endswith((".sbd", ".mbox")) for folder in folders):
            return True
        if n_mailboxes and folders and folders[0] == "takeout":
            return True
    return n_mailboxes > 1 or 2 * n_numbers > max(n_files, 1)


class MailFinder:
    """Recognizes the files with mail.

    Args:
        names: the names of all files, with ``/`` between folders.
        read_head: returns the first bytes of a file by its position.
        has_several: returns whether a mailbox has more than one message, by its position.
    """

    def __init__(
        self,
        names: Sequence[str],
        read_head: Callable[[int], bytes],
        has_several: Callable[[int], bool],
    ) -> None:
        self._names = names
        self._read_head = read_head
        self._has_several = has_several
        self._maildirs = {name.rpartition("/cur/")[0] for name in names if "/cur/" in f"/{name}"}
        self._index_names = {name.lower() for name in names if name.lower().endswith(".msf")}

    def find(self, skipped: Skipped) -> Iterator[MailMember]:
        """Yield the files that contain mail. Count all others."""
        for index, name in enumerate(self._names):
            found = self._recognize(index, name)
            if isinstance(found, str):
                skipped.add(found, name)
            else:
                yield MailMember(index, *found)

    def _recognize(self, index: int, name: str) -> tuple[Kind, str] | str:
        """Return the kind and folder of a file with mail, or what the file is."""
        *folders, base = name.split("/")
        lowered = base.lower()
        if folders and folders[-1] in _MAILDIR and (found := self._in_maildir(index, folders, lowered)):
            return found
        if lowered.endswith(".eml") and not name.startswith(".") and "/." not in name:
            return Kind.MESSAGE, "/".join(map(_plain_folder, folders))
        if _INDEX_FILES.fullmatch(lowered) or lowered.endswith(_INDEX_SUFFIXES):
            return "index files of mail programs"
        if base.startswith(".") or any(folder.startswith(".") for folder in folders):
            return "hidden files or files in hidden folders"
        return self._recognize_suffix(index, folders, base)

    def _in_maildir(self, index: int, folders: list[str], base: str) -> tuple[Kind, str] | str | None:
        """Recognize a file in a folder cur, new or tmp; None if the folder does not belong to a Maildir."""
        parent = "/".join(folders[:-1])
        if folders[-1] != "cur" and parent not in self._maildirs:
            is_message = not base.endswith(".eml") and _begins_like_message(self._read_head(index))
            if folders[-1] == "tmp" or not is_message:
                return None
        if base.startswith(".") or _INDEX_FILES.fullmatch(base):
            return "index files of mail programs"
        if folders[-1] == "tmp":
            return "unfinished deliveries in a folder tmp of a Maildir"
        return Kind.MESSAGE, _maildir_folder(folders[:-1])

    def _recognize_suffix(self, index: int, folders: list[str], base: str) -> tuple[Kind, str] | str:
        lowered = base.lower()
        folder = "/".join(map(_plain_folder, folders))
        if lowered.endswith(".emlx"):
            return Kind.EMLX, _apple_folder(folders)
        if lowered.endswith(_MAILBOX_SUFFIXES):
            return Kind.MAILBOX, _join(folder, base.rpartition(".")[0])
        if lowered == "mbox":
            return Kind.MAILBOX, folder
        if lowered.endswith(_OUTLOOK_STORES):
            return _OUTLOOK_STORE
        if lowered.endswith(_ARCHIVES):
            return "archives inside the zip; extract them first"
        start = self._read_head(index)
        if start.startswith(_OLE):
            return (Kind.OUTLOOK, folder) if lowered.endswith(".msg") else _OTHER
        if start.startswith(b"From ") and _begins_like_message(start):
            # A file with an envelope is a mailbox, or a single message such as "12" or "12.8d77e1b".
            is_indexed = f"{self._names[index]}.msf".lower() in self._index_names
            if any(map(str.isdigit, base)) and not is_indexed and not self._has_several(index):
                return Kind.MESSAGE, folder
            return Kind.MAILBOX, _join(folder, base)
        is_numbered = _MH_NAME.fullmatch(base) is not None
        if _begins_like_message(start, 1 if is_numbered else 2):
            return Kind.MESSAGE, folder
        return _OTHER if start else "empty files"


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _begins_like_message(head: bytes, n_fields: int = 1) -> bool:
    """Return whether a file begins with so many header fields that messages usually have."""
    position = 0
    if match := _ENVELOPE.match(head):
        position = match.end()
    found = 0
    while found < n_fields and (field := _FIELD.match(head, position)):
        found += _MESSAGE_FIELD.fullmatch(field[1]) is not None
        position = field.end()
    return found >= n_fields


def _plain_folder(name: str) -> str:
    """Return the name of a folder without the suffix of a mail program.

    >>> _plain_folder("Inbox.sbd"), _plain_folder("Billing.mbox"), _plain_folder("v1.2")
    ('Inbox', 'Billing', 'v1.2')
    """
    return name[: name.rindex(".")] if name.lower().endswith((".sbd", ".mbox")) else name


def _apple_folder(folders: list[str]) -> str:
    """Return the folder of a message of Apple Mail, which lies deep in the folder of its mailbox.

    >>> _apple_folder(["V10", "Work.mbox", "Billing.mbox", "4F-A1", "Data", "1", "Messages"])
    'V10/Work/Billing'
    """
    last = max(
        (d for d, name in enumerate(folders, 1) if name.lower().endswith(".mbox")), default=len(folders)
    )
    return "/".join(map(_plain_folder, folders[:last]))


def _maildir_folder(folders: list[str]) -> str:
    """Return the folder of a Maildir. Maildir++ writes subfolders as ``.A.B``, in modified UTF-7.

    >>> _maildir_folder(["mail", ".Billing.2026"]), _maildir_folder([".Entw&APw-rfe"]), _maildir_folder(["a"])
    ('mail/Billing/2026', 'Entwürfe', 'a')
    """
    parts: list[str] = []
    for name in folders:
        if name.startswith(".") and len(name) > 1:
            parts += [_decode_mutf7(part) for part in name.split(".") if part]
        else:
            parts.append(_plain_folder(name))
    return "/".join(parts)


def _decode_mutf7(name: str) -> str:
    """Decode modified UTF-7 (RFC 3501, section 5.1.3). A name that is not valid stays as it is.

    >>> _decode_mutf7("Entw&APw-rfe"), _decode_mutf7("Q&-A"), _decode_mutf7("R&D-x")
    ('Entwürfe', 'Q&A', 'R&D-x')
    """

    def decode(match: re.Match[str]) -> str:
        encoded = match[1].replace(",", "/")
        if not encoded:
            return "&"
        try:
            return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-16-be")
        except (binascii.Error, UnicodeDecodeError):
            return match[0]

    return _MUTF7.sub(decode, name) if name.isascii() else name
