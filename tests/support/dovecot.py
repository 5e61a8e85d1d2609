"""Dovecot for tests: an instance of its own, with its own folders, on free ports of this machine.

It serves IMAP, and LMTP with Sieve on a Unix socket, for some users with a Maildir each. It listens on a
loopback address only, and ends with the process that started it. It runs as the current user, or, if that is
root, as the users that the Debian package creates.
"""

from __future__ import annotations

import imaplib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import production
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from required import missing
from waiting import LIMIT_SECONDS, wait_for

from app.server.parent_death import end_with_parent

PASSWORD = "secret ß"  # noqa: S105 - of a server that exists only during a test
"""Password of every user."""

_CONFIGURATION = """\
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/log
protocols = imap lmtp
listen = 127.0.0.1
default_internal_user = {internal}
default_internal_group = {internal_group}
default_login_user = {login}
ssl = yes
ssl_cert = <{folder}/certificate.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_username_format = %n
auth_failure_delay = 0
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {folder}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%n
}}
first_valid_uid = 1
mail_location = maildir:~/Maildir
mailbox_list_index = no
namespace inbox {{
  inbox = yes
  prefix = {prefix}
  separator = {separator}
}}
{capability}
service imap-login {{
  {chroot}
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
  {chroot}
}}
service stats {{
  {chroot}
}}
service lmtp {{
  unix_listener {folder}/lmtp {{
    mode = 0666
  }}
}}
{sieve}
"""

_SIEVE = """\
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
        port: its IMAP port.
        tls_port: its port for IMAP over TLS.
    """

    def __init__(self, folder: Path, port: int, tls_port: int) -> None:
        self.folder = folder
        self.port = port
        self.tls_port = tls_port
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def certificate(self) -> Path:
        """The file with the certificate, which signs itself."""
        return self.folder / "certificate.pem"

    @property
    def lmtp(self) -> Path:
        """The Unix socket of the LMTP server."""
        return self.folder / "lmtp"

    def delivered(self, user: str, mailbox: str = "INBOX") -> list[bytes]:
        """Return the messages in a mailbox of a user that nobody has looked at."""
        return [file.read_bytes() for file in sorted(self.maildir(user, mailbox).glob("new/*"))]

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                ["/usr/sbin/dovecot", "-F", "-c", str(self.folder / "dovecot.conf")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
            )

        def accepts() -> bool | None:
            assert self._process is not None
            assert self._process.poll() is None, self.tail()
            with suppress(OSError, imaplib.IMAP4.abort):
                imaplib.IMAP4("127.0.0.1", self.port, LIMIT_SECONDS).shutdown()
                return True
            return None

        wait_for(accepts, what=f"Dovecot to start: {self.tail()}")

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(LIMIT_SECONDS)
            self._process = None

    def tail(self) -> str:
        """Return the end of the log."""
        parts = [self.folder / "output", self.folder / "log"]
        return "\n".join(part.read_text(errors="replace")[-3000:] for part in parts if part.exists())

    def maildir(self, user: str, folder: str = "INBOX") -> Path:
        """Return the Maildir of a folder."""
        path = self.folder / "mail" / user / "Maildir"
        return path if folder == "INBOX" else path / f".{folder}"

    @contextmanager
    def client(self, user: str, folder: str | None = None) -> Iterator[imaplib.IMAP4]:
        """Log a user in, and select a folder."""
        client = imaplib.IMAP4("127.0.0.1", self.port, LIMIT_SECONDS)
        try:
            client.authenticate("PLAIN", lambda _: f"\0{user}\0{PASSWORD}".encode())
            if folder is not None:
                status, answer = client.select(folder)
                assert status == "OK", answer
            yield client
        finally:
            with suppress(OSError, imaplib.IMAP4.error):
                client.logout()

    def append(self, user: str, message: bytes, folder: str = "INBOX") -> None:
        """Put a message into a folder."""
        with self.client(user) as client:
            status, answer = client.append(folder, "", "", message)
            assert status == "OK", answer

    def create(self, user: str, *folders: str) -> None:
        """Create folders."""
        with self.client(user) as client:
            for folder in folders:
                status, answer = client.create(folder)
                assert status == "OK", answer

    def messages(self, user: str, folder: str = "INBOX") -> list[tuple[frozenset[str], bytes]]:
        """Return flags and content of the messages in a folder, without the flag ``\\Recent``."""
        with self.client(user) as client:
            if client.select(folder, readonly=True)[0] != "OK":
                return []
            found = []
            for number in client.search(None, "ALL")[1][0].split():
                answer: list[Any] = client.fetch(number, "(FLAGS BODY.PEEK[])")[1]
                head, content = answer[0]
                rest = b"".join(part for part in answer if isinstance(part, bytes))
                flags = {flag.decode() for part in (head, rest) for flag in imaplib.ParseFlags(part)}
                found.append((frozenset(flags - {r"\Recent"}), content))
            return found

    def subjects(self, user: str, folder: str = "INBOX") -> list[str]:
        """Return the subjects of the messages in a folder."""
        return [
            next(line[9:] for line in content.decode("latin-1").splitlines() if line.startswith("Subject: "))
            for _, content in self.messages(user, folder)
        ]


@contextmanager
def server(
    users: Sequence[str],
    sieve: str = "",
    *,
    prefix: str = "",
    separator: str = ".",
    capability: str | None = None,
) -> Iterator[Dovecot]:
    """Run an instance while the block lasts. Skips the test if Dovecot is not here.

    Args:
        users: the users.
        sieve: the script that files the messages that arrive by LMTP.
        prefix: what the names of all folders but INBOX begin with.
        separator: separates the levels of folders.
        capability: what the server announces instead of everything that it can.
    """
    if shutil.which("dovecot", path="/usr/sbin") is None or not Path("/usr/lib/dovecot/lmtp").exists():
        missing("Dovecot is not installed (on Debian: dovecot-imapd, dovecot-lmtpd, dovecot-sieve)")
    own = pwd.getpwuid(os.getuid())
    is_root = own.pw_uid == 0
    internal = "dovecot" if is_root else own.pw_name
    mail = pwd.getpwnam("nobody") if is_root else own
    # A Unix socket needs a short path, and the other users of Dovecot cannot enter the folder of a test.
    with tempfile.TemporaryDirectory(prefix="covey-dovecot-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("mail", "sieve"):
            (folder / part).mkdir()
            os.chown(folder / part, mail.pw_uid, mail.pw_gid)
        (folder / "sieve" / "script.sieve").write_text(sieve)
        (folder / "users").write_text("".join(f"{user}:{PASSWORD}\n" for user in users), encoding="utf-8")
        _write_certificate(folder)
        dovecot = Dovecot(folder, production.free_port(), production.free_port())
        (folder / "dovecot.conf").write_text(
            _CONFIGURATION.format(
                folder=folder,
                internal=internal,
                internal_group=internal if is_root else _group(own.pw_gid),
                login="dovenull" if is_root else own.pw_name,
                chroot="" if is_root else "chroot =",
                uid=mail.pw_uid,
                gid=mail.pw_gid,
                prefix=prefix,
                separator=separator,
                capability=f"imap_capability = {capability}" if capability else "",
                port=dovecot.port,
                tls_port=dovecot.tls_port,
                sieve=_SIEVE.format(folder=folder) if sieve else "",
            )
        )
        try:
            dovecot.start()
            yield dovecot
        finally:
            dovecot.stop()


def _group(gid: int) -> str:
    import grp

    return grp.getgrgid(gid).gr_name


def _write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(private)
    (folder / "key.pem").chmod(0o600)
