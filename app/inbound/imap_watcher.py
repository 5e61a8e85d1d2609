"""``covey imap``: watches a mailbox, routes its new messages, and moves, copies or flags them.

A message is handled in three steps: it is routed, which can be repeated, because the service returns its
first decision; what will be done with it is written to the state file; and it is done. A process that
starts again finishes what the state file contains, and finds out what was already done. The keyword
``CoveyRouted`` is a second guard: messages that have it are not routed, whatever the state file says.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import structlog

from app.inbound.imap_mailbox import (
    ROUTED,
    LoginRefusedError,
    Mailbox,
    MailboxLostError,
    RefusedError,
    Server,
    StoredMessage,
    content_digest,
)
from app.inbound.imap_rules import Rules
from app.inbound.imap_state import Plan, State, StateFile
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import NotRoutedError

log = structlog.get_logger()

MAX_FAILURES: Final = 3
"""After so many failures one after the other, the rest of the messages wait too."""

MAX_LOSSES: Final = 3
"""A message is unreadable if the connection was lost so often while it was fetched."""

CLOCK_DIFFERENCE: Final = timedelta(hours=1)
"""Maximum difference between the clocks of this machine and the mail server."""


class Router(Protocol):
    """Routes messages, such as ``RouterClient``."""

    def route(self, message: bytes) -> RoutedMessage:
        """Return the recorded decision on a message, or raise ``NotRoutedError``."""
        ...


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watcher.

    Attributes:
        rules: what is done with a message.
        create: whether to create folders that do not exist.
        existing: whether to route the messages that are in the mailbox at the first start.
        poll_seconds: how often to look for messages if the server does not report them.
        idle_seconds: how often to look for messages if the server reports them.
        max_delay: maximum time in seconds between two attempts after a failure.
    """

    rules: Rules
    create: bool = False
    existing: bool = False
    poll_seconds: float = 60.0
    idle_seconds: float = 300.0
    max_delay: float = 60.0


class Watcher:
    """Handles the messages of one mailbox.

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
        router: Router,
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
        self._delay = 1.0
        self._losses: dict[int, int] = {}
        self._state: State

    def run(self) -> None:
        """Watch the mailbox until the process is stopped.

        Raises:
            LoginRefusedError: at the start, the server does not accept the user.
            RefusedError: at the start, the mailbox or a folder does not exist.
            StateError: the state file cannot be used.
        """
        while True:
            try:
                mailbox = self._connect()
            except MailboxLostError as error:
                self._pause("imap.unavailable", error)
                continue
            except (LoginRefusedError, RefusedError) as error:
                if not self._was_ready:
                    raise
                self._pause("imap.unavailable", error)
                continue
            try:
                self._watch(mailbox)
            except MailboxLostError as error:
                self._pause("imap.connection_lost", error)
            except RefusedError as error:
                if not self._was_ready:
                    raise
                self._pause("imap.refused", error)
            finally:
                mailbox.close()

    def _pause(self, event: str, error: Exception) -> None:
        log.warning(event, reason=str(error), retry_seconds=self._delay)
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
                self._wait(mailbox, self._next_delay())
            else:
                self._delay = 1.0
                # A command of a round can consume the report of a new message, so another search is due.
                if not handled:
                    seconds = self._options.idle_seconds if mailbox.can_idle else self._options.poll_seconds
                    self._wait(mailbox, seconds)

    def _wait(self, mailbox: Mailbox, seconds: float) -> None:
        if mailbox.can_idle:
            mailbox.wait(seconds)
        else:
            time.sleep(seconds)
            mailbox.keep_alive()

    def _begin(self, mailbox: Mailbox) -> None:
        """Read the state, and adapt it to the mailbox."""
        rules = self._options.rules
        if rules.action == "flag" and not mailbox.keeps_keywords:
            raise RefusedError("this mailbox does not keep keywords; use --action move or copy")
        if not self._was_ready:
            for path in rules.named_folders():
                mailbox.position(mailbox.folder_name(path), create=self._options.create)
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
        log.info("imap.connected", idle=mailbox.can_idle, unfinished=len(state.unfinished))

    def _renumbered(self, mailbox: Mailbox, old: State) -> State:
        """Return the state after the server has numbered its messages anew.

        Messages that were handled have the keyword, or have left the mailbox. Those with a plan have the
        keyword too, so they are recognized by their content.
        """
        unfinished: dict[int, Plan | None] = dict.fromkeys(mailbox.unrouted_since(old.started_at))
        for plan in old.unfinished.values():
            uid = mailbox.find(plan.size, plan.digest) if plan is not None else None
            if uid is not None:
                unfinished[uid] = plan
        log.warning(
            "imap.uidvalidity_changed",
            before=old.uid_validity,
            now=mailbox.uid_validity,
            unfinished=len(unfinished),
        )
        self._losses.clear()
        return replace(
            old,
            uid_validity=mailbox.uid_validity,
            last_uid=max([mailbox.uid_next - 1, *unfinished]),
            unfinished=unfinished,
        )

    def _round(self, mailbox: Mailbox) -> tuple[bool, bool]:
        """Handle new messages, then those that wait.

        Returns:
            whether a message was handled, and whether a message could not be handled.
        """
        waiting = sorted(self._state.unfinished)
        new = mailbox.uids_after(self._state.last_uid)
        handled = failures = in_a_row = 0
        for uid in [*new, *waiting]:
            if in_a_row == MAX_FAILURES:
                break
            try:
                self._handle(mailbox, uid)
                handled += 1
                in_a_row = 0
            except (NotRoutedError, RefusedError) as error:
                failures += 1
                in_a_row += 1
                log.warning("imap.not_handled", uid=uid, reason=str(error))
                if uid not in self._state.unfinished:
                    self._save(self._state.with_unfinished(uid, None))
        if handled:
            self._file.write(self._state)
        return handled > 0, failures > 0

    def _handle(self, mailbox: Mailbox, uid: int) -> None:
        """Handle one message.

        Raises:
            NotRoutedError: the service is not available.
            RefusedError: the mail server refuses what should be done.
            MailboxLostError: the connection is lost.
        """
        plan = self._state.unfinished.get(uid)
        if plan is not None:
            if mailbox.exists(uid):
                self._carry_out(mailbox, uid, plan, begun=True)
        else:
            message = self._fetch(mailbox, uid)
            if message is not None and not message.is_routed:
                plan = self._plan(mailbox, message)
                self._save(self._state.with_unfinished(uid, plan))
                self._carry_out(mailbox, uid, plan, begun=False)
                log.info(
                    "imap.handled",
                    uid=uid,
                    decision_id=plan.decision_id,
                    folders=[target.folder for target in plan.targets],
                    keywords=plan.keywords,
                )
        # It is enough to write this with the next message: what was done is recognized.
        self._state = self._state.with_finished(uid)

    def _save(self, state: State) -> None:
        self._file.write(state)
        self._state = state

    def _fetch(self, mailbox: Mailbox, uid: int) -> StoredMessage | None:
        if self._losses.get(uid, 0) >= MAX_LOSSES:
            return StoredMessage(None, frozenset())
        try:
            return mailbox.fetch(uid)
        except MailboxLostError:
            self._losses[uid] = self._losses.get(uid, 0) + 1
            raise

    def _plan(self, mailbox: Mailbox, message: StoredMessage) -> Plan:
        rules = self._options.rules
        if message.content is None:
            log.error("imap.unreadable", folder=rules.fallback_folder)
            paths = [rules.fallback_folder] if rules.fallback_folder and rules.action != "flag" else []
            keywords, decision_id = [], None
        else:
            decision = self._router.route(message.content)
            paths = rules.folders_of(decision, mailbox.path_part)
            keywords, decision_id = rules.keywords_of(decision), decision.decision_id
        if mailbox.keeps_keywords:
            keywords = [*keywords, ROUTED]
        folders = list(dict.fromkeys(mailbox.folder_name(path) for path in paths))
        content = message.content or b""
        return Plan(
            decision_id,
            tuple(keywords),
            tuple(mailbox.position(folder, create=self._options.create) for folder in folders),
            rules.action == "move" and bool(folders),
            len(content),
            content_digest(content),
        )

    def _carry_out(self, mailbox: Mailbox, uid: int, plan: Plan, *, begun: bool) -> None:
        """Do what a plan says; if it was begun before, only what is missing."""
        if plan.keywords:
            mailbox.add_keywords(uid, plan.keywords)
        moves = plan.leaves and mailbox.moves_in_one_step
        for target in plan.targets[:-1] if moves else plan.targets:
            if not (begun and mailbox.is_copied(target, plan.size, plan.digest)):
                mailbox.copy(uid, target.folder)
        if moves:
            mailbox.move(uid, plan.targets[-1].folder)
        elif plan.leaves:
            mailbox.remove(uid)


def watch(
    server: Server,
    mailbox: str,
    router: Router,
    state: Path,
    options: WatchOptions,
    on_ready: Callable[[str], None],
) -> None:
    """Watch a mailbox until the process gets SIGTERM or SIGINT.

    Args:
        server: the mail server.
        mailbox: name of the mailbox.
        router: routes the messages.
        state: the state file.
        options: what to do.
        on_ready: called with the name of the account when the mailbox is open for the first time.

    Raises:
        LoginRefusedError: at the start, the server does not accept the user.
        RefusedError: at the start, the mailbox or a folder does not exist.
        StateError: the state file cannot be used.
    """
    account = f"{mailbox} of {server.user} at {server.host}"
    state_file = StateFile(state, account)

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        Watcher(
            lambda: Mailbox(server, mailbox), account, router, state_file, options, lambda: on_ready(account)
        ).run()
    except KeyboardInterrupt:  # the state file knows what is unfinished
        log.info("imap.stopped")
    finally:
        signal.signal(signal.SIGTERM, previous)
        state_file.close()
