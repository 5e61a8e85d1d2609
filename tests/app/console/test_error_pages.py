"""Errors of pages are pages too, also if nobody expected them."""

from __future__ import annotations

import pytest
from console_visitors import visitor
from in_process_api import InProcessApi
from sqlalchemy.exc import OperationalError

from app.console import health


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let the page of health fail."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(health, "check_readiness", fail)


def test_an_internal_error_is_a_page_with_the_reference_of_the_log(
    api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, RuntimeError("secret detail"))
    response = visitor(api, "read").get("/console/health")
    assert response.status_code == 500
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert f"request <code>{response.headers['x-request-id']}</code>" in response.text
    assert "internal_error" in response.text
    assert "secret detail" not in response.text
    assert "Try again" in response.text


def test_a_page_without_a_database_says_so_and_when_to_try_again(
    api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, OperationalError("SELECT 1", {}, Exception("the connection was refused")))
    response = visitor(api, "read").get("/console/health")
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert "The database is unavailable; try again." in response.text
    assert f"request <code>{response.headers['x-request-id']}</code>" in response.text
    assert "SELECT" not in response.text


def test_a_visitor_sees_a_page_if_nobody_can_tell_who_it_is(
    api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(_: str) -> None:
        raise OperationalError("SELECT 1", {}, Exception("the connection was refused"))

    person = visitor(api, "read")
    monkeypatch.setattr(api.app.state.authenticator, "authenticate", find)
    html = person.see("/console/models", 503)
    assert "The database is unavailable; try again." in html
    assert "/console/datasets" not in html, "the page shows no links to pages"
