"""Logged tracebacks state where an error happened, without the messages of exceptions."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from typing import Literal

import pytest
import structlog

from app import logs
from app.settings import Settings

WORD = "xylograph"


def fail() -> None:
    try:
        raise ValueError(f"cannot read {WORD}")
    except ValueError as error:
        raise RuntimeError(f"about {WORD}") from error


@pytest.mark.parametrize("own", [True, False], ids=["our own log", "a library's log"])
def test_a_traceback_has_no_messages(own: bool, capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLogger().handlers
    logs.configure(Settings())
    try:
        try:
            fail()
        except RuntimeError:
            (structlog.get_logger("test") if own else logging.getLogger("library")).exception(
                "job.internal_error"
            )
    finally:
        logging.getLogger().handlers = before
        structlog.reset_defaults()
    output = capsys.readouterr().err
    assert "job.internal_error" in output
    assert "RuntimeError at" in output
    assert "ValueError at" in output
    assert "in fail" in output
    assert WORD not in output


def test_a_line_has_the_id_of_its_request(capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLogger().handlers
    logs.configure(Settings(log_format="json"))
    token = logs.REQUEST.set(logs.RequestIds("req_1"))
    try:
        structlog.get_logger("test").info("job.started")
        logging.getLogger("library").warning("slow")
    finally:
        logs.REQUEST.reset(token)
        logging.getLogger("library").warning("later")
        logging.getLogger().handlers = before
        structlog.reset_defaults()
    own, of_library, later = map(json.loads, capsys.readouterr().err.splitlines())
    assert own["request_id"] == of_library["request_id"] == "req_1"
    assert "request_id" not in later


def test_a_warning_of_python_is_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    before, show = logging.getLogger().handlers, warnings.showwarning
    logging.captureWarnings(False)  # an earlier test may have configured logs inside pytest's capture
    logs.configure(Settings(log_format="json"))
    try:
        warnings.showwarning("it is old", DeprecationWarning, "library.py", 7)
    finally:
        logging.captureWarnings(False)
        warnings.showwarning = show
        logging.getLogger().handlers = before
        structlog.reset_defaults()
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert line["level"] == "warning"
    assert "library.py:7: DeprecationWarning: it is old" in line["event"]


@pytest.mark.parametrize(
    ("terminal", "chosen", "first"), [(True, "auto", "\x1b"), (False, "auto", "{"), (True, "json", "{")]
)
def test_a_terminal_gets_lines_for_people_and_a_file_gets_json(
    terminal: bool,
    chosen: Literal["auto", "json"],
    first: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = logging.getLogger().handlers
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    logs.configure(Settings(log_format=chosen))
    try:
        structlog.get_logger("test").info("job.started")
    finally:
        logging.getLogger().handlers = before
        structlog.reset_defaults()
    assert capsys.readouterr().err.startswith(first)
