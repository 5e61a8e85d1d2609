"""One mailbox on an IMAP server, over one connection.

Two methods of the library are not used, because they remove messages that a person has marked as deleted:
``flag`` and ``delete`` expunge the whole mailbox.
"""

from __future__ import annotations

import hashlib
import imaplib
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

from imap_tools import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted
from imap_tools.errors import (
    ImapToolsError,
    MailboxFolderStatusError,
    MailboxLoginError,
    UnexpectedCommandStatusError,
)
from imap_tools.utils import encode_folder

ROUTED: Final = "CoveyRouted"
"""Keyword of messages that were routed."""

TIMEOUT_SECONDS: Final = 60.0
"""How long to wait for a response of the server."""

Security: TypeAlias = Literal["tls", "starttls", "none"]
PORTS: Final[dict[Security, int]] = {"tls": 993, "starttls": 143, "none": 143}

_UID = re.compile(rb"\bUID (\d+)")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d+)")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_KEYWORDS_PER_COMMAND: Final = 100


class MailboxLostError(Exception):
    """The connection is lost or unusable. Connect again."""


class LoginRefusedError(Exception):
    """The server does not accept the user and the password."""


class RefusedError(Exception):
    """The server refuses a command. The connection is usable."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a mailbox is, and how to log in.

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
        content: the raw message; None if the server cannot read it.
        keywords: its flags and keywords.
    """

    content: bytes | None
    keywords: frozenset[str]

    @property
    def is_routed(self) -> bool:
        """Whether the message was routed before."""
        return ROUTED.lower() in {keyword.lower() for keyword in self.keywords}


@dataclass(frozen=True, slots=True)
class FolderPosition:
    """A position in a folder: messages that arrive from now on have at least this UID.

    Attributes:
        folder: name of the folder.
        uid_validity: the numbering of the folder.
        uid_next: the next UID.
    """

    folder: str
    uid_validity: int
    uid_next: int


class Mailbox:
    """A selected mailbox.

    Args:
        server: where it is.
        name: its name; ``/`` separates levels.

    Attributes:
        uid_validity: the numbering of the messages; UIDs of another numbering mean nothing.
        uid_next: the UID of the next message, when the mailbox was selected.
        keeps_keywords: whether the server stores any keyword.
        can_idle: whether the server reports new messages.

    Raises:
        MailboxLostError: the server is not available.
        LoginRefusedError: the server does not accept the user.
        RefusedError: there is no such mailbox.
    """

    def __init__(self, server: Server, name: str) -> None:
        try:
            with _library_errors():
                self._box = _connect(server)
        except MailboxLostError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise RefusedError(
                    f"the certificate of {server.host} is not valid: {error.__cause__.verify_message}"
                ) from error
            raise
        try:
            with _library_errors():
                self._log_in(server)
                self._delimiter = self._find_delimiter()
                self._name = self.folder_name(name)
                self._select(self._name)
        except BaseException:
            self.close()
            raise

    def _log_in(self, server: Server) -> None:
        try:
            if server.user.isascii() and server.password.isascii():
                self._box.login(server.user, server.password, initial_folder=None)
            else:
                self._box.login_utf8(server.user, server.password, initial_folder=None)
        except (MailboxLoginError, imaplib.IMAP4.error) as error:
            if isinstance(error, imaplib.IMAP4.abort) or "UNAVAILABLE" in str(error).upper():
                raise
            raise LoginRefusedError(f"the mail server does not accept {server.user}: {error}") from error
        # Servers announce most of what they can only after the login.
        capabilities = self._box.client.capability()[1][0].decode("ascii", "replace").upper().split()
        self.can_idle = "IDLE" in capabilities
        self._can_move = "MOVE" in capabilities
        self._can_expunge_one = "UIDPLUS" in capabilities

    def _find_delimiter(self) -> str:
        folders = self._box.folder.list("", "INBOX")
        return folders[0].delim if folders and folders[0].delim != "NIL" else ""

    def _select(self, name: str, *, readonly: bool = False) -> None:
        self._box.folder.set(name, readonly)
        responses: dict[str, list[Any]] = self._box.client.untagged_responses
        self.uid_validity = int(responses["UIDVALIDITY"][-1])
        self.uid_next = int(responses["UIDNEXT"][-1])
        self.keeps_keywords = any(b"\\*" in flags for flags in responses.get("PERMANENTFLAGS", ()))

    def folder_name(self, path: str) -> str:
        """Return the server's name of a folder, given a path with ``/`` between its levels."""
        return path.replace("/", self._delimiter) if self._delimiter else path

    def path_part(self, label: str) -> str:
        """Return a label as one level of a path: without what separates levels, and without wildcards."""
        unsafe = {"/", self._delimiter, "%", "*"} - {""}
        part = "".join("_" if char in unsafe or not char.isprintable() else char for char in label).strip()
        return part or "_"

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

    def exists(self, uid: int) -> bool:
        """Return whether a message is in the mailbox."""
        return uid in self._search(f"UID {uid}")

    def fetch(self, uid: int) -> StoredMessage | None:
        """Return a message, or None if it is not in the mailbox any more. It stays unread.

        Raises:
            MailboxLostError: the connection is lost.
        """
        try:
            parts = self._fetch(uid, "UID FLAGS BODY.PEEK[]")
        except RefusedError:
            return StoredMessage(None, frozenset()) if self.exists(uid) else None
        for head, content in parts:
            number = _UID.search(head)
            if number is not None and int(number[1]) == uid:
                flags = frozenset(flag.decode("ascii", "replace") for flag in imaplib.ParseFlags(head))
                return StoredMessage(content, flags)
        return None

    def add_keywords(self, uid: int, keywords: Sequence[str]) -> None:
        """Add keywords to a message. The server ignores a message that does not exist."""
        for first in range(0, len(keywords), _KEYWORDS_PER_COMMAND):
            some = keywords[first : first + _KEYWORDS_PER_COMMAND]
            self._uid_command("STORE", str(uid), "+FLAGS.SILENT", f"({' '.join(some)})")

    def copy(self, uid: int, folder: str) -> None:
        """Copy a message to a folder."""
        self._uid_command("COPY", str(uid), encode_folder(folder))

    def move(self, uid: int, folder: str) -> None:
        """Move a message to a folder, in one step if the server can."""
        if self._can_move:
            self._uid_command("MOVE", str(uid), encode_folder(folder))
        else:
            self.copy(uid, folder)
            self.remove(uid)

    @property
    def moves_in_one_step(self) -> bool:
        """Whether a message that is moved is never in both folders, and never in none."""
        return self._can_move

    def remove(self, uid: int) -> None:
        """Remove a message. If the server cannot remove a single message, it is only marked as deleted."""
        self._uid_command("STORE", str(uid), "+FLAGS.SILENT", r"(\Deleted)")
        if self._can_expunge_one:
            self._uid_command("EXPUNGE", str(uid))

    def position(self, folder: str, *, create: bool) -> FolderPosition:
        """Return the position at the end of a folder.

        Args:
            folder: name of the folder.
            create: whether to create the folder if it does not exist.

        Raises:
            RefusedError: the folder does not exist.
        """
        with _library_errors():
            try:
                status = self._status(folder)
            except MailboxFolderStatusError as error:
                if not create:
                    raise RefusedError(f"there is no folder {folder}; create it, or use --create") from error
                with suppress(UnexpectedCommandStatusError):  # somebody else has just created it
                    self._box.folder.create(folder)
                    self._box.folder.subscribe(folder, True)
                status = self._status(folder)
        return FolderPosition(folder, status["UIDVALIDITY"], status["UIDNEXT"])

    def _status(self, folder: str) -> dict[str, int]:
        return self._box.folder.status(folder, ["UIDVALIDITY", "UIDNEXT"])

    def is_copied(self, position: FolderPosition, size: int, digest: str) -> bool:
        """Return whether a message has arrived in a folder after a position."""
        with _library_errors():
            self._select(position.folder, readonly=True)
            first = position.uid_next if self.uid_validity == position.uid_validity else 1
        found = self.find(size, digest, first)
        with _library_errors():
            self._select(self._name)
        return found is not None

    def find(self, size: int, digest: str, first_uid: int = 1) -> int | None:
        """Return the UID of the message with a content; None if there is none.

        Args:
            size: number of bytes of the message.
            digest: SHA-256 of the message, see ``content_digest``.
            first_uid: the first UID to look at.
        """
        for uid in self.uids_after(first_uid - 1):
            for head, _ in self._fetch(uid, "UID RFC822.SIZE"):
                found = _SIZE.search(head)
                if found is not None and int(found[1]) == size:
                    message = self.fetch(uid)
                    if message and message.content is not None and content_digest(message.content) == digest:
                        return uid
        return None

    def wait(self, seconds: float) -> None:
        """Return when something happens in the mailbox, or after some seconds. The server must have IDLE."""
        with _library_errors():
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

    def keep_alive(self) -> None:
        """Let the server report changes, and keep the connection."""
        with _library_errors():
            self._box.client.noop()

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


def content_digest(content: bytes) -> str:
    """Return the digest of a message, as ``Mailbox.find`` compares it."""
    return hashlib.sha256(content).hexdigest()


def _connect(server: Server) -> BaseMailBox:
    if server.security == "none":
        return MailBoxUnencrypted(server.host, server.port, TIMEOUT_SECONDS)
    context = ssl.create_default_context(cafile=server.ca_file)
    if server.security == "starttls":
        return MailBoxStartTls(server.host, server.port, TIMEOUT_SECONDS, context)
    return MailBox(server.host, server.port, TIMEOUT_SECONDS, ssl_context=context)


@contextmanager
def _library_errors() -> Iterator[None]:
    """Convert the errors of the libraries."""
    try:
        yield
    except UnexpectedCommandStatusError as error:
        raise RefusedError(str(error)) from error
    except (imaplib.IMAP4.error, ImapToolsError, OSError, EOFError) as error:
        _lost(error)
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        # The libraries read responses without checking their form.
        _lost(error)


def _lost(error: Exception) -> NoReturn:
    raise MailboxLostError(f"{type(error).__name__}: {error}") from error
