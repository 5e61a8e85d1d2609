"""Logs tell where a fault happened, and never the words that it was about."""

from __future__ import annotations

import logging

import pytest
import structlog

from app import logs
from app.settings import Settings

WORDS = "xylograph"


def fail() -> None:
    try:
        raise ValueError(f"cannot read {WORDS}")
    except ValueError as error:
        raise RuntimeError(f"about {WORDS}") from error


@pytest.mark.parametrize("own", [True, False], ids=["our own log", "a library's log"])
def test_a_traceback_has_places_and_no_messages(own: bool, capsys: pytest.CaptureFixture[str]) -> None:
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
    said = capsys.readouterr().err
    assert "job.internal_error" in said
    assert "RuntimeError at" in said
    assert "ValueError at" in said
    assert "in fail" in said
    assert WORDS not in said
