"""Send mail through real mail servers while everything of Covey is killed, stopped and upgraded.

    python -m benchmarks.mail_chaos
    python -m benchmarks.mail_chaos --messages 2000 --seed 1

Four of ten messages go through Postfix and ``covey route`` (the recipe of a pipe), four through Postfix and
``covey smtp``, and two through ``covey imap`` with Dovecot. Some messages have two recipients, and some have
raw 8-bit header fields. Faults occur at moments that the seed determines, and once, in the middle, the
environment of the commands is upgraded in place: for half a minute its packages vanish one by one and
return one by one. Then everything runs again, and the script waits until all queues are empty.

Prints what was delivered once, twice, returned to its sender, or lost. The exit status is 1 if a message was
lost or returned, or delivered twice although no ``covey smtp`` was killed after the next hop had accepted it,
which SMTP itself cannot tell from a failure (RFC 5321, section 6.1).
"""

from __future__ import annotations

import argparse
import email
import itertools
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import venv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import command_relay
import dovecot
import httpx
import postfix
import production
from mail_recipes import recipe, smtp_filter
from stack import Stack, departments
from waiting import wait_for

from app.server.parent_death import end_with_parent

ROOT = Path(__file__).parents[1]
USERS = ["billing", "shipping", "support", "sales", "desk", "office"]
PAUSE_SECONDS = (2.0, 6.0)
"""Shortest and longest time between two faults."""

MESSAGES_PER_SECOND = 8.0
QUEUE_SECONDS = 900.0
"""How long to wait until all queues are empty, at the end."""

UPGRADE_SECONDS = 30.0


class Environment:
    """An installation of Covey whose packages can vanish: links to those of this environment.

    Args:
        folder: a new folder.
    """

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        (self._site,) = folder.glob("lib/*/site-packages")
        self.command = folder / "bin" / "covey"
        own = {name: ROOT / name for name in ("app", "models", "workers", "migrations")}
        installed = Path(sysconfig.get_path("purelib")).iterdir()
        self._links = {**{path.name: path for path in installed if path.suffix != ".pth"}, **own}
        for name in self._links:
            self._install(name)
        script = (ROOT / "app/cli/entry.py").read_text().partition("\n")[2]
        self.command.write_text(f"#!{folder / 'bin' / 'python'}\n{script}")
        self.command.chmod(0o755)

    def upgrade(self, rng: random.Random) -> None:
        """Remove packages one by one, then install them one by one, as an installer does."""
        names = sorted(self._links)
        pause = UPGRADE_SECONDS / 2 / len(names)
        for name in rng.sample(names, len(names)):
            (self._site / name).unlink()
            time.sleep(pause)
        for name in rng.sample(names, len(names)):
            self._install(name)
            time.sleep(pause)

    def _install(self, name: str) -> None:
        (self._site / name).symlink_to(self._links[name])


@dataclass
class Daemon:
    """A command that is started again a second after it has ended, as systemd does.

    Attributes:
        words: the command.
        environment: its environment.
        log: its log.
        starts: number of starts.
    """

    words: Sequence[str]
    environment: dict[str, str]
    log: Path
    starts: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _wanted: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._wanted.set()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self._wanted.wait(0.2):
                continue
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.words,
                    env=self.environment,
                    cwd=self.log.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - takes no lock
                )
            self.starts += 1
            self._process.wait()
            self._ended.wait(1.0)

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def stop(self) -> None:
        """Stop the process until ``start``."""
        self._wanted.clear()
        self.signal(signal.SIGTERM)

    def start(self) -> None:
        """Start the process again."""
        self._wanted.set()

    def close(self) -> None:
        """Stop the process for ever."""
        self._ended.set()
        self.stop()
        self._thread.join()


@dataclass
class Result:
    """The outcome of the messages of one path.

    Attributes:
        path: how they went.
        expected: numbers of the messages, each with the number of its copies.
        found: the same, as delivered.
        returned: number of recipients to whom a message was not delivered, as the log of Postfix says.
    """

    path: str
    expected: Counter[int]
    found: Counter[int]
    returned: int

    @property
    def lost(self) -> int:
        """Number of missing copies."""
        return sum((self.expected - self.found).values())

    @property
    def doubled(self) -> int:
        """Number of copies too many."""
        return sum((self.found - self.expected).values())


def main() -> int:
    """Run the chaos, and print the outcomes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory(prefix="covey-mail-chaos-") as folder:
        Path(folder).chmod(0o755)
        results, faults, kills_of_filter = run(Path(folder), arguments.messages, rng)
    print(
        f"{sum(faults.values())} faults: {', '.join(f'{n} × {what}' for what, n in sorted(faults.items()))}"
    )
    failed = False
    for result in results:
        print(
            f"{result.path:<22}{sum(result.expected.values()):>6} copies expected, {result.lost} lost, "
            f"{result.returned} returned to the sender, {result.doubled} twice"
        )
        may_double = result.path == "covey smtp" and result.doubled <= kills_of_filter
        failed = failed or bool(result.lost or result.returned or (result.doubled and not may_double))
    return 1 if failed else 0


def run(folder: Path, n_messages: int, rng: random.Random) -> tuple[list[Result], Counter[str], int]:
    """Send the messages while faults occur.

    Returns:
        the results, the numbers of faults, and how often the filter was killed.
    """
    _train(folder / "data")
    installed, port = Environment(folder / "environment"), production.free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "COVEY_URL": url,
        "COVEY_IMAP_PASSWORD": dovecot.PASSWORD,
        "COVEY_API_KEY": "",
    }
    filter_port, next_port = production.free_port(), production.free_port()

    with ExitStack() as stack:

        def daemon(name: str, *words: str) -> Daemon:
            started = Daemon([str(installed.command), *words], environment, folder / f"{name}.log")
            stack.callback(started.close)
            return started

        serve = daemon("serve", "serve", "--data", str(folder / "data"), "--port", str(port))
        wait_for(lambda: _is_ready(url) or None, what="the service", seconds=120)
        smtp = daemon(
            *("smtp", "smtp", "--router", "frontdesk", "--url", url),
            *("--listen", f"127.0.0.1:{filter_port}", "--next-hop", f"127.0.0.1:{next_port}"),
        )
        content_filter, services = smtp_filter(filter_port, next_port)
        filtered = stack.enter_context(postfix.server(USERS, master=services, content_filter=content_filter))
        piped = stack.enter_context(_piped(installed, environment))
        mailboxes = stack.enter_context(dovecot.server(["office"]))
        watcher = daemon(
            *("imap", "imap", "--router", "frontdesk", "--url", url, "--host", "127.0.0.1"),
            *("--port", str(mailboxes.port), "--security", "none", "--user", "office", "--existing"),
            *("--state", str(folder / "imap.json"), "--folder", "{label}", "--fallback-folder", "Other"),
            *("--review-folder", "Review", "--create"),
        )
        chaos = Chaos(rng, serve, smtp, watcher, folder / "data", url, installed)
        expected = _submit(n_messages, rng, filtered, piped, mailboxes, chaos)
        chaos.stop()
        deadline = time.monotonic() + QUEUE_SECONDS
        for server in (filtered, piped):
            while server.queue() and time.monotonic() < deadline:
                server.control("flush")
                time.sleep(2)
        while mailboxes.messages("office") and time.monotonic() < deadline:
            time.sleep(2)
        results = [
            Result("covey route", expected["route"], _delivered(piped), _returned(piped)),
            Result("covey smtp", expected["smtp"], _delivered(filtered), _returned(filtered)),
            Result("covey imap", expected["imap"], _in_folders(mailboxes), 0),
        ]
        return results, chaos.faults, chaos.kills_of_filter


class Chaos:
    """Faults at random moments, in a thread."""

    def __init__(
        self,
        rng: random.Random,
        serve: Daemon,
        smtp: Daemon,
        watcher: Daemon,
        data: Path,
        url: str,
        installed: Environment,
    ) -> None:
        self.faults: Counter[str] = Counter()
        self.kills_of_filter = 0
        self._rng = random.Random(rng.random())  # noqa: S311 - no secret
        self._serve, self._smtp, self._watcher = serve, smtp, watcher
        self._data, self._url, self._installed = data, url, installed
        self._stop = threading.Event()
        self._upgrades: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def upgrade(self) -> None:
        """Upgrade the environment in place, beside the other faults."""
        self.faults["upgrade in place"] += 1
        self._upgrades.append(threading.Thread(target=self._installed.upgrade, args=(self._rng,)))
        self._upgrades[-1].start()

    def stop(self) -> None:
        """End the faults, and let everything run again."""
        self._stop.set()
        self._thread.join()
        for upgrade in self._upgrades:
            upgrade.join()
        for daemon in (self._serve, self._smtp, self._watcher):
            daemon.start()

    def _run(self) -> None:
        faults: dict[str, Callable[[], object]] = {
            "API killed": lambda: self._kill("covey-api"),
            "API frozen for 5 s": self._freeze,
            "service killed": lambda: self._serve.signal(signal.SIGKILL),
            "service stopped for 8 s": lambda: self._stopped(self._serve, 8),
            "filter killed": self._kill_filter,
            "filter stopped for 5 s": lambda: self._stopped(self._smtp, 5),
            "watcher killed": lambda: self._watcher.signal(signal.SIGKILL),
            "database locked for 5 s": self._lock,
        }
        while not self._stop.wait(self._rng.uniform(*PAUSE_SECONDS)):
            name = self._rng.choice(sorted(faults))
            self.faults[name] += 1
            faults[name]()

    def _kill_filter(self) -> None:
        self.kills_of_filter += 1
        self._smtp.signal(signal.SIGKILL)

    def _kill(self, name: str, number: int = signal.SIGKILL) -> list[int]:
        """Send a signal to the processes of the service with a name."""
        pids = [pid for pid in _processes(name) if str(self._data) in _environment_of(pid)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def _freeze(self) -> None:
        frozen = self._kill("covey-api", signal.SIGSTOP)
        self._stop.wait(5)
        for pid in frozen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _stopped(self, daemon: Daemon, seconds: float) -> None:
        daemon.stop()
        self._stop.wait(seconds)
        daemon.start()

    def _lock(self) -> None:
        with suppress(sqlite3.Error):
            connection = sqlite3.connect(self._data / "covey.db", isolation_level=None, timeout=5)
            connection.execute("BEGIN IMMEDIATE")
            self._stop.wait(5)
            connection.execute("ROLLBACK")
            connection.close()


def _submit(
    n_messages: int,
    rng: random.Random,
    filtered: postfix.Postfix,
    piped: postfix.Postfix,
    mailboxes: dovecot.Dovecot,
    chaos: Chaos,
) -> dict[str, Counter[int]]:
    """Send the messages at a steady rate. Return how many copies of each must arrive, by path."""
    expected: dict[str, Counter[int]] = {name: Counter() for name in ("route", "smtp", "imap")}
    began = time.monotonic()
    for number in range(n_messages):
        time.sleep(max(began + number / MESSAGES_PER_SECOND - time.monotonic(), 0.0))
        if number == n_messages // 2:
            chaos.upgrade()
        path = "route" if number % 5 < 2 else "smtp" if number % 5 < 4 else "imap"
        message = _message(number, rng)
        recipients = [f"{user}@{postfix.DOMAIN}" for user in rng.sample(USERS, 2 if number % 7 == 0 else 1)]
        if path == "imap":
            mailboxes.append("office", message)
            expected[path][number] = 1
        else:
            (piped if path == "route" else filtered).submit(message, recipients)
            expected[path][number] = len(recipients)
    return expected


_TOPICS = ("invoice refund payment charged", "parcel courier address late", "password login error crash")


def _message(number: int, rng: random.Random) -> bytes:
    subject = b"R\xfcckfrage " if number % 11 == 0 else b"Question "
    head = b"From: Ann <ann@example.com>\r\nSubject: " + subject + str(number).encode()
    body = f"Hello,\r\n\r\n{rng.choice(_TOPICS)}\r\n.\r\nAnn {number}\r\n"
    return head + f"\r\nMessage-ID: <{number}@example.com>\r\n\r\n{body}".encode()


def _train(data: Path) -> None:
    """Train the model of the router that the recipes name."""
    stack = Stack(data).start()
    try:
        job = stack.train(stack.dataset(departments(60))["id"], model="frontdesk")
        assert stack.finished(job["id"])["state"] == "succeeded"
        router = {"model": "frontdesk", "fallback": f"desk@{postfix.DOMAIN}"}
        stack.call("PUT", "/v1/routers/frontdesk", 200, json=router)
    finally:
        stack.stop()


@contextmanager
def _piped(installed: Environment, environment: dict[str, str]) -> Iterator[postfix.Postfix]:
    """Run Postfix with the recipe of the pipe, whose command is that of the environment."""

    def run(words: Sequence[str], message: bytes) -> int:
        command = [str(installed.command), *words]
        return subprocess.run(command, input=message, env=environment, check=False).returncode

    master = recipe("postfix-filter")
    content_filter, command = (re.search(rf"{name}=(\S+)", master) for name in ("content_filter", "argv"))
    first = re.search(r"^\w+ +unix", master, re.MULTILINE)
    assert content_filter is not None
    assert command is not None
    assert first is not None
    with command_relay.relay(run) as script:
        services = (
            master[first.start() :].replace(command[1], str(script)).replace("user=covey", "user=nobody")
        )
        services = services.replace("/usr/sbin/sendmail", "/usr/sbin/sendmail -C {folder}")
        with postfix.server(USERS, master=services, content_filter=content_filter[1]) as server:
            yield server


def _delivered(server: postfix.Postfix) -> Counter[int]:
    return Counter(_number(message) for user in USERS for message in server.delivered(user))


def _in_folders(mailboxes: dovecot.Dovecot) -> Counter[int]:
    """Return the messages in all folders, the mailbox included."""
    maildir = mailboxes.maildir("office")
    files = itertools.chain(maildir.glob("*/*"), maildir.glob(".*/*/*"))
    return Counter(_number(file.read_bytes()) for file in files if file.parent.name in ("new", "cur"))


def _number(message: bytes) -> int:
    return int(
        str(email.message_from_bytes(message)["Message-ID"]).strip().removeprefix("<").partition("@")[0]
    )


def _returned(server: postfix.Postfix) -> int:
    return (server.folder / "log").read_text(errors="replace").count("status=bounced")


def _is_ready(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{url}/health/ready", trust_env=False).status_code == 200
    return False


def _processes(name: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if (entry / "comm").read_text().strip() == name:
                    found.append(int(entry.name))
    return found


def _environment_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return ""


if __name__ == "__main__":
    sys.exit(main())
