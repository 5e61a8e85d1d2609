"""One mailbox on an IMAP server, over one connection.

Two methods of the library are not used, because they remove messages that a person has marked as deleted:
``flag`` and ``delete`` expunge the whole mailbox.
"""

from __future__ import annotations

import imaplib
import re
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from imap_tools import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted
from imap_tools.errors import (
    ImapToolsError,
    MailboxFolderCreateError,
    MailboxFolderStatusError,
    UnexpectedCommandStatusError,
)
from imap_tools.utils import encode_folder

from app.inbound.imap.namespaces import Namespaces, read_namespaces
from app.inbound.imap.state import FINGERPRINT_BYTES, Fingerprint

ROUTED: Final = "CoveyRouted"
"""Keyword of messages that were routed."""

TIMEOUT_SECONDS: Final = 60.0
"""How long to wait for a response of the server."""

MAX_MESSAGE_BYTES: Final = 25 * 1024 * 1024
"""How much of a message is fetched if nothing else is set."""

Security: TypeAlias = Literal["tls", "starttls", "none"]
PORTS: Final[dict[Security, int]] = {"tls": 993, "starttls": 143, "none": 143}

_UID: Final = re.compile(rb"\bUID (\d+)")
_SIZE: Final = re.compile(rb"\bRFC822\.SIZE (\d+)")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_KEYWORDS_PER_COMMAND: Final = 100


class MailboxLostError(Exception):
    """The connection is lost or unusable. Connect again."""


class RefusedError(Exception):
    """The server refuses the login or a command."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server of a mailbox, and how to log in.

    Attributes:
        host: name or address of the server.
        port: its port.
        security: TLS from the first byte, after STARTTLS, or never.
        user: name of the user.
        password: password of the user.
        ca_file: certificates (PEM) that may sign that of the server; None for those of the system.
    """

    host: str
    port: int
    security: Security
    user: str
    password: str
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in a mailbox.

    Attributes:
        content: the raw message, or its beginning; None if the server cannot read it.
        size: number of bytes of the whole message, as the server states it.
        is_routed: whether it has the keyword of messages that were routed.
    """

    content: bytes | None
    size: int = 0
    is_routed: bool = False

    @property
    def fingerprint(self) -> Fingerprint | None:
        """The identity of the message; None if the server cannot read it."""
        return Fingerprint.compute(self.content, self.size) if self.content else None


class Mailbox:
    """A selected mailbox.

    Args:
        server: where it is.
        name: its name; ``/`` separates levels.
        max_message_bytes: how much of a message is used. One more byte is fetched, so that the service sees
            that a message is longer.

    Attributes:
        uid_validity: the numbering of the messages; UIDs of another numbering mean nothing.
        uid_next: the UID of the next message, when the mailbox was selected.
        keeps_keywords: whether the server stores any keyword.
        can_idle: whether the server reports new messages.
        can_move: whether a message moves in one step, so that it is never in both folders, and never in none.

    Raises:
        MailboxLostError: the server is not available.
        RefusedError: the server does not accept the user, or there is no such mailbox.
    """

    def __init__(self, server: Server, name: str, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_bytes = max_message_bytes + 1
        with _library_errors():
            try:
                self._box = _connect(server)
            except ssl.SSLCertVerificationError as error:
                raise RefusedError(
                    f"the certificate of {server.host} is not valid: {error.verify_message}"
                ) from error
        try:
            with _library_errors():
                self._log_in(server)
                self._namespaces = self._read_namespaces()
                self._name = self.folder_name(name)
                self._box.folder.set(self._name)
                responses: dict[str, list[Any]] = self._box.client.untagged_responses
                self.uid_validity = int(responses["UIDVALIDITY"][-1])
                self.uid_next = int(responses["UIDNEXT"][-1])
                self.keeps_keywords = any(b"\\*" in flags for flags in responses.get("PERMANENTFLAGS", ()))
        except BaseException:
            self.close()
            raise

    def _log_in(self, server: Server) -> None:
        try:
            if server.user.isascii() and server.password.isascii():
                self._box.login(server.user, server.password, initial_folder=None)
            else:
                self._box.login_utf8(server.user, server.password, initial_folder=None)
        except (UnexpectedCommandStatusError, imaplib.IMAP4.error) as error:
            if isinstance(error, imaplib.IMAP4.abort) or "UNAVAILABLE" in str(error).upper():
                raise MailboxLostError(str(error)) from error
            raise RefusedError(f"the mail server does not accept {server.user}: {error}") from error
        # Servers announce most of what they can only after the login.
        capabilities = self._box.client.capability()[1][0].decode("ascii", "replace").upper().split()
        self.can_idle = "IDLE" in capabilities
        self.can_move = "MOVE" in capabilities
        self._can_expunge_one = "UIDPLUS" in capabilities
        self._has_namespaces = "NAMESPACE" in capabilities

    def _read_namespaces(self) -> Namespaces:
        if self._has_namespaces:
            namespaces = read_namespaces(self._box.client.namespace()[1])
            if namespaces is not None:
                return namespaces
        folders = self._box.folder.list("", "INBOX")
        return Namespaces("", folders[0].delim if folders and folders[0].delim != "NIL" else "")

    def folder_name(self, path: str) -> str:
        """Return the server's name of a folder, given a path with ``/`` between its levels."""
        return self._namespaces.folder_name(path)

    def path_part(self, label: str) -> str:
        """Return a label as one level of a path: without what separates levels, and without wildcards."""
        unsafe = {"/", "%", "*"} | self._namespaces.delimiters
        part = "".join("_" if char in unsafe or not char.isprintable() else char for char in label).strip()
        return part or "_"

    def ensure_folder(self, folder: str, *, create: bool) -> None:
        """Check that a folder exists, or create it.

        Raises:
            RefusedError: the folder does not exist.
        """
        with _library_errors():
            try:
                self._box.folder.status(folder, ["UIDNEXT"])
            except MailboxFolderStatusError as error:
                if not create:
                    raise RefusedError(f"there is no folder {folder}; create it, or use --create") from error
                try:
                    self._box.folder.create(folder)
                except MailboxFolderCreateError as error:
                    raise RefusedError(f"the folder {folder} cannot be created: {_reason(error)}") from error
                self._box.folder.subscribe(folder, True)

    def uids_after(self, uid: int) -> list[int]:
        """Return the UIDs of the messages after another one, in ascending order."""
        # The range contains the last message in any case.
        return [found for found in self._search(f"UID {uid + 1}:*") if found > uid]

    def unrouted_since(self, moment: datetime | None) -> list[int]:
        """Return the UIDs of messages without the keyword ``ROUTED``, if they arrived after a moment."""
        criteria = f"UNKEYWORD {ROUTED}"
        if moment is None:
            return self._search(criteria)
        # The server compares days in its own time zone.
        day = moment.astimezone(UTC) - timedelta(days=1)
        found = self._search(f"{criteria} SINCE {day.day:02}-{_MONTHS[day.month - 1]}-{day.year}")
        return [uid for uid in found if self._arrived_at(uid) >= moment.timestamp()]

    def fetch(self, uid: int) -> StoredMessage | None:
        """Return a message, or None if it is not in the mailbox any more. It stays unread.

        Raises:
            MailboxLostError: the connection is lost.
        """
        return self._fetch_beginning(uid, self._max_bytes)

    def _fetch_beginning(self, uid: int, n_bytes: int) -> StoredMessage | None:
        try:
            parts = self._fetch(uid, f"UID FLAGS RFC822.SIZE BODY.PEEK[]<0.{n_bytes}>")
        except RefusedError:
            return StoredMessage(None) if self._search(f"UID {uid}") else None
        for head, content in parts:
            number = _UID.search(head)
            if number is not None and int(number[1]) == uid:
                flags = (flag.decode("ascii", "replace").lower() for flag in imaplib.ParseFlags(head))
                size = _SIZE.search(head)
                stated = len(content or b"") if size is None else int(size[1])
                return StoredMessage(content, stated, ROUTED.lower() in flags)
        return None

    def find(self, fingerprint: Fingerprint) -> int | None:
        """Return the UID of the message with a fingerprint in the selected folder; None if there is none."""
        size = fingerprint.size
        for uid in self._search(f"LARGER {size - 1} SMALLER {size + 1}"):
            message = self._fetch_beginning(uid, min(FINGERPRINT_BYTES, self._max_bytes))
            if message is not None and message.fingerprint == fingerprint:
                return uid
        return None

    def has_copy(self, folder: str, fingerprint: Fingerprint) -> bool:
        """Return whether the message with a fingerprint is in another folder."""
        with _library_errors():
            self._box.folder.set(folder, readonly=True)
        found = self.find(fingerprint)
        with _library_errors():
            self._box.folder.set(self._name)
        return found is not None

    def add_keywords(self, uid: int, keywords: Sequence[str]) -> None:
        """Add keywords to a message. The server ignores a message that does not exist."""
        for first in range(0, len(keywords), _KEYWORDS_PER_COMMAND):
            some = keywords[first : first + _KEYWORDS_PER_COMMAND]
            self._uid_command("STORE", str(uid), "+FLAGS.SILENT", f"({' '.join(some)})")

    def copy(self, uid: int, folder: str) -> None:
        """Copy a message to a folder."""
        self._uid_command("COPY", str(uid), encode_folder(folder))

    def move(self, uid: int, folder: str) -> None:
        """Move a message to a folder. The server must have MOVE."""
        self._uid_command("MOVE", str(uid), encode_folder(folder))

    def remove(self, uid: int) -> None:
        """Remove a message. If the server cannot remove a single message, it is only marked as deleted."""
        self._uid_command("STORE", str(uid), "+FLAGS.SILENT", r"(\Deleted)")
        if self._can_expunge_one:
            self._uid_command("EXPUNGE", str(uid))

    def wait(self, seconds: float) -> None:
        """Return after some seconds, or when something happens in the mailbox if the server reports it."""
        with _library_errors():
            if not self.can_idle:
                time.sleep(seconds)
                self._box.client.noop()  # lets the server report changes
                return
            idle = self._box.idle
            idle.start()  # type: ignore[no-untyped-call]
            if not self._has_received():
                idle.poll(seconds)
            idle.stop()  # type: ignore[no-untyped-call]

    def _has_received(self) -> bool:
        """Return whether something is read from the socket already, so that the socket reports nothing."""
        sock, file = self._box.client.sock, cast("BufferedReader", self._box.client.file)
        timeout = sock.gettimeout()
        sock.settimeout(0)
        try:
            return bool(file.peek(1))
        except OSError:  # there is nothing to read
            return False
        finally:
            sock.settimeout(timeout)

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._box.client.shutdown()

    def _search(self, criteria: str) -> list[int]:
        with _library_errors():
            return sorted(map(int, self._box.uids(criteria, charset=None)))

    def _arrived_at(self, uid: int) -> float:
        for head, _ in self._fetch(uid, "UID INTERNALDATE"):
            moment = imaplib.Internaldate2tuple(head)
            if moment is not None:
                return datetime(*moment[:6]).astimezone().timestamp()
        return float("inf")  # unknown: better twice than never

    def _fetch(self, uid: int, attributes: str) -> list[tuple[bytes, bytes | None]]:
        """Return pairs of attributes and a literal, one for each response of the server."""
        responses: list[tuple[bytes, bytes | None]] = []
        for part in self._uid_command("FETCH", str(uid), f"({attributes})"):
            if isinstance(part, tuple):
                responses.append((part[0], part[1]))
            elif isinstance(part, bytes) and responses and part.rstrip().endswith(b")") and part[:1] in b" )":
                head, content = responses.pop()  # the rest of the response, after the literal
                responses.append((head + part, content))
            elif isinstance(part, bytes):
                responses.append((part, None))
        return responses

    def _uid_command(self, command: str, *arguments: Any) -> list[Any]:
        with _library_errors():
            status, answer = self._box.client.uid(command, *arguments)
        if status != "OK":
            raise RefusedError(f"the mail server refuses {command}: {answer}")
        return answer


def _connect(server: Server) -> BaseMailBox:
    if server.security == "none":
        return MailBoxUnencrypted(server.host, server.port, TIMEOUT_SECONDS)
    context = ssl.create_default_context(cafile=server.ca_file)
    if server.security == "starttls":
        return MailBoxStartTls(server.host, server.port, TIMEOUT_SECONDS, context)
    return MailBox(server.host, server.port, TIMEOUT_SECONDS, ssl_context=context)


def _reason(error: UnexpectedCommandStatusError) -> str:
    """Return the text of the server's response to a command."""
    text: object = error.command_result[1][-1]
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


@contextmanager
def _library_errors() -> Iterator[None]:
    """Convert the errors of the libraries, which also read responses without checking their form."""
    try:
        yield
    except UnexpectedCommandStatusError as error:
        raise RefusedError(f"the mail server refuses a command: {_reason(error)}") from error
    except (
        *(imaplib.IMAP4.error, ImapToolsError, OSError, EOFError),
        *(KeyError, ValueError, IndexError, TypeError, AttributeError),
    ) as error:
        raise MailboxLostError(f"{type(error).__name__}: {error}") from error
