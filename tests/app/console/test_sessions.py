"""The session of the console: what its cookie permits, and when it ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from httpx import Response
from in_process_api import InProcessApi
from sqlalchemy import select, update

from app.console.sessions import COOKIE, csrf_token
from app.db import tables
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyRotate
from app.maintenance.retention import apply_retention

NO_KEY = {"Authorization": ""}


def create_key(api: InProcessApi, *scopes: Any) -> ApiKeyCreated:
    return keys.create(api.ctx.db, ApiKeyCreate(name="person", scopes=list(scopes) or ["read"]))


def sign_in(api: InProcessApi, secret: str, **form: str) -> Response:
    return api.send("POST", "/console/sign-in", headers=NO_KEY, data={"key": secret, **form})


def signed_in(api: InProcessApi, *scopes: Any) -> tuple[ApiKeyCreated, str]:
    """Sign in with a new key; return the key and the token of the session."""
    key = create_key(api, *scopes)
    response = sign_in(api, key.secret)
    assert response.status_code == 303
    token = response.cookies[COOKIE]
    api.forget_cookies()
    return key, token


def get(api: InProcessApi, path: str, token: str) -> Response:
    return api.send("GET", path, headers={**NO_KEY, "Cookie": f"{COOKIE}={token}"})


def ended(api: InProcessApi, token: str) -> str:
    """Return why a session has ended, as the page and the API say."""
    problem = get(api, "/v1/routers", token).json()
    assert (problem["status"], problem["code"]) == (401, "session_ended")
    reason: str = problem["detail"].removeprefix("your session has ended: ")
    page = get(api, "/console/sign-in", token).text
    assert "<h1>Your session has ended</h1>" in page
    assert reason in page
    return reason


def test_a_visitor_signs_in_first_and_then_sees_the_page(api: InProcessApi) -> None:
    response = api.send("GET", "/console/health?x=1", headers=NO_KEY)
    assert response.status_code == 303
    assert response.headers["location"] == "/console/sign-in?next=%2Fconsole%2Fhealth%3Fx%3D1"
    form = api.send("GET", response.headers["location"], headers=NO_KEY)
    assert 'name="next" value="/console/health?x=1"' in form.text
    assert "/console/datasets" not in form.text, "a visitor sees no links to pages"

    key = create_key(api)
    response = sign_in(api, key.secret, next="/console/health?x=1")
    assert response.headers["location"] == "/console/health?x=1"
    cookie = response.headers["set-cookie"]
    for attribute in ("HttpOnly", "SameSite=lax", "Max-Age=129600", "Path=/"):
        assert attribute in cookie
    assert key.secret not in cookie
    assert get(api, "/console/health", response.cookies[COOKIE]).status_code == 200


def test_a_wrong_key_shows_the_form_again(api: InProcessApi) -> None:
    response = sign_in(api, "cov_wrong")
    assert response.status_code == 401
    assert "unknown or has expired" in response.text
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "target",
    [
        *("https://example.com/", "//example.com", "/\\example.com", "///example.com", "////example.com"),
        *("/\t/example.com", " //example.com", "javascript:alert(1)", "x", "/v1/models", "/consoles"),
        *("/console/\\example.com", "/console\n"),
    ],
)
def test_the_sign_in_leads_only_to_pages_of_the_console(api: InProcessApi, target: str) -> None:
    assert sign_in(api, create_key(api).secret, next=target).headers["location"] == "/console"


@pytest.mark.parametrize(
    "origin",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://other.example"},
        {"Origin": "null"},
    ],
)
def test_another_site_cannot_sign_a_browser_in(api: InProcessApi, origin: dict[str, str]) -> None:
    response = api.send(
        "POST", "/console/sign-in", headers={**NO_KEY, **origin}, data={"key": create_key(api).secret}
    )
    assert response.status_code == 403
    assert "set-cookie" not in response.headers


def test_the_form_sends_its_origin_to_a_service_without_https(api: InProcessApi) -> None:
    form = api.send("GET", "/console/sign-in", headers=NO_KEY)
    assert form.headers["referrer-policy"] == "same-origin", "otherwise a browser sends the origin null"
    own = {**NO_KEY, "Origin": f"http://{form.request.headers['host']}"}
    response = api.send("POST", "/console/sign-in", headers=own, data={"key": create_key(api).secret})
    assert response.status_code == 303


def test_the_cookie_is_sent_only_by_https_if_the_service_is(api: InProcessApi) -> None:
    form = {"key": create_key(api).secret}
    response = api.send("POST", "https://api.test/console/sign-in", headers=NO_KEY, data=form)
    assert "Secure" in response.headers["set-cookie"]
    api.forget_cookies()


def test_the_cookie_reads_the_api_but_changes_something_only_with_its_token(api: InProcessApi) -> None:
    _, token = signed_in(api, "train")
    cookie = {**NO_KEY, "Cookie": f"other=1; {COOKIE}={token}"}
    body = {"name": "mail"}

    for proof in ({}, {"X-CSRF-Token": "wrong"}, {"X-CSRF-Token": csrf_token("another")}):
        response = api.send("POST", "/v1/datasets", headers={**cookie, **proof}, json=body)
        assert (response.status_code, response.json()["code"]) == (403, "csrf_token_invalid")
    proof = {"X-CSRF-Token": csrf_token(token)}
    assert api.send("POST", "/v1/datasets", headers={**cookie, **proof}, json=body).status_code == 201
    assert (
        api.send("GET", "/v1/datasets", headers=cookie)
        .json()["detail"]
        .startswith("this API key lacks the scope read")
    )


def test_the_session_has_the_scopes_of_its_key(api: InProcessApi) -> None:
    _, token = signed_in(api, "read")
    home = get(api, "/console", token)
    assert "/console/datasets" in home.text
    assert "/console/keys" not in home.text
    forbidden = get(api, "/console/keys", token)
    assert forbidden.status_code == 403
    assert "lacks the scope admin" in forbidden.text
    assert forbidden.headers["content-type"] == "text/html; charset=utf-8"


def test_signing_out_ends_the_session(api: InProcessApi) -> None:
    _, token = signed_in(api)
    cookie = {**NO_KEY, "Cookie": f"{COOKIE}={token}"}
    refused = api.send("POST", "/console/sign-out", headers=cookie, data={"csrf": "wrong"})
    assert refused.status_code == 403
    assert get(api, "/console", token).status_code == 200
    response = api.send("POST", "/console/sign-out", headers=cookie, data={"csrf": csrf_token(token)})
    assert response.headers["location"] == "/console/sign-in"
    assert f'{COOKIE}=""' in response.headers["set-cookie"]
    assert get(api, "/console", token).status_code == 303
    assert ended(api, token) == "you have signed out, or an administrator has ended it"


def test_the_session_ends_when_its_key_is_deleted_or_its_secret_replaced(api: InProcessApi) -> None:
    key, token = signed_in(api)
    keys.delete(api.ctx.db, key.id)
    assert get(api, "/console", token).status_code == 303
    assert ended(api, token) == "its API key was deleted, has expired, or has a new secret"

    key, token = signed_in(api)
    keys.rotate(api.ctx.db, key.id, ApiKeyRotate(grace_seconds=3600))
    assert get(api, "/console", token).status_code == 200, "the old secret keeps working"
    keys.rotate(api.ctx.db, key.id, ApiKeyRotate(grace_seconds=0))
    assert get(api, "/console", token).status_code == 303


def test_the_session_expires_and_is_then_deleted(api: InProcessApi) -> None:
    _, token = signed_in(api)
    _, other = signed_in(api)
    sessions = tables.ConsoleSession
    with api.ctx.db.write() as tx:
        first = tx.session.get(sessions, keys.digest(token))
        assert first is not None
        assert first.expires_at - first.created_at == timedelta(hours=12)
        tx.session.execute(
            update(sessions)
            .where(sessions.token_sha256 == first.token_sha256)
            .values(expires_at=tx.now - timedelta(seconds=1))
        )
    assert get(api, "/console", token).status_code == 303
    assert ended(api, token) == "it was open for 12 hours"
    assert get(api, "/console", other).status_code == 200
    apply_retention(api.ctx)
    assert ended(api, token) == "it was open for 12 hours", "the reason is known for another day"
    with api.ctx.db.write() as tx:
        tx.session.execute(
            update(sessions)
            .where(sessions.token_sha256 == keys.digest(token))
            .values(expires_at=tx.now - timedelta(days=1, seconds=1))
        )
    apply_retention(api.ctx)
    with api.ctx.db.read() as session:
        remaining = session.scalars(select(sessions.token_sha256)).all()
    assert keys.digest(other) in remaining
    assert keys.digest(token) not in remaining


def test_the_database_knows_neither_the_token_nor_the_secret(api: InProcessApi) -> None:
    key, token = signed_in(api)
    with api.ctx.db.read() as session:
        row = session.get(tables.ConsoleSession, keys.digest(token))
    assert row is not None
    assert token not in (row.token_sha256, row.secret_sha256)
    assert key.secret not in (row.token_sha256, row.secret_sha256)


def test_pages_cannot_be_framed_and_run_only_scripts_of_the_service(api: InProcessApi) -> None:
    _, token = signed_in(api)
    response = get(api, "/console", token)
    policy = response.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["cache-control"] == "no-store"
    assert "<script>" not in response.text


def test_the_root_leads_to_the_console(api: InProcessApi) -> None:
    response = api.send("GET", "/", headers=NO_KEY)
    assert (response.status_code, response.headers["location"]) == (303, "/console")


def test_an_unknown_page_is_a_page_that_leads_back(api: InProcessApi) -> None:
    response = api.send("GET", "/console/<nowhere>", headers=NO_KEY)
    assert (response.status_code, response.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "The console has no page &lt;nowhere&gt;" in response.text
    assert 'href="/console"' in response.text
