"""The access log has a line for every request that fails, and for as many others as the setting says."""

from __future__ import annotations

from typing import Any

import pytest
from captured_logs import captured_logs

from app.api import access_log
from app.api.access_log import LINES_PER_SECOND, AccessLog
from app.settings import Settings


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock; tests replace its only entry."""
    now = [1000.0]
    monkeypatch.setattr("app.api.access_log.time.monotonic", lambda: now[0])
    return now


def write(log: AccessLog, n: int, *, status: int = 200, operation: str = "models_predict") -> list[Any]:
    with captured_logs(access_log) as lines:
        for _ in range(n):
            log.write("POST", "/v1/models/m/predict", operation, status, 0.0123)
    return lines


def test_every_request_is_logged_if_requests_are_rare(clock: list[float]) -> None:
    log = AccessLog(Settings())
    for _ in range(50):
        (line,) = write(log, 1)
        assert line == {
            "event": "request",
            "log_level": "info",
            "method": "POST",
            "operation": "models_predict",
            "status": 200,
            "milliseconds": 12.3,
        }
        clock[0] += 1 / LINES_PER_SECOND


def test_frequent_requests_are_sampled_and_the_others_counted(clock: list[float]) -> None:
    log = AccessLog(Settings())
    assert len(write(log, 1000)) == LINES_PER_SECOND
    assert len(write(log, 5, operation="routers_route_message")) == 5, "each operation has its own sample"
    clock[0] += 1
    lines = write(log, 3)
    assert [line.get("skipped") for line in lines] == [1000 - LINES_PER_SECOND, None, None]


@pytest.mark.parametrize("status", [0, 400, 429, 500, 503])
@pytest.mark.parametrize("setting", ["all", "sampled", "errors"])
def test_every_failure_is_logged(setting: Any, status: int, clock: list[float]) -> None:
    log = AccessLog(Settings(access_log=setting))
    write(log, 2 * LINES_PER_SECOND)
    assert len(write(log, 100, status=status)) == 100


def test_the_setting_decides_about_successful_requests(clock: list[float]) -> None:
    assert len(write(AccessLog(Settings(access_log="all")), 1000)) == 1000
    assert write(AccessLog(Settings(access_log="errors")), 1000) == []


def test_health_checks_are_debug_messages(clock: list[float]) -> None:
    with captured_logs(access_log) as lines:
        AccessLog(Settings(access_log="all")).write("GET", "/health/live", "health_live", 200, 0.001)
    assert [line["log_level"] for line in lines] == ["debug"]
