"""``covey imap`` against Dovecot: no message is missed, and none is handled twice."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import dovecot
import fork_server
import pytest
from deciding_service import DecidingService, deciding_service
from dovecot import Dovecot
from holding_proxy import holding_proxy
from structlog.testing import capture_logs
from typer.testing import CliRunner
from waiting import LIMIT_SECONDS, wait_for

from app.cli.main import cli
from app.inbound.imap import watcher
from app.inbound.imap.mailbox import MAX_MESSAGE_BYTES, ROUTED, Mailbox, RefusedError, Security, Server
from app.inbound.imap.rules import Action, Rules
from app.inbound.imap.state import StateError, StateFile
from app.inbound.imap.watcher import Watcher, WatchOptions
from app.inbound.service_client import RouterClient

USERS = [f"user{number}" for number in range(40)]
SHORT_WAITS = {"poll_seconds": 0.1, "idle_seconds": 0.1, "min_delay": 0.01, "max_delay": 0.1}
numbers = itertools.count()
users = iter(USERS)


def message(subject: str) -> bytes:
    number = next(numbers)
    return (
        f"From: ann@example.com\r\nMessage-ID: <{number}@example.com>\r\nSubject: {subject}\r\n\r\n"
        f"This is message {number}.\r\n"
    ).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with dovecot.server(USERS) as server:
        yield server


@pytest.fixture
def user(server: Dovecot) -> str:
    """A user of the test alone, with folders."""
    user = next(users)
    server.create(user, "billing", "shipping", "Review", "Fallback")
    return user


@pytest.fixture
def service() -> Iterator[DecidingService]:
    with deciding_service() as service:
        yield service


class Watch:
    """Runs watchers for one user: in a process, or in a thread, which takes less time to start."""

    def __init__(self, folder: Path, server: Dovecot, user: str, service: DecidingService) -> None:
        self.folder = folder
        self.user = user
        self.port = server.port
        self._server = server
        self._url = service.url
        self._process: fork_server.Command | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def account(self) -> str:
        return f"INBOX of {self.user} at 127.0.0.1"

    def command(self) -> list[str]:
        (self.folder / "password").write_text(f"{dovecot.PASSWORD}\n", encoding="utf-8")
        return [
            *("imap", "--router", "frontdesk", "--url", self._url),
            *("--host", "127.0.0.1", "--port", str(self.port), "--security", "none", "--user", self.user),
            *("--password-file", str(self.folder / "password"), "--state", str(self.state)),
        ]

    def run(self, *words: str) -> fork_server.Command:
        """Start a process."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COVEY_")}
        output, output_write = os.pipe()
        with (self.folder / "log").open("a") as log:
            self._process = fork_server.start([*self.command(), *words], environment, output_write, log)
        os.close(output_write)
        self.output = os.fdopen(output)
        return self._process

    def start(
        self,
        rules: Rules,
        *,
        security: Security = "none",
        ca_file: Path | None = None,
        keeps_keywords: bool = True,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        **options: Any,
    ) -> None:
        """Start a thread, and wait until it watches the mailbox."""
        server = Server("127.0.0.1", self.port, security, self.user, dovecot.PASSWORD, ca_file)
        ready = threading.Event()
        stopping = self._stopping = threading.Event()

        class StoppableMailbox(Mailbox):
            def __init__(self, server: Server, name: str) -> None:
                if stopping.is_set():
                    raise KeyboardInterrupt
                super().__init__(server, name, max_message_bytes)
                self.keeps_keywords &= keeps_keywords

            def uids_after(self, uid: int) -> list[int]:
                if stopping.is_set():
                    raise KeyboardInterrupt
                return super().uids_after(uid)

        def watch() -> None:
            state_file = StateFile(self.state, self.account)
            client = RouterClient(self._url, "frontdesk", None)
            with suppress(KeyboardInterrupt):
                Watcher(
                    lambda: StoppableMailbox(server, "INBOX"),
                    self.account,
                    client,
                    state_file,
                    WatchOptions(rules, **{**SHORT_WAITS, **options}),
                    ready.set,
                ).run()
            state_file.close()

        self._thread = threading.Thread(target=watch)
        self._thread.start()
        assert ready.wait(LIMIT_SECONDS)

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT_SECONDS)
            self.output.close()
            self._process = None

    def subjects(self, folder: str = "INBOX") -> list[str]:
        return sorted(self._server.subjects(self.user, folder))

    def wait_for_subjects(self, *subjects: str, folder: str = "INBOX") -> None:
        wanted = sorted(subjects)
        wait_for(
            lambda: self.subjects(folder) == wanted or None,
            what=f"{wanted} in {folder}, not {self.subjects(folder)}",
        )

    def wait_until_idle(self) -> None:
        """Wait until the state file says that everything is done."""

        def is_done() -> bool | None:
            state = json.loads(self.state.read_text())
            with self._server.client(self.user) as client:
                answer = client.status("INBOX", "(UIDNEXT)")[1][0]
            uid_next = int(answer.rsplit(b" ", 1)[1].rstrip(b")"))
            return (state["last_uid"] >= uid_next - 1 and not state["unfinished"]) or None

        wait_for(is_done, what="everything to be done")


@pytest.fixture
def watch(tmp_path: Path, server: Dovecot, user: str, service: DecidingService) -> Iterator[Watch]:
    watch = Watch(tmp_path, server, user, service)
    yield watch
    watch.stop()


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    with capture_logs() as logs:
        yield logs


def wait_for_event(logs: list[Any], name: str, n: int = 1) -> None:
    wait_for(lambda: sum(log["event"] == name for log in logs) >= n or None, what=f"{n} of {name}")


MOVE = Rules("move", {}, "{label}", "Review", "Fallback")
COPY = replace(MOVE, action="copy")
WORDS = ("--folder", "{label}", "--review-folder", "Review", "--fallback-folder", "Fallback")
"""The options of the command for ``MOVE``."""


def test_new_messages_are_moved_by_department(
    server: Dovecot, watch: Watch, service: DecidingService
) -> None:
    server.append(watch.user, message("billing there-already"))
    process = watch.run(*WORDS, "--folder-for", "shipping=Shipping/All parcels", "--create")
    assert watch.output.readline() == f"Covey watches {watch.account}\n"
    sent = {subject: message(subject) for subject in ("billing", "review billing", "fallback", "shipping")}
    for content in sent.values():
        server.append(watch.user, content)  # one after the other, so that IDLE reports each
        watch.wait_until_idle()
    watch.wait_for_subjects("billing", folder="billing")
    watch.wait_for_subjects("review billing", folder="Review")
    watch.wait_for_subjects("fallback", folder="Fallback")
    watch.wait_for_subjects("shipping", folder='"Shipping.All parcels"')
    assert watch.subjects() == ["billing there-already"]
    # The bytes are those of the message, and it stays unread.
    assert service.received == list(sent.values())
    assert server.messages(watch.user, "billing") == [(frozenset({ROUTED}), sent["billing"])]
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_SECONDS) == 0
    log = (watch.folder / "log").read_text()
    assert '"idle": true' in log
    assert "Traceback" not in log


def test_a_message_of_two_departments_is_in_both_folders_once(server: Dovecot, watch: Watch) -> None:
    server.append(watch.user, message("billing shipping"))
    watch.start(MOVE, existing=True)
    for folder in ("billing", "shipping"):
        watch.wait_for_subjects("billing shipping", folder=folder)
    watch.wait_for_subjects()


def test_messages_are_copied(server: Dovecot, watch: Watch, service: DecidingService) -> None:
    watch.start(COPY)
    server.append(watch.user, message("billing shipping"))
    for folder in ("billing", "shipping"):
        watch.wait_for_subjects("billing shipping", folder=folder)
    watch.wait_until_idle()
    watch.stop()
    watch.state.unlink()
    watch.start(COPY, existing=True)
    server.append(watch.user, message("billing"))
    watch.wait_for_subjects("billing", "billing shipping", folder="billing")
    # The keyword protects the first message, although the state was lost.
    assert watch.subjects("shipping") == ["billing shipping"]
    assert Counter(service.received).most_common(1)[0][1] == 1


def test_messages_are_flagged(server: Dovecot, watch: Watch) -> None:
    watch.start(Rules("flag", keyword="dept-{label}"))
    for subject in ("billing shipping", "review billing", "fallback", "büro"):
        server.append(watch.user, message(subject))
    watch.wait_until_idle()
    assert [flags - {ROUTED} for flags, _ in server.messages(watch.user)] == [
        {"dept-billing", "dept-shipping"},
        {"CoveyReview"},
        {"CoveyFallback"},
        {"dept-b&APw-ro"},
    ]


def test_a_restart_continues_after_the_last_message(
    server: Dovecot, watch: Watch, service: DecidingService
) -> None:
    watch.start(COPY)
    server.append(watch.user, message("billing"))
    watch.wait_for_subjects("billing", folder="billing")
    watch.stop()
    server.append(watch.user, message("shipping"))
    watch.start(COPY)
    watch.wait_for_subjects("shipping", folder="shipping")
    watch.wait_until_idle()
    assert watch.subjects("billing") == ["billing"]
    assert len(service.received) == 2


@pytest.mark.parametrize(
    ("command", "action"),
    [
        (rb"UID STORE \d+ \+FLAGS", "move"),
        (rb"UID COPY \d+ .*shipping", "move"),
        (rb"UID MOVE", "move"),
        (rb"IDLE", "copy"),
    ],
)
def test_a_process_that_is_killed_at_any_point_handles_each_message_once(
    server: Dovecot, watch: Watch, command: bytes, action: Action
) -> None:
    server.create(watch.user, "third")
    server.append(watch.user, message("billing shipping third"))
    with holding_proxy(server.port) as proxy:
        watch.port = proxy.port
        proxy.hold(command)
        watch.run(*WORDS, "--action", action, "--existing")
        proxy.wait()
        watch.stop()
        proxy.release()
        server.append(watch.user, message("billing"))
        watch.start(replace(MOVE, action=action), existing=True)
        watch.wait_for_subjects("billing", "billing shipping third", folder="billing")
        watch.wait_until_idle()
    for folder in ("shipping", "third"):
        assert watch.subjects(folder) == ["billing shipping third"]
    assert watch.subjects() == ([] if action == "move" else ["billing", "billing shipping third"])


@pytest.mark.parametrize(("keeps_keywords", "max_message_bytes"), [(True, MAX_MESSAGE_BYTES), (False, 100)])
def test_a_command_whose_response_is_lost_is_not_repeated(
    server: Dovecot, watch: Watch, logs: list[Any], keeps_keywords: bool, max_message_bytes: int
) -> None:
    server.append(watch.user, message("billing shipping") * 2)
    with holding_proxy(server.port) as proxy:
        watch.port = proxy.port
        proxy.hold(rb"COPYUID", response=True)
        watch.start(COPY, existing=True, keeps_keywords=keeps_keywords, max_message_bytes=max_message_bytes)
        proxy.wait()
        proxy.release()
        watch.wait_for_subjects("billing shipping", folder="shipping")
        watch.wait_until_idle()
        watch.stop()
    wait_for_event(logs, "imap.unavailable")
    assert watch.subjects("billing") == ["billing shipping"]


def renumber(server: Dovecot, user: str) -> None:
    """Have the server number the messages of a mailbox anew."""
    server.stop()
    for pattern in ("dovecot-uidlist", "dovecot-uidvalidity*", "dovecot.index*"):
        for file in server.maildir(user).glob(pattern):
            file.unlink()
    server.start()


def test_a_new_numbering_loses_no_message_and_repeats_none(
    server: Dovecot, watch: Watch, logs: list[Any]
) -> None:
    server.append(watch.user, message("billing shipping"))
    watch.start(COPY, existing=True)
    watch.wait_for_subjects("billing shipping", folder="shipping")
    watch.wait_until_idle()
    watch.stop()
    # A message is routed and begun, another one is new.
    server.append(watch.user, message("billing"))
    with holding_proxy(server.port) as proxy:
        watch.port = proxy.port
        proxy.hold(rb"UID COPY")
        watch.run(*WORDS, "--action", "copy")
        proxy.wait()
        watch.stop()
    watch.port = server.port
    server.append(watch.user, message("shipping"))
    renumber(server, watch.user)
    watch.start(COPY)
    watch.wait_for_subjects("billing", "billing shipping", folder="billing")
    watch.wait_for_subjects("shipping", "billing shipping", folder="shipping")
    watch.wait_until_idle()
    assert watch.subjects("billing") == ["billing", "billing shipping"]
    wait_for_event(logs, "imap.uidvalidity_changed")


def test_an_unavailable_service_leaves_the_message_where_it_is(
    server: Dovecot, watch: Watch, service: DecidingService, logs: list[Any]
) -> None:
    service.status = 503
    watch.start(MOVE)
    server.append(watch.user, message("billing"))
    wait_for_event(logs, "imap.not_handled", 2)
    assert watch.subjects() == ["billing"]
    assert server.messages(watch.user)[0][0] == frozenset()
    watch.stop()
    service.status = 200
    watch.start(MOVE)
    watch.wait_for_subjects("billing", folder="billing")


def test_a_message_that_the_service_refuses_does_not_stop_the_others(
    server: Dovecot, watch: Watch, service: DecidingService, logs: list[Any]
) -> None:
    service.refused = "shipping"
    for subject in ("shipping", "billing", "billing"):
        server.append(watch.user, message(subject))
    watch.start(MOVE, existing=True)
    watch.wait_for_subjects("billing", "billing", folder="billing")
    wait_for_event(logs, "imap.not_handled", 2)
    service.refused = ""
    watch.wait_for_subjects("shipping", folder="shipping")


def test_only_the_beginning_of_a_long_message_is_fetched(
    server: Dovecot, watch: Watch, service: DecidingService, logs: list[Any]
) -> None:
    content = message("billing") + b"x" * 1000
    watch.start(MOVE, max_message_bytes=500)
    server.append(watch.user, content)
    watch.wait_for_subjects("billing", folder="billing")
    # With one byte beyond the limit, the service sees that the message is longer.
    assert service.received == [content[:501]]
    assert server.messages(watch.user, "billing")[0][1] == content
    wait_for_event(logs, "imap.truncated")


def test_a_message_that_cannot_be_routed_is_fetched_again_after_a_time_by_its_size(
    server: Dovecot,
    watch: Watch,
    service: DecidingService,
    logs: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "REPEATED_BYTES_PER_SECOND", 1)
    service.refused = "shipping"
    server.append(watch.user, message("shipping"))
    watch.start(MOVE, existing=True)
    wait_for_event(logs, "imap.messages_wait", 4)
    server.append(watch.user, message("billing"))
    watch.wait_for_subjects("billing", folder="billing")
    assert len(service.received) == 2
    assert watch.subjects() == ["shipping"]


def test_a_message_that_a_proxy_refuses_for_its_size_goes_to_the_fallback(
    server: Dovecot, watch: Watch, service: DecidingService, logs: list[Any]
) -> None:
    service.status = 413
    watch.start(MOVE)
    server.append(watch.user, message("billing"))
    watch.wait_for_subjects("billing", folder="Fallback")
    watch.wait_until_idle()
    wait_for_event(logs, "imap.too_large")
    assert len(service.received) == 1


def test_sigterm_ends_the_command_while_a_function_in_c_runs(tmp_path: Path) -> None:
    # The signal is blocked in the thread that waits, as if its function did not return.
    program = f"""
import signal, time
from pathlib import Path
from app.inbound.imap import watcher
from app.inbound.imap.mailbox import Server

def run(self):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    print("waits", flush=True)
    time.sleep({10 * LIMIT_SECONDS})

watcher.Watcher.run = run
server = Server("127.0.0.1", 143, "none", "ann", "")
watcher.watch(server, "INBOX", None, Path("state.json"), watcher.WatchOptions(None), print)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(watcher.__file__).parents[3])},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_SECONDS) == 0


def test_a_missing_folder_is_not_created_without_the_option(
    server: Dovecot, watch: Watch, logs: list[Any]
) -> None:
    watch.start(MOVE)
    server.append(watch.user, message("legal/Ä%*.x"))
    wait_for_event(logs, "imap.not_handled")
    assert any("there is no folder legal_" in log.get("reason", "") for log in logs)
    watch.stop()
    watch.start(MOVE, create=True)
    watch.wait_for_subjects("legal/Ä%*.x".encode().decode("latin-1"), folder="legal_&AMQ-___x")


def test_a_message_that_the_server_cannot_read_goes_to_the_fallback(
    server: Dovecot, watch: Watch, logs: list[Any]
) -> None:
    server.append(watch.user, message("shipping"))
    (file,) = (file for file in server.maildir(watch.user).glob("*/*") if file.name[0].isdigit())
    file.chmod(0)
    watch.start(MOVE, existing=True)
    server.append(watch.user, message("billing"))
    wait_for_event(logs, "imap.unreadable")
    watch.wait_for_subjects("billing", folder="billing")

    def moved() -> bool | None:
        folder = server.maildir(watch.user, "Fallback")
        return any(found.name[0].isdigit() for found in folder.glob("*/*")) or None

    wait_for(moved, what="the message in the fallback folder")


def test_a_lost_connection_is_opened_again(server: Dovecot, watch: Watch, logs: list[Any]) -> None:
    with holding_proxy(server.port) as proxy:
        watch.port = proxy.port
        watch.start(MOVE, idle_seconds=60.0)
        proxy.close_connections()
        wait_for_event(logs, "imap.connected", 2)
    wait_for_event(logs, "imap.unavailable")
    with pytest.raises(StateError, match="another process uses"):
        StateFile(watch.state, watch.account)


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_connections_are_encrypted_and_the_certificate_is_checked(
    server: Dovecot, watch: Watch, security: Security
) -> None:
    watch.port = server.tls_port if security == "tls" else server.port
    untrusted = Server("127.0.0.1", watch.port, security, watch.user, dovecot.PASSWORD)
    with pytest.raises(RefusedError, match=r"the certificate of 127\.0\.0\.1 is not valid"):
        Mailbox(untrusted, "INBOX")
    watch.start(MOVE, security=security, ca_file=server.certificate)
    server.append(watch.user, message("billing"))
    watch.wait_for_subjects("billing", folder="billing")


@pytest.mark.parametrize(
    ("capability", "prefix", "separator"),
    [("IMAP4rev1", "", "/"), ("IMAP4rev1 NAMESPACE", "INBOX.", ".")],
)
def test_a_server_that_can_little_is_polled(
    tmp_path: Path, service: DecidingService, capability: str, prefix: str, separator: str
) -> None:
    with dovecot.server(["ann"], prefix=prefix, separator=separator, capability=capability) as server:
        billing, shipping = (f"{prefix}Departments{separator}{label}" for label in ("billing", "shipping"))
        server.create("ann", billing)
        watch = Watch(tmp_path, server, "ann", service)
        try:
            # Both ways to name a folder below a prefix.
            folders = {"shipping": f"{prefix.replace(separator, '/')}Departments/shipping"}
            watch.start(Rules("move", folders, folder="Departments/{label}"), create=True)
            server.append("ann", message("billing shipping"))
            watch.wait_for_subjects("billing shipping", folder=shipping)
            watch.wait_for_subjects("billing shipping", folder=billing)
            # The message stays, marked as deleted, because the server cannot remove a single one.
            watch.wait_until_idle()
            assert [r"\Deleted" in flags for flags, _ in server.messages("ann")] == [True]
        finally:
            watch.stop()


def test_a_message_that_a_person_moves_back_stays(
    server: Dovecot, watch: Watch, service: DecidingService
) -> None:
    watch.start(MOVE)
    server.append(watch.user, message("billing"))
    watch.wait_for_subjects("billing", folder="billing")
    with server.client(watch.user, "billing") as client:
        client.uid("MOVE", "1:*", "INBOX")
    watch.wait_until_idle()
    assert (watch.subjects(), watch.subjects("billing")) == (["billing"], [])
    assert len(service.received) == 1


def test_messages_that_a_person_marked_as_deleted_stay(server: Dovecot, watch: Watch) -> None:
    server.append(watch.user, message("billing"))
    with server.client(watch.user, "INBOX") as client:
        client.store("1", "+FLAGS", r"(\Deleted)")
    watch.start(MOVE)
    server.append(watch.user, message("shipping"))
    watch.wait_for_subjects("shipping", folder="shipping")
    watch.wait_until_idle()
    assert watch.subjects() == ["billing"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--user", "nobody", *WORDS], "does not accept nobody"),
        (["--mailbox", "Missing", *WORDS], "Missing"),
        (["--folder-for", "billing=Missing"], "there is no folder Missing"),
        (["--folder-for", "billing=a//b", "--create"], "the folder a..b cannot be created: "),
        (["--folder-for", "billing"], "must be LABEL=FOLDER"),
        ([], "needs --folder or --folder-for"),
        (["--action", "flag", *WORDS], "uses no folders"),
        (["--url", "localhost:8000", *WORDS], "does not begin with http"),
        (["--host", "mail.example.org", *WORDS], "can read the password"),
        (["--password-file", "/does/not/exist", *WORDS], "the password cannot be read"),
        (["--state", "/does/not/exist", *WORDS], "cannot be written"),
    ],
)
def test_a_wrong_configuration_ends_the_command(
    watch: Watch, words: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.logs.configure", lambda _settings: None)
    result = CliRunner().invoke(cli, [*watch.command(), *words])
    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr
