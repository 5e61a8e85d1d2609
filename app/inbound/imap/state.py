"""The state that ``covey imap`` keeps of a mailbox, in a file that is replaced as a whole.

Messages up to ``last_uid`` are handled, except those in ``unfinished``. A message is in ``unfinished`` before
anything is done with it, so a process that starts again knows for which messages it must find out what was
done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Final, Self

from pydantic import TypeAdapter, ValidationError

from models.serialization.fsync import fsync_folder


class StateError(Exception):
    """The state file cannot be used; the message says why."""


FINGERPRINT_BYTES: Final = 1024 * 1024
"""How much of a message its fingerprint covers. The header fields alone tell messages apart."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The identity of a message in any folder, and under any UID.

    Attributes:
        size: number of bytes of the message, as the mail server states it.
        digest: SHA-256 of its first ``FINGERPRINT_BYTES``.
    """

    size: int
    digest: str

    @classmethod
    def compute(cls, content: bytes, size: int) -> Self:
        """Return the fingerprint of a raw message.

        Args:
            content: the message, or its beginning.
            size: number of bytes of the whole message.
        """
        return cls(size, hashlib.sha256(memoryview(content)[:FINGERPRINT_BYTES]).hexdigest())


@dataclass(slots=True)
class State:
    """The state of a mailbox.

    Attributes:
        account: the mailbox.
        started_at: messages that arrived earlier are not routed; None: all are.
        uid_validity: the numbering of the messages.
        last_uid: the last message that was looked at.
        unfinished: messages that are not handled yet; with a fingerprint if something may be done already.
    """

    account: str
    started_at: datetime | None
    uid_validity: int
    last_uid: int
    unfinished: dict[int, Fingerprint | None] = field(default_factory=dict)

    def record(self, uid: int, fingerprint: Fingerprint | None) -> None:
        """Record a message that is unfinished."""
        self.last_uid = max(self.last_uid, uid)
        self.unfinished[uid] = fingerprint

    def finish(self, uid: int) -> None:
        """Record that a message was handled."""
        self.last_uid = max(self.last_uid, uid)
        self.unfinished.pop(uid, None)


_STATE = TypeAdapter(State)


class StateFile:
    """A file with the state of one mailbox. One process can use it at a time.

    Args:
        path: the file.
        account: the mailbox.

    Raises:
        StateError: another process uses the file, or it cannot be used.
    """

    def __init__(self, path: Path, account: str) -> None:
        self._path = path
        self._account = account
        try:
            # The lock is on a file of its own, because the state file is replaced.
            self._lock: IO[bytes] = path.with_name(path.name + ".lock").open("wb")
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise StateError(f"another process uses {path}") from error

    def read(self) -> State | None:
        """Return the state; None at the first start.

        Raises:
            StateError: the file cannot be read, or belongs to another mailbox.
        """
        try:
            state = _STATE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self._path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise StateError(f"{self._path} is no state file of covey imap") from error
        if state.account != self._account:
            raise StateError(f"{self._path} belongs to {state.account}; use one file for each mailbox")
        return state

    def write(self, state: State) -> None:
        """Replace the file, so that it survives a crash of the machine.

        Raises:
            StateError: the file cannot be written.
        """
        temporary = self._path.with_name(self._path.name + ".new")
        try:
            with temporary.open("wb") as file:
                file.write(_STATE.dump_json(state))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            fsync_folder(self._path.parent)
        except OSError as error:
            raise StateError(f"{self._path} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Let other processes use the file."""
        self._lock.close()
