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
        "database_url": "postgresql://covey:pass-1234@host/covey",
        **dict.fromkeys(("broker_url", "limits_url"), "redis://covey:pass-1234@host"),
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


PUBLIC_KEY = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PORT", "70000", "less than or equal to 65535; the default is 8000"),
        ("WORKER_CONCURRENCY", "0", "greater than 0; the default is 2"),
        ("LEASE_SECONDS", "-1", "greater than 0"),
        ("LEASE_SECONDS", "inf", "finite"),
        ("KEEP_DECISIONS_DAYS", "1e9", "less than or equal to 36500"),
        ("LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
        ("MAX_BODY_BYTES", "a lot", "valid integer"),
        ("PROTOCOLS", "open_inference,grpc", "grpc is not one of"),
        ("OIDC_ISSUER", "http://id.example.org", "begins with https://"),
        ("OIDC_ROLES", "desk=owner", "desk=owner is not VALUE=ROLE"),
        ("OIDC_EMAIL_DOMAINS", "https://example.org", "is not a host name"),
        ("ENCRYPTION_KEY", "c2hvcnQ=", "key 1 must be 32 bytes"),
        ("ENCRYPTION_KEY", f"{'A' * 43}=,not base64", "key 2 must be 32 bytes"),
        ("DATA_DIR", __file__, "is a file; name a folder"),
        ("HOST", "0.0.0.0:8000", "write it without the port"),
        ("HOST", "http://127.0.0.1", "without scheme"),
        ("HOST", "", "0.0.0.0 listens on all"),
        ("HOST", "127.0.0.256", "not a host name"),
        ("WORKER_METRICS", "9100", "use HOST:PORT"),
        ("WORKER_METRICS", "127.0.0.1:0", "use HOST:PORT"),
        ("DATABASE_URL", "mysql://host/covey", "the scheme mysql is unknown"),
        ("DATABASE_URL", "postgresql:///covey", "it names no host"),
        ("DATABASE_URL", "postgresql://covey:p@ss@db/covey", "write @ as %40"),
        ("DATABASE_URL", "postgresql://covey:pa:ss/1@db/covey", "a port is not a number"),
        ("DATABASE_URL", "covey.db", "it has no scheme"),
        ("BROKER_URL", "redis://:pa/ss@broker", "a port is not a number"),
        ("BROKER_URL", "sqs://", "the scheme sqs is unknown"),
        ("LIMITS_URL", "amqp://broker", "the scheme amqp is unknown"),
        ("STORAGE_URL", "/srv/covey", "must be file:///folder or s3://"),
        ("CORS_ORIGINS", "https://desk.example/", "ends after the host or the port: https://desk.example"),
        ("CORS_ORIGINS", "https://a.example, desk.example", "desk.example is not an origin"),
        ("CORS_ORIGINS", "https://*.example", "contains a wildcard"),
        ("CORS_ORIGINS", "https://desk.example:443", "leave out the usual port"),
        ("CORS_ORIGINS", "https://Büro.example", "such as xn--bro-hoa.example"),
        ("CORS_ORIGINS", "https://me@desk.example", "ends after the host"),
        ("ALLOWED_HOSTS", "desk.example:8000", "write it without the port"),
        ("ALLOWED_HOSTS", "https://desk.example", "without scheme"),
        ("ALLOWED_HOSTS", "*.example", "contains a wildcard"),
        ("ALLOWED_HOSTS", "[::1]", "without brackets"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "10.0.0.1/8 has host bits set"),
        ("TRUSTED_PROXIES", "proxy", "such as 10.0.0.0/8"),
        ("ROOT_PATH", "tools", "not a path such as /tools/covey"),
        ("INBOUND_SENDGRID_KEYS", f"{PUBLIC_KEY},secret", "entry 2 is malformed"),
        ("INBOUND_SENDGRID_KEYS", f"{PUBLIC_KEY} front/desk", "names a router that cannot exist"),
        ("INBOUND_MAILGUN_KEYS", "key-1 desk key-2:x", "entries are separated by commas"),
        ("INBOUND_POSTMARK_CREDENTIALS", "secret-1", "it must be user:password"),
        ("INBOUND_SES_TOPICS", "mail", "it must be an ARN"),
        ("INBOUND_SES_TOPICS", "arn:aws:sns:eu-west-1:123456789012:mail", "only together"),
        ("INBOUND_SES_CERTIFICATES", "/absent/sns.pem", "cannot be read: No such file"),
        ("INBOUND_SES_CERTIFICATES", __file__, "contains no certificate"),
    ],
)
def test_a_setting_that_cannot_work_is_one_line_before_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(f"COVEY_{name}", value)
    result = CliRunner().invoke(cli, ["api"])
    (line,) = result.stderr.splitlines()
    assert result.exit_code == 2
    assert line.startswith("covey: COVEY_")
    assert name in line
    assert reason in line
    if name in {"INBOUND_MAILGUN_KEYS", "INBOUND_POSTMARK_CREDENTIALS", "ENCRYPTION_KEY"} or "_URL" in name:
        assert value not in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST", "::"),
        ("HOST", "fe80::1%eth0"),
        ("WORKER_METRICS", "[::1]:9100"),
        ("DATABASE_URL", "postgresql:///covey?host=/run/postgresql"),
        ("DATABASE_URL", "postgresql://covey:p%40ss@a.example:5432,b.example:5432/covey?sslmode=verify-full"),
        ("DATABASE_URL", "sqlite:////srv/covey.db"),
        ("BROKER_URL", "redis+socket:///run/broker.sock"),
        ("BROKER_URL", "amqps://covey:p%2Fss@broker:5671//"),
        ("STORAGE_URL", "s3://bucket/prefix?endpoint=http://127.0.0.1:9000&region=eu"),
        ("CORS_ORIGINS", "https://desk.example:8443, http://localhost:3000, http://[::1]:3000, null"),
        ("CORS_ORIGINS", "*"),
        ("ALLOWED_HOSTS", "desk, desk_1.example.org, 192.0.2.1, 2001:db8::1"),
        ("TRUSTED_PROXIES", "10.0.0.0/8, ::1, *"),
        ("INBOUND_SENDGRID_KEYS", f"{PUBLIC_KEY} desk front, {PUBLIC_KEY}"),
        ("INBOUND_POSTMARK_CREDENTIALS", "user:pass:word desk"),
    ],
)
def test_settings_that_work_are_accepted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"COVEY_{name}", value)
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
