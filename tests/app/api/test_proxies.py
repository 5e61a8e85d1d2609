"""The service behind a proxy: below a path, with a trusted or another address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import in_process_api
import pytest
from in_process_api import InProcessApi
from pydantic import ValidationError

from app.console.sessions import COOKIE
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.settings import Settings

PREFIX = "/tools/covey"
STATED = {"X-Forwarded-Prefix": PREFIX, "X-Forwarded-Proto": "https"}
NO_KEY = {"Authorization": ""}
LINK = re.compile(r'\b(?:href|src|action|data-root)="(/[^"]*)"')
OWN_PATH = re.compile(r'="(?:[A-Z]+ )?(/(?:v1|console|docs)\b[^"]*)"')
"""An attribute with a path of the service without the prefix."""


def opened(
    tmp_path_factory: pytest.TempPathFactory, migrated: Path, **settings: str
) -> Iterator[InProcessApi]:
    with (
        pytest.MonkeyPatch.context() as patch,
        in_process_api.api(tmp_path_factory.mktemp("proxy"), migrated, patch, **settings) as service,
    ):
        yield service


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service below a path, which trusts no proxy."""
    yield from opened(
        tmp_path_factory, migrated_sqlite, root_path=f"{PREFIX}/", trusted_proxies="192.0.2.0/24"
    )


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service with the default settings, which trusts proxies on this machine, as the test is one."""
    yield from opened(tmp_path_factory, migrated_sqlite)


@pytest.fixture(params=["a path that the proxy leaves", "a path that it removes", "a header"])
def below(request: pytest.FixtureRequest) -> Iterator[tuple[InProcessApi, str, dict[str, str]]]:
    """The service below a path, what begins the paths of requests to it, and the headers of the proxy."""
    if request.param == "a header":
        yield request.getfixturevalue("trusting"), "", STATED
    else:
        yield request.getfixturevalue("configured"), PREFIX if "leaves" in request.param else "", {}


def test_every_link_of_a_page_begins_with_the_prefix(
    below: tuple[InProcessApi, str, dict[str, str]],
) -> None:
    service, start, headers = below
    service.train(service.dataset())
    for page in ("", "/health", "/datasets", "/models", "/training/new", "/models/m/versions/1", "/nope"):
        text = service.send("GET", f"{start}/console{page}", headers=headers).text
        links = LINK.findall(text)
        assert len(links) >= 8
        assert [link for link in links if not link.startswith(PREFIX)] == []
        assert OWN_PATH.findall(text) == []
        for link in {link for link in links if "/static/" in link}:
            path = start + link.removeprefix(PREFIX)
            assert service.send("GET", path, headers=headers).status_code == 200
    current = service.send("GET", f"{start}/console/models", headers=headers).text
    assert f'href="{PREFIX}/console/models" aria-current="page"' in current


def test_redirects_lead_below_the_prefix(below: tuple[InProcessApi, str, dict[str, str]]) -> None:
    service, start, headers = below
    first = service.send("GET", f"{start}/", headers=headers)
    assert first.headers["Location"] == f"{PREFIX}/console"
    assert service.send("GET", start or "/", headers=headers).headers["Location"] == f"{PREFIX}/console"
    visitor = {**headers, **NO_KEY}
    page = service.send("GET", f"{start}/console/health?x=1", headers=visitor)
    assert page.headers["Location"] == (
        f"{PREFIX}/console/sign-in?next=%2Ftools%2Fcovey%2Fconsole%2Fhealth%3Fx%3D1"
    )
    key = keys.create(service.ctx.db, ApiKeyCreate(name="person", scopes=["read"]))
    for target, location in (
        (f"{PREFIX}/console/health", f"{PREFIX}/console/health"),
        ("/console/health", f"{PREFIX}/console"),  # another service
        (f"{PREFIX}//example.org", f"{PREFIX}/console"),
    ):
        form = {"key": key.secret, "next": target}
        response = service.send("POST", f"{start}/console/sign-in", headers=visitor, data=form)
        assert response.headers["Location"] == location
        cookie = response.headers["Set-Cookie"]
        assert f"Path={PREFIX};" in cookie
        assert ("Secure" in cookie) == bool(headers)
        service.forget_cookies()
        session = {**visitor, "Cookie": f"{COOKIE}={response.cookies[COOKIE]}"}
        assert service.send("GET", f"{start}/console/health", headers=session).status_code == 200
    created = service.send("POST", f"{start}/v1/datasets", headers=headers, json={"name": "d"})
    assert created.headers["Location"] == f"{PREFIX}/v1/datasets/{created.json()['id']}"


def test_the_documents_name_the_prefix(below: tuple[InProcessApi, str, dict[str, str]]) -> None:
    service, start, headers = below
    document = service.call("GET", f"{start}/openapi.json", 200, headers=headers)
    assert document["servers"][0]["url"] == PREFIX
    page = service.send("GET", f"{start}/docs/", headers=headers).text
    assert f"'{PREFIX}/openapi.json'" in page
    for link in LINK.findall(page):
        path = start + link.removeprefix(PREFIX)
        assert service.send("GET", path, headers=headers).status_code == 200


def test_errors_and_protocols_do_not_depend_on_the_prefix(
    below: tuple[InProcessApi, str, dict[str, str]],
) -> None:
    service, start, headers = below
    assert "error" in service.send("GET", f"{start}/v2/models/unknown", headers=headers).json()
    response = service.send("PUT", f"{start}/health/live", headers=headers)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
    body = {"json": {"name": "repeated"}}
    repeated = {"Idempotency-Key": f"behind {start} {len(headers)}"}
    first = service.call("POST", f"{start}/v1/datasets", 201, headers={**headers, **repeated}, **body)
    assert service.call("POST", "/v1/datasets", 201, headers=repeated, **body)["id"] == first["id"]


@pytest.mark.parametrize(
    "prefix", ["//example.org", "https://example.org", "/a b", "/a/../b", "/\\x", "a", "/a,/b"]
)
def test_a_header_that_is_no_path_does_not_count(trusting: InProcessApi, prefix: str) -> None:
    response = trusting.send("GET", "/", headers={"X-Forwarded-Prefix": prefix})
    assert response.headers["Location"] == "/console"


def test_the_headers_of_other_clients_do_not_count(configured: InProcessApi) -> None:
    headers = {**NO_KEY, "X-Forwarded-Prefix": "/elsewhere", "X-Forwarded-Proto": "https"}
    assert configured.send("GET", "/", headers=headers).headers["Location"] == f"{PREFIX}/console"
    key = keys.create(configured.ctx.db, ApiKeyCreate(name="person", scopes=["read"]))
    response = configured.send("POST", "/console/sign-in", headers=headers, data={"key": key.secret})
    configured.forget_cookies()
    assert "Secure" not in response.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "path", ["covey", "//example.org", "/covey/../x", "/a?b", "https://example.org/covey"]
)
def test_a_root_path_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="is not a path such as /tools/covey"):
        Settings(root_path=path)


@pytest.mark.parametrize("proxies", ["proxy.example.org", "10.0.0.1/8", "10.0.0.0/33", "127.0.0.1:8000"])
def test_proxies_that_can_never_match_are_refused(proxies: str) -> None:
    with pytest.raises(ValidationError, match="trusted_proxies"):
        Settings(trusted_proxies=f"127.0.0.1, {proxies}")


def test_a_slash_at_the_end_of_a_path_changes_nothing(trusting: InProcessApi) -> None:
    for path in ("/v1/models", "/console/models", "/health/live", "/v2", "/docs"):
        response = trusting.send("GET", f"{path}/")
        assert (response.status_code, response.text) == (200, trusting.send("GET", path).text)
    created = trusting.call("POST", "/v1/datasets/", 201, json={"name": "slash"})
    assert trusting.send("GET", f"/v1/datasets/{created['id']}/").json()["name"] == "slash"
    body = {"instances": [{"text": "invoice"}]}
    assert trusting.send("POST", "/v1/models/m/predict/", json=body).status_code == 200
    assert trusting.send("GET", "/v1/models//").status_code == 404
