"""If a process cannot start, it prints one line with the reason and what to do."""

from __future__ import annotations

from pathlib import Path

import production
import pytest
from commands import covey

pytestmark = pytest.mark.system


def start_error(*words: str, database_url: str) -> str:
    """Run a command that cannot start, check its exit status, and return its error message."""
    environment = {"COVEY_DATABASE_URL": database_url, "COVEY_LOG_LEVEL": "error"}
    result = covey(*words, environment=environment)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize("command", ["api", "worker"])
def test_a_database_without_tables_must_be_migrated(command: str, tmp_path: Path) -> None:
    error = start_error(command, database_url=f"sqlite:///{tmp_path / 'empty.db'}")
    assert error.startswith("covey: the database is at revision none")
    assert "run `covey migrate`" in error


@pytest.mark.parametrize("command", ["api", "worker"])
def test_an_unavailable_database_is_reported(command: str) -> None:
    port = production.free_port()
    error = start_error(command, database_url=f"postgresql://covey:secret@127.0.0.1:{port}/covey")
    assert error.startswith("covey: the database is unavailable: ")
    assert f"port {port}" in error
    assert "secret" not in error
