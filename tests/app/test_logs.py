"""Logged tracebacks state where an error happened, without the messages of exceptions."""

from __future__ import annotations

import logging

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
