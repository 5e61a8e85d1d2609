"""Every setting is described, documented and used."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

import pytest
import settings_page
import structlog
from pydantic import ValidationError
from typer.testing import CliRunner

from app.cli.main import cli
from app.settings import CLIENT_VARIABLES, Settings
from app.threads import REQUESTS, STORAGE

ROOT = Path(__file__).parents[1]
TEST_VARIABLES = {"COVEY_DATA", "COVEY_TEST_DATABASE_URL"}


def test_the_settings_page_is_up_to_date() -> None:
    written = settings_page.PAGE.read_text(encoding="utf-8")
    assert written == settings_page.page(), "run: .venv/bin/python tests/support/settings_page.py"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_in_a_sentence(name: str) -> None:
    sentence = settings_page.sentence(Settings.model_fields[name])
    assert re.fullmatch(r"[A-Z].{15,}\.", sentence), sentence
    assert "|" not in sentence, "it would break the table"


def test_a_secret_is_hidden() -> None:
    secrets = {
        **dict.fromkeys(("database_url", "broker_url", "limits_url"), "redis://covey:pass-1234@host"),
        "inbound_mailgun_keys": "pass-1234",
        "inbound_postmark_credentials": "covey:pass-1234",
        "encryption_key": b64encode(b"pass-1234".ljust(32)).decode(),
    }
    settings = Settings.model_validate(secrets)
    for shown in (repr(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert not [secret for secret in secrets.values() if secret in shown]


def test_each_thread_of_requests_can_have_a_connection() -> None:
    assert Settings().database_connections >= REQUESTS.size + STORAGE.size


def test_every_setting_is_used() -> None:
    used = {
        node.attr
        for package in ("app", "workers")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert set(Settings.model_fields) - used == set()


def test_every_documented_variable_exists() -> None:
    variables = {settings_page.variable(name) for name in Settings.model_fields}
    variables |= TEST_VARIABLES | CLIENT_VARIABLES
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts += [path for package in ("app", "workers") for path in (ROOT / package).rglob("*.py")]
    mentioned = {
        (variable, path.name)
        for path in texts
        for variable in re.findall(r"\bCOVEY_[A-Z][A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    assert {(variable, name) for variable, name in mentioned if variable not in variables} == set()


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVEY_WORKER_CONCURRENCY", "7")
    assert Settings().worker_concurrency == 7


def test_a_variable_that_is_no_setting_is_logged_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handlers = logging.getLogger().handlers
    monkeypatch.setattr(os, "execv", lambda *_: None)
    monkeypatch.setenv("COVEY_QUEUE_AHEAD", "3")
    monkeypatch.setenv("COVEY_API_KEY", "cov_secret")
    try:
        result = CliRunner().invoke(cli, ["worker"])
    finally:
        logging.getLogger().handlers = handlers
        structlog.reset_defaults()
    (line,) = result.output.splitlines()
    entry = json.loads(line)
    assert (entry["event"], entry["level"]) == ("settings.unknown", "warning")
    assert "COVEY_QUEUE_AHEAD" in entry["variables"]
    assert set(entry["variables"]).isdisjoint({"COVEY_API_KEY", "COVEY_JOB_NICENESS"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COVEY_PORT", "70000"),
        ("COVEY_WORKER_CONCURRENCY", "0"),
        ("COVEY_LEASE_SECONDS", "-1"),
        ("COVEY_LOG_LEVEL", "loud"),
        ("COVEY_MAX_BODY_BYTES", "a lot"),
        ("COVEY_ENCRYPTION_KEY", "c2hvcnQ="),
        ("COVEY_ENCRYPTION_KEY", f"{'A' * 43}=,not base64"),
    ],
)
def test_an_invalid_value_is_rejected(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=name.removeprefix("COVEY_").lower()):
        Settings()


def test_an_encryption_key_is_base64_and_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bytes(range(32)), b"\xff" * 32
    keys = f"{b64encode(first).decode()}, {urlsafe_b64encode(second).decode()}"
    monkeypatch.setenv("COVEY_ENCRYPTION_KEY", keys)
    settings = Settings()
    assert settings.encryption_keys() == [first, second]
    assert "AAEC" not in repr(settings)
    monkeypatch.setenv("COVEY_ENCRYPTION_KEY", f"{keys}, AAECshort")
    with pytest.raises(ValidationError, match="key 3 must be 32 bytes in base64") as rejected:
        Settings()
    assert "AAEC" not in str(rejected.value)
