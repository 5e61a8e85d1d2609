"""People sign in with an OpenID provider: a real one on loopback, whose tokens a test can forge."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import in_process_api
import pytest
from httpx import Response
from in_process_api import InProcessApi
from openid_provider import CLIENT_ID, CLIENT_SECRET, Provider, new_key, openid_provider
from pydantic import SecretStr

from app.console.sessions import COOKIE, csrf_token
from app.settings import Settings
from app.users import openid

NO_KEY = {"Authorization": ""}

Claims = dict[str, Any]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with openid_provider() as running:
        yield running


@pytest.fixture(scope="module")
def service(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path
) -> Iterator[InProcessApi]:
    folder = tmp_path_factory.mktemp("users")
    with (
        pytest.MonkeyPatch.context() as patch,
        in_process_api.api(
            folder,
            migrated_sqlite,
            patch,
            oidc_issuer=provider.issuer,
            oidc_client_id=CLIENT_ID,
            oidc_client_secret=SecretStr(CLIENT_SECRET),
            oidc_roles="desk=reviewer, makers=editor, owners=admin",
            oidc_email_domains="example.org",
        ) as opened,
    ):
        yield opened


@pytest.fixture
def api(service: InProcessApi, provider: Provider) -> Iterator[InProcessApi]:
    """The API, whose provider knows Ann of the desk. Each test is another browser."""
    provider.people = {"ann": {"name": "Ann Lee", "email": "ann@example.org", "groups": ["desk", "all"]}}
    yield service
    service.forget_cookies()
    provider.sign, provider.is_down = provider.signed, False


def visit(api: InProcessApi, path: str) -> Response:
    return api.send("GET", path, headers=NO_KEY)


def begin(api: InProcessApi, next_page: str = "") -> str:
    """Begin to sign in, and return the address of the provider's page."""
    response = visit(api, f"/console/sign-in/provider?next={next_page}")
    assert response.status_code == 303, response.text
    return response.headers["location"]


def log_in(url: str, user: str = "ann") -> str:
    """Log in at the provider, and return the path at which the person comes back."""
    form = {"query": urlsplit(url).query, "user": user}
    back = urlsplit(httpx.post(f"{url.partition('/authorize')[0]}/login", data=form).headers["location"])
    return f"{back.path}?{back.query}"


def sign_in(api: InProcessApi, user: str = "ann", next_page: str = "") -> Response:
    return visit(api, log_in(begin(api, next_page), user))


def user_named(api: InProcessApi, name: str) -> dict[str, Any]:
    users = api.call("GET", "/v1/users", 200)["items"]
    found: dict[str, Any] = next(user for user in users if user["name"] == name)
    return found


def test_a_person_signs_in_and_has_a_name_and_a_role(api: InProcessApi, provider: Provider) -> None:
    page = visit(api, "/console/routers?x=1")
    assert page.headers["location"] == "/console/sign-in?next=%2Fconsole%2Frouters%3Fx%3D1"
    form = visit(api, page.headers["location"])
    assert 'href="/console/sign-in/provider?next=/console/routers%3Fx%3D1"' in form.text
    assert "Sign in with an API key" in form.text, "programs and emergencies"

    response = sign_in(api, next_page="%2Fconsole%2Frouters%3Fx%3D1")
    assert (response.status_code, response.headers["location"]) == (303, "/console/routers?x=1")
    session, attempt = sorted(response.headers.get_list("set-cookie"))
    assert "HttpOnly" in session
    assert "SameSite=lax" in session
    assert "Max-Age=0" in attempt

    shown = visit(api, "/console/routers?x=1")
    assert "Ann Lee" in shown.text
    assert "Create a router" not in shown.text
    assert visit(api, "/console/users").status_code == 403
    user = user_named(api, "Ann Lee")
    assert (user["role"], user["email"], user["disabled"]) == ("reviewer", "ann@example.org", False)
    assert (user["issuer"], user["subject"]) == (provider.issuer, "id-of-ann")


def test_the_url_of_the_provider_proves_the_attempt(api: InProcessApi) -> None:
    first, second = begin(api), begin(api)
    for name in ("state", "nonce", "code_challenge"):
        values = [parse_qs(urlsplit(url).query)[name][0] for url in (first, second)]
        assert values[0] != values[1]
        assert len(values[0]) >= 43
    query = parse_qs(urlsplit(first).query)
    assert query["redirect_uri"] == ["http://127.0.0.1/console/sign-in/callback"]
    assert query["code_challenge_method"] == ["S256"]


def compact(header: dict[str, str], claims: Claims, sign: Callable[[bytes], bytes]) -> str:
    """Return a token that no library would make."""

    def encoded(content: bytes) -> bytes:
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    text = b".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
    return (text + b"." + encoded(sign(text))).decode()


FORGED: dict[str, Callable[[Provider, Claims], str]] = {
    "wrong nonce": lambda provider, claims: provider.signed({**claims, "nonce": "x" * 64}),
    "no nonce": lambda provider, claims: provider.signed(
        {name: value for name, value in claims.items() if name != "nonce"}
    ),
    "wrong audience": lambda provider, claims: provider.signed({**claims, "aud": "other"}),
    "another authorized party": lambda provider, claims: provider.signed(
        {**claims, "aud": [CLIENT_ID, "other"], "azp": "other"}
    ),
    "wrong issuer": lambda provider, claims: provider.signed({**claims, "iss": "https://evil.example"}),
    "expired": lambda provider, claims: provider.signed({**claims, "exp": int(time.time()) - 120}),
    "never expires": lambda provider, claims: provider.signed({**claims, "exp": None}),
    "from the future": lambda provider, claims: provider.signed({**claims, "iat": int(time.time()) + 600}),
    "no subject": lambda provider, claims: provider.signed({**claims, "sub": ""}),
    "a subject that cannot be stored": lambda provider, claims: provider.signed({**claims, "sub": "a\0"}),
    "not signed": lambda _provider, claims: compact({"alg": "none"}, claims, lambda _: b""),
    "not signed, with the id of a key": lambda _provider, claims: compact(
        {"alg": "none", "kid": "one"}, claims, lambda _: b""
    ),
    "signed with the public key": lambda provider, claims: compact(
        {"alg": "HS256", "kid": "one"},
        claims,
        lambda text: hmac.digest(provider.key.as_pem(private=False), text, "sha256"),
    ),
    "signed by another key": lambda provider, claims: provider.signed(claims, new_key("one")),
    "signed by an unknown key": lambda provider, claims: provider.signed(claims, new_key("other")),
    "no token": lambda _provider, _claims: "x",
}


@pytest.mark.parametrize("forge", FORGED)
def test_a_forged_token_signs_no_one_in(api: InProcessApi, provider: Provider, forge: str) -> None:
    provider.sign = lambda claims: FORGED[forge](provider, claims)
    response = sign_in(api)
    assert response.status_code == 403
    assert "did not confirm who you are" in response.text
    assert COOKIE not in response.cookies
    assert visit(api, "/console").status_code == 303


def test_a_response_of_the_provider_counts_once_and_in_one_browser(api: InProcessApi) -> None:
    back = log_in(begin(api))
    api.forget_cookies()
    assert visit(api, back).status_code == 403, "another browser"
    back = log_in(begin(api))
    assert visit(api, back.replace("state=", "state=x")).status_code == 403
    back = log_in(begin(api))
    attempt = next(cookie for cookie in api.cookies if cookie.startswith("covey_sign_in="))
    assert visit(api, back).status_code == 303
    api.forget_cookies()
    replayed = visit(api, back)
    assert (replayed.status_code, "sign in again" in replayed.text) == (403, True)
    replayed = api.send("GET", back, headers={**NO_KEY, "Cookie": attempt})
    assert replayed.status_code == 403, "also with a stolen cookie: the code counts once"
    begin(api)
    assert visit(api, "/console/sign-in/callback?error=access_denied&state=x").status_code == 403


@pytest.mark.parametrize("target", ["https://example.com/", "//example.com", "/v1/models"])
def test_the_sign_in_leads_only_to_pages_of_the_console(api: InProcessApi, target: str) -> None:
    assert sign_in(api, next_page=target).headers["location"] == "/console"


def test_new_keys_of_the_provider_are_read_once_in_a_while(
    api: InProcessApi, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openid, "MIN_REFRESH_SECONDS", 1e9)
    assert sign_in(api).status_code == 303
    before = provider.paths.count("/jwks"), provider.paths.count("/.well-known/openid-configuration")
    old, provider.key = provider.key, new_key("two")
    try:
        assert sign_in(api).status_code == 403, "the keys were read a moment ago"
        monkeypatch.setattr(openid, "MIN_REFRESH_SECONDS", -1.0)
        assert sign_in(api).status_code == 303
        assert provider.paths.count("/jwks") == before[0] + 1
        assert provider.paths.count("/.well-known/openid-configuration") == before[1]
    finally:
        provider.key = old
        api.app.state.openid._keys = None


def test_the_role_follows_the_provider_at_the_next_sign_in(api: InProcessApi, provider: Provider) -> None:
    assert sign_in(api).status_code == 303
    user = user_named(api, "Ann Lee")
    provider.people["ann"]["groups"] = ["owners", "desk"]
    assert visit(api, "/console/users").status_code == 403
    assert sign_in(api).status_code == 303
    page = visit(api, "/console/users")
    assert page.status_code == 200
    assert "Ann Lee" in page.text
    assert user_named(api, "Ann Lee")["id"] == user["id"]
    refused = api.call("PATCH", f"/v1/users/{user['id']}", 409, json={"role": "reader"})
    assert refused is None or refused["code"] == "role_from_provider"
    provider.people["ann"]["groups"] = ["all"]
    refused_page = sign_in(api)
    assert (refused_page.status_code, "no role" in refused_page.text) == (403, True)


def test_a_disabled_user_is_out_at_once_and_cannot_return(api: InProcessApi) -> None:
    token = sign_in(api).cookies[COOKIE]
    path = f"/v1/users/{user_named(api, 'Ann Lee')['id']}"
    assert api.call("PATCH", path, 200, json={"disabled": True})["disabled"] is True
    response = visit(api, "/v1/routers")
    assert (response.status_code, response.json()["code"]) == (401, "session_ended")
    form = visit(api, "/console/sign-in")
    assert "Your session has ended" in form.text
    assert "an administrator has disabled your account" in form.text
    again = sign_in(api)
    assert (again.status_code, "has disabled your account" in again.text) == (403, True)
    api.call("PATCH", path, 200, json={"disabled": False})
    assert (
        api.send("GET", "/v1/routers", headers={**NO_KEY, "Cookie": f"{COOKIE}={token}"}).status_code == 200
    )
    api.call("DELETE", path, 204)
    assert visit(api, "/v1/routers").status_code == 401, "its sessions are deleted, too"
    api.call("GET", path, 404)


def test_administrators_cannot_lock_themselves_out(api: InProcessApi, provider: Provider) -> None:
    provider.people["ann"]["groups"] = ["owners"]
    token = sign_in(api).cookies[COOKIE]
    path = f"/v1/users/{user_named(api, 'Ann Lee')['id']}"
    headers = {**NO_KEY, "X-CSRF-Token": csrf_token(token)}
    for method, options in (("PATCH", {"json": {"disabled": True}}), ("DELETE", {})):
        response = api.send(method, path, headers=headers, **options)
        assert (response.status_code, response.json()["code"]) == (409, "own_account")
    without_proof = api.send("PATCH", path, headers=NO_KEY, json={"disabled": True})
    assert without_proof.json()["code"] == "csrf_token_invalid"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"email": "ann@other.example"}, "People of other.example cannot sign in here"),
        ({"email": None}, "People of an unknown domain"),
        ({"email_verified": False}, "has not verified your e-mail address"),
        ({"groups": "nothing"}, "no role here"),
    ],
)
def test_people_who_may_not_sign_in_are_told_why(
    api: InProcessApi, provider: Provider, claims: Claims, reason: str
) -> None:
    provider.people["eve"] = {"email": "eve@example.org", "groups": ["desk"], **claims}
    response = sign_in(api, "eve")
    assert (response.status_code, reason in response.text) == (403, True)


def test_the_page_says_that_the_provider_is_down(api: InProcessApi, provider: Provider) -> None:
    back = log_in(begin(api))
    provider.is_down = True
    response = visit(api, back)
    assert response.status_code == 503
    assert "The identity provider does not respond as it should; try again later." in response.text
    assert "Sign in with an API key" in response.text
    api.app.state.openid._metadata = None
    assert visit(api, "/console/sign-in/provider").status_code == 503
    provider.is_down = False
    assert sign_in(api).status_code == 303


def test_metadata_of_another_issuer_is_not_used(
    api: InProcessApi, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.app.state.openid._metadata = None
    described = {**provider.metadata(), "issuer": "https://evil.example"}
    monkeypatch.setattr(provider, "metadata", lambda: described)
    assert visit(api, "/console/sign-in/provider").status_code == 503


def test_with_a_provider_no_request_is_anonymous(
    provider: Provider, tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_default_role": "reader",
    }
    (tmp_path / "covey.db").write_bytes(migrated_sqlite.read_bytes())
    settings = Settings(data_dir=tmp_path, oidc_client_secret=SecretStr(CLIENT_SECRET), **options)
    provider.people = {"bob": {"preferred_username": "bob"}}
    with in_process_api.start(settings, monkeypatch) as api:
        assert api.send("GET", "/v1/routers").status_code == 401
        token = sign_in(api, "bob").cookies[COOKIE]
        assert visit(api, "/v1/routers").status_code == 200
        assert (
            api.send("PUT", "/v1/routers/x", headers={"X-CSRF-Token": csrf_token(token)}).status_code == 403
        )


def test_without_a_provider_there_is_nothing_to_sign_in_with(
    tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_process_api.api(tmp_path, migrated_sqlite, monkeypatch) as api:
        assert visit(api, "/console/sign-in/provider").status_code == 404
        assert "sign-in/provider" not in visit(api, "/console/sign-in").text
