"""A process that cannot start says why, and what to do, in one line."""

from __future__ import annotations

from pathlib import Path

import production
import pytest
from commands import covey

pytestmark = pytest.mark.system


def started(*words: str, database_url: str) -> str:
    """What a command says that must not start."""
    environment = {"COVEY_DATABASE_URL": database_url, "COVEY_LOG_LEVEL": "warning"}
    ran = covey(*words, environment=environment)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.count("\n") == 1, ran.stderr
    return ran.stderr


@pytest.mark.parametrize("command", ["api", "worker"])
def test_a_database_without_tables_has_to_be_migrated_first(command: str, tmp_path: Path) -> None:
    said = started(command, database_url=f"sqlite:///{tmp_path / 'empty.db'}")
    assert said.startswith("covey: the database is at revision none")
    assert "run `covey migrate`" in said


@pytest.mark.parametrize("command", ["api", "worker"])
def test_a_database_that_is_away_is_named_as_the_reason(command: str) -> None:
    port = production.free_port()
    said = started(command, database_url=f"postgresql://covey:secret@127.0.0.1:{port}/covey")
    assert said.startswith("covey: the database is unavailable: ")
    assert f"port {port}" in said
    assert "secret" not in said
