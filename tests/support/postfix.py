"""Postfix for tests: an instance of its own, with its own folders, on a free port of this machine.

It accepts mail for some addresses of ``example.org``, and delivers it to a Maildir for each user. It listens
on a loopback address only, and ends with the process that started it. Postfix needs root, because its parts
run as several users.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import smtplib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import production
from required import missing
from waiting import LIMIT_SECONDS, wait_for

from app.server.parent_death import end_with_parent

DOMAIN = "example.org"
"""The domain whose mail is delivered."""

MASTER = "/usr/lib/postfix/sbin/master"
"""The main process. It stays in the foreground, unlike what ``postfix start`` does."""

_MASTER = """\
127.0.0.1:{port} inet n - n - - smtpd{filter}
pickup    unix  n - n 1  1 pickup
cleanup   unix  n - n - 0 cleanup
qmgr      unix  n - n 5 1 qmgr
rewrite   unix  - - n - - trivial-rewrite
bounce    unix  - - n - 0 bounce
defer     unix  - - n - 0 bounce
trace     unix  - - n - 0 bounce
verify    unix  - - n - 1 verify
proxymap  unix  - - n - - proxymap
smtp      unix  - - n - - smtp
lmtp      unix  - - n - - lmtp
relay     unix  - - n - - smtp
showq     unix  n - n - - showq
error     unix  - - n - - error
retry     unix  - - n - - error
discard   unix  - - n - - discard
virtual   unix  - n n - - virtual
local     unix  - n n - - local
anvil     unix  - - n - 1 anvil
scache    unix  - - n - 1 scache
postlog   unix-dgram n - n - 1 postlogd
"""

_MAIN = {
    "compatibility_level": "3.6",
    "myhostname": "mail.example.org",
    "mydestination": "",
    "inet_interfaces": "127.0.0.1",
    "inet_protocols": "ipv4",
    "mynetworks": "127.0.0.0/8",
    "smtp_host_lookup": "native",
    "alias_maps": "",
    "alias_database": "",
    "local_recipient_maps": "",
    "virtual_mailbox_domains": DOMAIN,
    "virtual_mailbox_maps": "texthash:{folder}/mailboxes",
    "virtual_uid_maps": "static:{uid}",
    "virtual_gid_maps": "static:{uid}",
    "virtual_minimum_uid": "1",
    "virtual_mailbox_base": "{folder}/mail",
    "queue_directory": "{folder}/queue",
    "data_directory": "{folder}/data",
    "maillog_file": "{folder}/log",
    "maillog_file_prefixes": "{folder}",
    # Deferred mail is tried again soon, also if the test does not ask for it.
    "queue_run_delay": "5s",
    "minimal_backoff_time": "5s",
    "maximal_backoff_time": "5s",
    "smtp_tls_security_level": "none",
    "recipient_delimiter": "",
}


class Postfix:
    """A running instance.

    Args:
        folder: its configuration, queue, log and delivered mail.
        port: its SMTP port.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def sendmail(self) -> list[str]:
        """Return the ``sendmail`` command of this instance."""
        return ["/usr/sbin/sendmail", "-C", str(self.folder)]

    def submit(self, message: bytes, recipients: Sequence[str], sender: str = "ann@example.com") -> None:
        """Hand a message over by SMTP. Returns when Postfix has it in its queue."""
        with smtplib.SMTP("127.0.0.1", self.port, timeout=LIMIT_SECONDS) as smtp:
            smtp.sendmail(sender, list(recipients), message.replace(b"\r", b"").replace(b"\n", b"\r\n"))

    def delivered(self, user: str) -> list[bytes]:
        """Return the messages that were delivered to a user, in the order of their arrival."""
        files = (self.folder / "mail" / user / "new").glob("*")
        return [file.read_bytes() for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]

    def queue(self) -> list[dict[str, object]]:
        """Return the messages in the queue."""
        command = ["/usr/sbin/postqueue", "-c", str(self.folder), "-j"]
        lines = subprocess.run(command, capture_output=True, check=True, timeout=LIMIT_SECONDS).stdout
        return [json.loads(line) for line in lines.splitlines()]

    def wait_for_deferred(self, n: int) -> None:
        """Wait until as many messages wait in the queue for another attempt."""

        def deferred() -> bool | None:
            return sum(item["queue_name"] == "deferred" for item in self.queue()) >= n or None

        wait_for(deferred, what=f"{n} deferred messages; {self.tail()}")

    def wait_until_empty(self) -> None:
        """Let Postfix try all messages again, until none is in the queue."""

        def is_empty() -> bool | None:
            if not self.queue():
                return True
            self.control("flush")
            return None

        wait_for(is_empty, what=f"an empty queue; {self.tail()}")

    def tail(self) -> str:
        """Return the end of the log."""
        log = self.folder / "log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""

    def control(self, verb: str) -> None:
        """Run a verb of the command ``postfix``."""
        command = ["/usr/sbin/postfix", "-c", str(self.folder), verb]
        subprocess.run(command, capture_output=True, check=True, timeout=LIMIT_SECONDS)


@contextmanager
def server(
    users: Sequence[str],
    main: Mapping[str, str] | None = None,
    *,
    master: str = "",
    content_filter: str | None = None,
) -> Iterator[Postfix]:
    """Run an instance while the block lasts. Skips the test if Postfix is not here.

    Args:
        users: the users of the domain, each with a Maildir.
        main: parameters to add to ``main.cf``.
        master: services to add to ``master.cf``; ``{folder}`` stands for its folder.
        content_filter: the filter of messages that arrive by SMTP.
    """
    if shutil.which("postfix", path="/usr/sbin") is None:
        missing("Postfix is not installed (on Debian: the package postfix)")
    if os.getuid() != 0:
        missing("Postfix needs root")
    # The other users of Postfix cannot enter the folder of a test.
    with tempfile.TemporaryDirectory(prefix="covey-postfix-") as name:
        folder, port = Path(name), production.free_port()
        _configure(folder, port, users, main or {}, master, content_filter)
        instance = Postfix(folder, port)
        instance.control("check")  # creates the queue
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [MASTER, "-c", str(folder), "-d"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - calls nothing that takes a lock
            )

        def accepts() -> bool | None:
            if process.poll() is not None:
                log = (folder / "output").read_text() + instance.tail()
                raise RuntimeError(f"Postfix does not start: {log}")
            with suppress(OSError), smtplib.SMTP("127.0.0.1", port, timeout=LIMIT_SECONDS):
                return True
            return None

        try:
            wait_for(accepts, what="Postfix")
            yield instance
        finally:
            process.terminate()
            process.wait(LIMIT_SECONDS)


def _configure(
    folder: Path,
    port: int,
    users: Sequence[str],
    main: Mapping[str, str],
    master: str,
    content_filter: str | None,
) -> None:
    folder.chmod(0o755)
    uid = _uid("nobody")
    for part, owner in (("queue", 0), ("data", _uid("postfix")), ("mail", uid)):
        (folder / part).mkdir()
        os.chown(folder / part, owner, -1)
    option = "" if content_filter is None else f"\n  -o content_filter={content_filter}"
    (folder / "master.cf").write_text(
        _MASTER.format(port=port, filter=option) + master.replace("{folder}", str(folder))
    )
    (folder / "mailboxes").write_text("".join(f"{user}@{DOMAIN} {user}/\n" for user in users))
    parameters = {name: value.replace("{folder}", str(folder)) for name, value in {**_MAIN, **main}.items()}
    lines = [f"{name} = {value.replace('{uid}', str(uid))}\n" for name, value in parameters.items()]
    (folder / "main.cf").write_text("".join(lines))


def _uid(user: str) -> int:
    return pwd.getpwnam(user).pw_uid
