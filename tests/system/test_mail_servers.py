"""The recipes of docs/mail with the mail servers themselves: a stopped service loses no message."""

from __future__ import annotations

import email
import os
import pwd
import re
import shutil
import smtplib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from email.message import EmailMessage
from pathlib import Path

import command_relay
import dovecot
import fork_server
import postfix
import production
import pytest
from mail_recipes import covey_smtp, recipe, smtp_filter
from recording_mail_server import mail_server
from required import missing
from stack import Stack, departments
from waiting import LIMIT_SECONDS

pytestmark = [pytest.mark.faults, pytest.mark.system]

COVEY = "/opt/covey/bin/covey"
KEY = "--key-file /etc/covey/mail-key"
USERS = ["billing", "shipping", "support", "sales", "desk", "office"]


class Service:
    """The API of the service, in a process that tests stop and start.

    Args:
        data: the data folder of a running service.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._running = ExitStack()
        self.url = ""

    def start(self) -> None:
        """Start the process at another URL, and wait until it is ready."""
        _, self.url = self._running.enter_context(production.api(self._data))

    def stop(self) -> None:
        """Stop the process."""
        self._running.close()


@pytest.fixture
def service(killable_stack: Stack) -> Iterator[Service]:
    """A running service with the router of the recipes."""
    if killable_stack.http.get("/v1/routers/frontdesk").status_code == 404:
        job = killable_stack.train(killable_stack.dataset(departments(60))["id"], model="frontdesk")
        assert killable_stack.finished(job["id"])["state"] == "succeeded"
        router = {
            "model": "frontdesk",
            "fallback": "desk@example.org",
            "destinations": {user: f"{user}@example.org" for user in USERS[:4]},
        }
        killable_stack.call("PUT", "/v1/routers/frontdesk", 200, json=router)
    service = Service(killable_stack.data)
    service.start()
    try:
        yield service
    finally:
        service.stop()


def message(number: int) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"] = "ann@example.com", "office@example.org"
    mail["Subject"], mail["Message-ID"] = f"Invoice {number}", f"<{number}@example.com>"
    mail["X-Covey-Departments"] = "forged"
    mail.set_content("invoice refund payment charged amount card receipt\n.\nAnn\n")
    return mail.as_bytes()


def settings(name: str) -> dict[str, str]:
    """Return the parameters for ``main.cf`` of a recipe."""
    found = dict(re.findall(r"^(\w+) = (.*)$", recipe(name), re.MULTILINE))
    assert found
    return found


@contextmanager
def relay(service: Service) -> Iterator[str]:
    """Yield a command for recipes that stands for ``covey``; it uses the service of this test."""
    run = command_relay.in_fork_server(lambda: {**os.environ, "COVEY_URL": service.url})
    with command_relay.relay(run) as script:
        yield str(script)


@contextmanager
def running_postfix(
    service: Service, master: str, main: Mapping[str, str] | None = None, content_filter: str | None = None
) -> Iterator[postfix.Postfix]:
    """Run Postfix with the services of a recipe."""
    with relay(service) as command:
        first = re.search(r"^\w+ +unix", master, re.MULTILINE)
        assert first is not None
        services = (
            master[first.start() :]
            .replace(COVEY, command)
            .replace(KEY, "")
            .replace("user=covey", "user=nobody")
        )
        services = services.replace("/usr/sbin/sendmail", "/usr/sbin/sendmail -C {folder}")
        with postfix.server(USERS, main, master=services, content_filter=content_filter) as server:
            yield server


def test_postfix_adds_the_fields_to_every_message_while_the_service_stops_and_starts(
    service: Service,
) -> None:
    master = recipe("postfix-filter")
    content_filter = re.search(r"content_filter=(\S+)", master)
    assert content_filter is not None
    with running_postfix(service, master, settings("postfix-filter-main"), content_filter[1]) as server:
        server.submit(message(0), ["billing@example.org", "sales@example.org"])
        server.wait_until_empty()
        service.stop()
        for number in (1, 2, 3):
            server.submit(message(number), ["billing@example.org"])
        server.wait_for_deferred(3)
        assert len(server.delivered("billing")) == 1
        service.start()
        server.wait_until_empty()
        mails = [email.message_from_bytes(mail) for mail in server.delivered("billing")]
        assert sorted(str(mail["Message-ID"]) for mail in mails) == [f"<{i}@example.com>" for i in range(4)]
        for mail in mails:
            assert mail.get_all("X-Covey-Departments") == ["billing"]
            assert str(mail["X-Covey-Decision"]).startswith("routed; id=dec_")
            assert mail.get_payload() == email.message_from_bytes(message(0)).get_payload()
        assert len(server.delivered("sales")) == 1


def test_a_header_with_8_bit_text_reaches_a_server_without_smtputf8(service: Service) -> None:
    master = recipe("postfix-filter")
    content_filter = re.search(r"content_filter=(\S+)", master)
    assert content_filter is not None
    with mail_server() as hop:
        hop.extensions = ["8BITMIME"]
        main = {**settings("postfix-filter-main"), "virtual_transport": f"smtp:{_bracketed(hop.address)}"}
        with running_postfix(service, master, main, content_filter[1]) as server:
            content = message(5).replace(b"Subject: Invoice", "Subject: Bücher".encode())
            server.submit(content, ["billing@example.org"])
            server.wait_until_empty()
        (received,) = hop.messages
        assert "Subject: Bücher".encode() in received.content


def _bracketed(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"[{host}]:{port}"


def test_postfix_delivers_to_the_departments(service: Service) -> None:
    with running_postfix(service, recipe("postfix-deliver"), settings("postfix-deliver-main")) as server:
        service.stop()
        server.submit(message(4), ["office@example.org"])
        server.wait_for_deferred(1)
        service.start()
        server.wait_until_empty()
        (mail,) = server.delivered("billing")
        assert email.message_from_bytes(mail)["X-Covey-Destinations"] == "billing@example.org"
        assert server.delivered("office") == server.delivered("desk") == []


def test_postfix_filters_every_message_while_the_service_and_the_filter_stop_and_start(
    service: Service,
) -> None:
    port, next_port = production.free_port(), production.free_port()
    content_filter, services = smtp_filter(port, next_port)
    options = ["--listen", f"127.0.0.1:{port}", "--next-hop", f"127.0.0.1:{next_port}"]
    with postfix.server(USERS, master=services, content_filter=content_filter) as server:
        with covey_smtp(service.url, *options):
            server.submit(message(10), ["billing@example.org", "sales@example.org"])
            server.wait_until_empty()
            service.stop()
            for number in (11, 12, 13):
                server.submit(message(number), ["billing@example.org", "sales@example.org"])
            server.wait_for_deferred(3)
            assert "451 4.3.0" in str(server.queue())
        server.submit(message(14), ["billing@example.org", "sales@example.org"])
        server.wait_for_deferred(4)
        assert len(server.delivered("billing")) == 1
        service.start()
        with covey_smtp(service.url, *options):
            server.wait_until_empty()
        for user in ("billing", "sales"):
            mails = [email.message_from_bytes(mail) for mail in server.delivered(user)]
            numbers = [f"<{i}@example.com>" for i in range(10, 15)]
            assert sorted(str(mail["Message-ID"]) for mail in mails) == numbers
            for mail in mails:
                assert mail.get_all("X-Covey-Departments") == ["billing"]
                assert str(mail["X-Covey-Decision"]).startswith("routed; id=dec_")
                assert mail.get_payload() == email.message_from_bytes(message(0)).get_payload()


def test_postfix_filters_messages_before_it_accepts_them(service: Service) -> None:
    port, next_port = production.free_port(), production.free_port()
    # Without notify_classes, Postfix would also write to its administrator.
    main = {
        **settings("postfix-proxy-main"),
        "smtpd_proxy_filter": f"127.0.0.1:{port}",
        "notify_classes": "",
    }
    with postfix.server(USERS, main, master=smtp_filter(port, next_port)[1]) as server:
        with pytest.raises(smtplib.SMTPDataError, match="451"):
            server.submit(message(30), ["billing@example.org"])
        assert server.queue() == []
        with covey_smtp(service.url, "--listen", f"127.0.0.1:{port}", "--next-hop", f"127.0.0.1:{next_port}"):
            server.submit(message(30), ["billing@example.org", "sales@example.org"])
            server.wait_until_empty()
        for user in ("billing", "sales"):
            (mail,) = server.delivered(user)
            assert email.message_from_bytes(mail).get_all("X-Covey-Departments") == ["billing"]


def test_postfix_delivers_through_the_filter_to_dovecot(service: Service) -> None:
    port = production.free_port()
    lines = recipe("postfix-lmtp-filter-main").replace(":10025", f":{port}")
    main = dict(re.findall(r"^(\w+) = (.*)$", lines, re.MULTILINE))
    # Postfix knows more users than Dovecot: the refusal of one recipient must not affect the others.
    with (
        dovecot.server(["office", "desk"], sieve=recipe("sieve")) as mailboxes,
        covey_smtp(
            service.url, "--listen", f"127.0.0.1:{port}", "--lmtp", "--next-hop", f"lmtp:{mailboxes.lmtp}"
        ),
        postfix.server(USERS, main) as server,
    ):
        recipients = [f"{user}@example.org" for user in ("office", "sales", "desk")]
        server.submit(message(20), recipients, sender="")
        server.wait_until_empty()
        for user in ("office", "desk"):
            (mail,) = mailboxes.delivered(user, "Billing")
            assert email.message_from_bytes(mail).get_all("X-Covey-Departments") == ["billing"]
        assert "User doesn't exist: sales@example.org" in server.tail()


def test_a_sieve_script_files_a_message_by_its_departments(service: Service) -> None:
    if shutil.which("sieve-test") is None:
        missing("sieve-test is not installed (on Debian: the package dovecot-sieve)")
    words = ["route", "--router", "frontdesk", "--url", service.url, "--add-headers"]
    routed = fork_server.run(words, os.environ, message(5))
    assert routed.returncode == 0, routed.stderr
    uid = os.getuid() or pwd.getpwnam("nobody").pw_uid  # the program does not run as root
    with tempfile.TemporaryDirectory(prefix="covey-sieve-") as name:
        folder = Path(name)
        shutil.chown(folder, uid)
        (folder / "dovecot.conf").write_text(
            f"mail_location = maildir:{folder}/mail\nssl = no\nmail_uid = {uid}\nmail_gid = {uid}\n"
            "first_valid_uid = 1\n"
        )
        (folder / "script.sieve").write_text(recipe("sieve"))
        for mailbox, content in (
            ("Billing", routed.stdout),
            ("Review", b"X-Covey-Decision: review; id=dec_1\n" + message(5)),
            ("INBOX", b"X-Covey-Decision: routed; id=dec_1\nX-Covey-Departments: sales\n\nHello\n"),
        ):
            (folder / "message").write_bytes(content)
            files = [str(folder / file) for file in ("dovecot.conf", "script.sieve", "message")]
            output = subprocess.run(
                ["sieve-test", "-c", *files], capture_output=True, timeout=LIMIT_SECONDS, check=True
            ).stdout.decode()
            assert f"store message in folder: {mailbox}" in output


def test_procmail_files_a_message_by_its_departments_or_defers_it(service: Service, tmp_path: Path) -> None:
    program = shutil.which("procmail")
    if program is None:
        missing("procmail is not installed (on Debian: the package procmail)")
    script, rules = tmp_path / "covey", tmp_path / "rules"
    rules.write_text(
        f"MAILDIR={tmp_path}\nDEFAULT=Inbox/\n"
        + recipe("procmail").replace(COVEY, str(script)).replace(KEY, "")
    )

    def deliver(mail: bytes) -> int:
        script.write_text(f'#!/bin/sh\nCOVEY_URL={service.url} exec {sys.executable} -m app "$@"\n')
        script.chmod(0o700)
        command = [program, "-m", str(rules)]
        return subprocess.run(command, input=mail, timeout=LIMIT_SECONDS, check=False).returncode

    assert deliver(message(6)) == 0
    (file,) = (tmp_path / "Billing" / "new").iterdir()
    assert email.message_from_bytes(file.read_bytes())["X-Covey-Departments"] == "billing"
    service.stop()
    assert deliver(message(7)) == os.EX_TEMPFAIL
    service.start()
    assert deliver(message(7)) == 0
    assert len(list((tmp_path / "Billing" / "new").iterdir())) == 2
    assert not (tmp_path / "Inbox").exists()
