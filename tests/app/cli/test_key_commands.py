"""``covey keys``, and the options of commands that talk to a service."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.main import cli


@pytest.fixture
def data(tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a migrated database; a command changes the variable of the test only."""
    monkeypatch.setenv("COVEY_DATA_DIR", str(tmp_path))
    shutil.copyfile(migrated_sqlite, tmp_path / "covey.db")
    return tmp_path


def covey(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_keys_are_listed_rotated_and_deleted(data: Path) -> None:
    folder = ("--data", str(data))
    assert covey("keys", "list", *folder).stdout == ""
    for name, scope in (("first", "admin"), ("mail gateway", "predict")):
        assert covey("keys", "create", "--name", name, "--scope", scope, *folder).exit_code == 0
    gateway, first = covey("keys", "list", *folder).stdout.splitlines()
    assert gateway.endswith("mail gateway")
    assert "predict" in gateway
    assert "never used" in gateway
    key_id = gateway.split()[0]

    rotated = covey("keys", "rotate", key_id, "--grace-seconds", "0", *folder)
    assert rotated.stdout.startswith("cov_")
    assert covey("keys", "delete", key_id, *folder).exit_code == 0
    assert covey("keys", "list", *folder).stdout.splitlines() == [first]
    unknown = covey("keys", "delete", key_id, *folder)
    assert (unknown.exit_code, unknown.stderr) == (1, f"covey: there is no key {key_id}\n")
    last = covey("keys", "delete", first.split()[0], *folder)
    assert last.exit_code == 1
    assert "the last valid key with the scope admin" in last.stderr


def test_an_experiment_is_sent_to_the_service_of_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVEY_URL", "http://127.0.0.1:1")
    file = tmp_path / "experiment.yaml"
    file.write_text("dataset_id: ds_1\n")
    assert "cannot connect to the service at http://127.0.0.1:1" in covey("experiment", str(file)).stderr
