"""What ``covey imap`` remembers about a mailbox, in a file that is replaced as a whole.

Messages up to ``last_uid`` are handled, except those in ``unfinished``. What will be done with a message is
written before it is done. So a process that is killed at any point neither misses a message nor handles one
twice.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

from app.inbound.imap_mailbox import FolderPosition


class StateError(Exception):
    """The state file cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with a message that was routed.

    Attributes:
        decision_id: id of the decision; None if the message could not be read.
        keywords: keywords that the message gets.
        targets: the folders that get the message, with their ends before.
        leaves: whether the message leaves the mailbox.
        size: number of bytes of the message.
        digest: SHA-256 of the message.
    """

    decision_id: str | None
    keywords: tuple[str, ...]
    targets: tuple[FolderPosition, ...]
    leaves: bool
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class State:
    """The state of a mailbox.

    Attributes:
        account: the mailbox.
        started_at: earlier messages are none of our business; None: all are.
        uid_validity: the numbering of the messages.
        last_uid: the last message that was looked at.
        unfinished: messages that are not handled yet; with a plan if they were routed.
    """

    account: str
    started_at: datetime | None
    uid_validity: int
    last_uid: int
    unfinished: dict[int, Plan | None] = field(default_factory=dict)

    def with_unfinished(self, uid: int, plan: Plan | None) -> State:
        """Return the state after a message was looked at."""
        return replace(self, last_uid=max(self.last_uid, uid), unfinished={**self.unfinished, uid: plan})

    def with_finished(self, uid: int) -> State:
        """Return the state after a message was handled."""
        unfinished = {other: plan for other, plan in self.unfinished.items() if other != uid}
        return replace(self, last_uid=max(self.last_uid, uid), unfinished=unfinished)


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
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise StateError(f"{self._path} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Let other processes use the file."""
        self._lock.close()
