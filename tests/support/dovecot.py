"""Dovecot for tests: an instance of its own that delivers mail by LMTP to a Maildir for each user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from required import missing
from waiting import LIMIT_SECONDS, wait_for

from app.parent_death import end_with_parent

_CONFIGURATION = """\
protocols = lmtp
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = no
auth_username_format = %n
mail_location = maildir:{folder}/mail/%n
first_valid_uid = 1
default_login_user = {user}
default_internal_user = {user}
default_internal_group = {group}
passdb {{
  driver = static
  args = nopassword=y
}}
userdb {{
  driver = passwd-file
  args = username_format=%n {folder}/users
}}
service lmtp {{
  unix_listener lmtp {{
    mode = 0666
  }}
}}
service stats {{
  unix_listener stats-writer {{
    mode = 0666
  }}
}}
protocol lmtp {{
  mail_plugins = sieve
}}
plugin {{
  sieve = file:{folder}/sieve/script.sieve
}}
"""


class Dovecot:
    """A running instance.

    Args:
        folder: its configuration, log and mail.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def lmtp(self) -> Path:
        """The Unix socket of the LMTP server."""
        return self._folder / "run" / "lmtp"

    def delivered(self, user: str, mailbox: str = "INBOX") -> list[bytes]:
        """Return the messages in a mailbox of a user."""
        folder = self._folder / "mail" / user
        if mailbox != "INBOX":
            folder /= f".{mailbox}"
        return [file.read_bytes() for file in sorted(folder.glob("new/*"))]

    def tail(self) -> str:
        """Return the end of the log."""
        log = self._folder / "log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""


@contextmanager
def server(users: Sequence[str], sieve: str = "") -> Iterator[Dovecot]:
    """Run an instance while the block lasts. Skips the test if Dovecot is not here.

    Args:
        users: the users, each with a Maildir.
        sieve: the script that files the messages of all users.
    """
    program = shutil.which("dovecot", path="/usr/sbin")
    if program is None or not Path("/usr/lib/dovecot/lmtp").exists():
        missing("Dovecot is not installed (on Debian: the packages dovecot-lmtpd and dovecot-sieve)")
    if os.getuid() != 0:
        missing("Dovecot needs root")
    owner = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="covey-dovecot-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("mail", "sieve"):
            (folder / part).mkdir()
            os.chown(folder / part, owner.pw_uid, owner.pw_gid)
        (folder / "users").write_text(
            "".join(f"{user}::{owner.pw_uid}:{owner.pw_gid}::{folder}/mail/{user}/home::\n" for user in users)
        )
        (folder / "sieve" / "script.sieve").write_text(sieve)
        (folder / "dovecot.conf").write_text(
            _CONFIGURATION.format(folder=folder, user="nobody", group="nogroup")
        )
        instance = Dovecot(folder)
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [program, "-F", "-c", str(folder / "dovecot.conf")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - calls nothing that takes a lock
            )

        def accepts() -> bool | None:
            if process.poll() is not None:
                raise RuntimeError(
                    f"Dovecot does not start: {(folder / 'output').read_text()}{instance.tail()}"
                )
            return instance.lmtp.exists() or None

        try:
            wait_for(accepts, what="Dovecot")
            yield instance
        finally:
            process.terminate()
            process.wait(LIMIT_SECONDS)
