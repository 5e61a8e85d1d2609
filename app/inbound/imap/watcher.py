"""``covey imap``: watches a mailbox, routes its new messages, and moves, copies or flags them.

A message is recorded in the state file, gets its keywords, is copied to all folders but the last, and moves
to the last one. Each of these steps can be repeated: the service returns its first decision about a message,
keywords can be set again, and MOVE is one step of the server. Only a copy could be made twice. So for a
message that was recorded before, a folder is first searched for a copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final

import structlog

from app.inbound.imap.mailbox import (
    MAX_MESSAGE_BYTES,
    ROUTED,
    Mailbox,
    MailboxLostError,
    RefusedError,
    Server,
    StoredMessage,
)
from app.inbound.imap.rules import Rules
from app.inbound.imap.state import Fingerprint, State, StateFile
from app.inbound.imap.stopping import end_on_signal
from app.inbound.monitor import Monitor
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import NotRoutedError, RouterClient

log = structlog.get_logger()

MAX_FAILURES: Final = 3
"""After so many failures one after the other, the rest of the messages wait too."""

MAX_LOSSES: Final = 3
"""A message is unreadable if the connection was lost so often while it was fetched."""

REPEATED_BYTES_PER_SECOND: Final = 64 * 1024
"""How much of one message is fetched in a second, on average, if attempts to handle it fail."""

CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""Maximum difference between the clocks of this machine and the mail server."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watcher.

    Attributes:
        rules: what is done with a message.
        create: whether to create folders that do not exist.
        existing: whether to route the messages that are in the mailbox at the first start.
        poll_seconds: how often to look for messages if the server does not report them.
        idle_seconds: how often to look for messages if the server reports them.
        min_delay: time in seconds between the first two attempts after a failure; it doubles each time.
        max_delay: maximum time in seconds between two attempts after a failure.
        monitor: counts the messages.
    """

    rules: Rules
    create: bool = False
    existing: bool = False
    poll_seconds: float = 60.0
    idle_seconds: float = 300.0
    min_delay: float = 1.0
    max_delay: float = 60.0
    monitor: Monitor = field(default_factory=Monitor)


class Watcher:
    """Handle the messages of one mailbox.

    Args:
        connect: opens the mailbox.
        account: names the mailbox in the state file.
        router: routes the messages.
        state_file: remembers what was done.
        options: what to do.
        on_ready: called when the mailbox is open for the first time.
    """

    def __init__(
        self,
        connect: Callable[[], Mailbox],
        account: str,
        router: RouterClient,
        state_file: StateFile,
        options: WatchOptions,
        on_ready: Callable[[], None],
    ) -> None:
        self._connect = connect
        self._account = account
        self._router = router
        self._file = state_file
        self._options = options
        self._on_ready = on_ready
        self._was_ready = False
        self._delay = options.min_delay
        self._losses: dict[int, int] = {}
        self._retry_at: dict[int, float] = {}
        self._state: State

    def run(self) -> None:
        """Watch the mailbox until the process is stopped.

        Raises:
            RefusedError: at the start, the server refuses the user, the mailbox or a folder.
            StateError: the state file cannot be used.
        """
        while True:
            try:
                with closing(self._connect()) as mailbox:
                    self._watch(mailbox)
            except (MailboxLostError, RefusedError) as error:
                if isinstance(error, RefusedError) and not self._was_ready:
                    raise
                self._options.monitor.fail("mailbox", error)
                log.warning("imap.unavailable", reason=str(error), retry_seconds=self._delay)
                time.sleep(self._next_delay())

    def _next_delay(self) -> float:
        delay = self._delay
        self._delay = min(2 * delay, self._options.max_delay)
        return delay

    def _watch(self, mailbox: Mailbox) -> None:
        self._begin(mailbox)
        while True:
            handled, failed = self._round(mailbox)
            if failed:
                log.warning(
                    "imap.messages_wait", count=len(self._state.unfinished), retry_seconds=self._delay
                )
                mailbox.wait(self._next_delay())
            else:
                self._delay = self._options.min_delay
                # A command of a round can consume the report of a new message, so another search is due.
                if not handled:
                    seconds = self._options.idle_seconds if mailbox.can_idle else self._options.poll_seconds
                    mailbox.wait(seconds)

    def _begin(self, mailbox: Mailbox) -> None:
        """Read the state, and adapt it to the mailbox."""
        rules = self._options.rules
        if rules.action == "flag" and not mailbox.keeps_keywords:
            raise RefusedError("this mailbox does not keep keywords; use --action move or copy")
        if not self._was_ready:
            for path in rules.named_folders():
                mailbox.ensure_folder(mailbox.folder_name(path), create=self._options.create)
        state = self._file.read()
        if state is None:
            existing = self._options.existing
            started_at = None if existing else datetime.now(UTC) - CLOCK_DIFFERENCE
            last_uid = 0 if existing else mailbox.uid_next - 1
            state = State(self._account, started_at, mailbox.uid_validity, last_uid)
            self._file.write(state)
        elif state.uid_validity != mailbox.uid_validity:
            state = self._renumbered(mailbox, state)
            self._file.write(state)
        self._state = state
        if not self._was_ready:
            self._was_ready = True
            self._on_ready()
        self._options.monitor.recover("mailbox")
        log.info("imap.connected", idle=mailbox.can_idle, unfinished=len(state.unfinished))

    def _renumbered(self, mailbox: Mailbox, old: State) -> State:
        """Return the state after the server has numbered its messages anew.

        Messages that were handled have the keyword, or have left the mailbox. Those that were begun can have
        the keyword too, so they are recognized by their content.
        """
        unfinished: dict[int, Fingerprint | None] = dict.fromkeys(mailbox.unrouted_since(old.started_at))
        for fingerprint in old.unfinished.values():
            uid = mailbox.find(fingerprint) if fingerprint is not None else None
            if uid is not None:
                unfinished[uid] = fingerprint
        log.warning(
            "imap.uidvalidity_changed",
            before=old.uid_validity,
            now=mailbox.uid_validity,
            unfinished=len(unfinished),
        )
        self._losses.clear()
        self._retry_at.clear()
        return replace(
            old,
            uid_validity=mailbox.uid_validity,
            last_uid=max([mailbox.uid_next - 1, *unfinished]),
            unfinished=unfinished,
        )

    def _round(self, mailbox: Mailbox) -> tuple[bool, bool]:
        """Handle new messages, then those that wait.

        Returns:
            whether a message was handled, and whether a message could not be handled, or waits longer.
        """
        now = time.monotonic()
        unfinished = sorted(self._state.unfinished)
        waiting = [uid for uid in unfinished if self._retry_at.get(uid, 0.0) <= now]
        new = mailbox.uids_after(self._state.last_uid)
        handled = failures = in_a_row = 0
        for uid in [*new, *waiting]:
            if in_a_row == MAX_FAILURES:
                break
            began = time.monotonic()
            try:
                self._handle(mailbox, uid)
                self._options.monitor.count("handled", time.monotonic() - began)
                handled += 1
                in_a_row = 0
            except (NotRoutedError, RefusedError) as error:
                outcome = "not_routed" if isinstance(error, NotRoutedError) else "not_delivered"
                self._options.monitor.count(outcome, time.monotonic() - began)
                self._options.monitor.fail("messages", error)
                failures += 1
                in_a_row += 1
                log.warning("imap.not_handled", uid=uid, reason=str(error))
                if uid not in self._state.unfinished:
                    self._state.record(uid, None)
                    self._file.write(self._state)
        if handled:
            self._file.write(self._state)
        is_complete = not failures and len(waiting) == len(unfinished)
        if is_complete:
            self._options.monitor.recover("messages")
        return handled > 0, not is_complete

    def _handle(self, mailbox: Mailbox, uid: int) -> None:
        """Handle one message.

        Raises:
            NotRoutedError: the service is not available.
            RefusedError: the mail server refuses what should be done.
            MailboxLostError: the connection is lost.
        """
        message = self._fetch(mailbox, uid)
        # A person has moved a message back if it has the keyword, and is not unfinished.
        if message is not None and (uid in self._state.unfinished or not message.is_routed):
            try:
                self._route(mailbox, uid, message)
            except (NotRoutedError, RefusedError):
                seconds = len(message.content or b"") / REPEATED_BYTES_PER_SECOND
                self._retry_at[uid] = time.monotonic() + seconds
                raise
        # It is enough to write this with the next message: what was done is recognized.
        self._state.finish(uid)
        self._retry_at.pop(uid, None)

    def _fetch(self, mailbox: Mailbox, uid: int) -> StoredMessage | None:
        if self._losses.get(uid, 0) >= MAX_LOSSES:
            return StoredMessage(None)
        try:
            return mailbox.fetch(uid)
        except MailboxLostError:
            self._losses[uid] = self._losses.get(uid, 0) + 1
            raise

    def _decide(self, uid: int, message: StoredMessage) -> RoutedMessage | None:
        """Return the decision on a message; None if there will never be one."""
        fallback = self._options.rules.fallback_folder
        if not message.content:
            log.error("imap.unreadable", uid=uid, folder=fallback)
            return None
        n_bytes = len(message.content)
        if n_bytes < message.size:
            log.warning("imap.truncated", uid=uid, bytes=message.size, used=n_bytes)
        try:
            return self._router.route(message.content)
        except NotRoutedError as error:
            if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                raise
            reason = str(error)
        log.error("imap.too_large", uid=uid, bytes=n_bytes, reason=reason, folder=fallback)
        return None

    def _route(self, mailbox: Mailbox, uid: int, message: StoredMessage) -> None:
        """Route a message, and do what the rules say; if it was begun before, only what is missing."""
        rules = self._options.rules
        decision = self._decide(uid, message)
        fingerprint = message.fingerprint
        paths = rules.folders_of(decision, mailbox.path_part)
        folders = list(dict.fromkeys(mailbox.folder_name(path) for path in paths))
        for folder in folders:
            mailbox.ensure_folder(folder, create=self._options.create)
        keywords = rules.keywords_of(decision) + [ROUTED] * mailbox.keeps_keywords

        begun = self._state.unfinished.get(uid) is not None
        self._state.record(uid, fingerprint)
        self._file.write(self._state)
        mailbox.add_keywords(uid, keywords)
        leaves = rules.action == "move" and bool(folders)
        for folder in folders[:-1] if leaves and mailbox.can_move else folders:
            if not (begun and fingerprint and mailbox.has_copy(folder, fingerprint)):
                mailbox.copy(uid, folder)
        if leaves and mailbox.can_move:
            mailbox.move(uid, folders[-1])
        elif leaves:
            mailbox.remove(uid)
        log.info(
            "imap.handled",
            uid=uid,
            decision_id=decision.decision_id if decision else None,
            folders=folders,
            keywords=keywords,
        )


def watch(
    server: Server,
    mailbox: str,
    router: RouterClient,
    state: Path,
    options: WatchOptions,
    on_ready: Callable[[str], None],
    max_message_bytes: int = MAX_MESSAGE_BYTES,
) -> None:
    """Watch a mailbox until the process gets SIGTERM or SIGINT, which end it at once.

    Args:
        server: the mail server.
        mailbox: name of the mailbox.
        router: routes the messages.
        state: the state file.
        options: what to do.
        on_ready: called with the name of the account when the mailbox is open for the first time.
        max_message_bytes: how much of a message is used.

    Raises:
        RefusedError: at the start, the server refuses the user, the mailbox or a folder.
        StateError: the state file cannot be used.
    """
    account = f"{mailbox} of {server.user} at {server.host}"
    # The state file knows what is unfinished, so the process can end anywhere.
    with (
        closing(StateFile(state, account)) as state_file,
        end_on_signal(lambda: log.info("imap.stopped")),
    ):
        Watcher(
            lambda: Mailbox(server, mailbox, max_message_bytes),
            account,
            router,
            state_file,
            options,
            lambda: on_ready(account),
        ).run()
