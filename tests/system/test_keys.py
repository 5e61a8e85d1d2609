"""API keys: each key permits the operations of its scopes only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import covey
from contract import DOCUMENT, problem_of
from stack import Stack
from waiting import wait_for

from app.db import tables
from app.db.session import Database

pytestmark = pytest.mark.system

ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - the service must reject it


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def create_key(secured_stack: tuple[Stack, str], **fields: Any) -> dict[str, Any]:
    stack, admin = secured_stack
    key: dict[str, Any] = stack.call(
        "POST", "/v1/api-keys", 201, json={"name": "test", **fields}, headers=bearer(admin)
    )
    return key


def operations() -> Iterator[tuple[str, str, str]]:
    """Yield method, path and scope of every operation that needs a key, with values for path parameters."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if "Scope: `" in operation["description"]:
                scope = operation["description"].rsplit("Scope: `", 1)[1].split("`")[0]
                concrete_path = path.replace("{version}", "1").replace("{", "").replace("}", "")
                yield method.upper(), concrete_path, scope


def test_serve_rejects_a_non_loopback_address_without_keys(tmp_path: Path) -> None:
    completed = covey("serve", "--data", str(tmp_path / "data"), "--host", ALL_INTERFACES, "--port", "0")
    assert completed.returncode == 1
    assert completed.stdout == ""
    assert f"refusing to listen on {ALL_INTERFACES} without API keys" in completed.stderr
    assert "covey keys create" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_api_rejects_a_non_loopback_address_without_keys(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert covey("migrate", "--data", data).returncode == 0
    completed = covey("api", "--host", ALL_INTERFACES, "--port", "0", environment={"COVEY_DATA_DIR": data})
    assert completed.returncode == 1
    assert f"refusing to listen on {ALL_INTERFACES} without API keys" in completed.stderr


def test_a_key_with_an_unknown_scope_is_not_created(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert covey("migrate", "--data", data).returncode == 0
    completed = covey("keys", "create", "--name", "x", "--scope", "root", "--data", data)
    assert completed.returncode == 1
    assert completed.stdout == ""
    assert "Traceback" not in completed.stderr


def test_every_request_needs_a_key_if_a_key_exists(secured_stack: tuple[Stack, str]) -> None:
    stack, admin = secured_stack
    invalid = {
        "no key": {},
        "an unknown key": bearer("cov_" + "A" * 43),
        "an empty key": {"Authorization": "Bearer"},
        "another scheme": {"Authorization": f"Basic {admin}"},
        "without a scheme": {"Authorization": admin},
        "a part of the secret": bearer(admin[:-1]),
        "more than the secret": bearer(admin + "A"),
        "upper and lower case swapped": bearer(admin.swapcase()),
        "letters beyond ASCII": {"Authorization": "Bearer cov_\xe9"},
    }
    for method, path, _ in operations():
        response = stack.http.request(method, path)
        problem_of(response, 401, "unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer"
    for case, headers in invalid.items():
        encoded = httpx.Headers(headers, encoding="latin-1")
        response = stack.http.get("/v1/datasets", headers=encoded)
        problem_of(response, 401, "unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer", case
    assert stack.http.get("/v1/datasets", headers=bearer(admin)).status_code == 200
    # An error does not reveal which resources exist: the status is the same for an unknown resource.
    assert stack.http.get("/v1/datasets/ds_nope").status_code == 401
    assert stack.http.post("/v1/datasets", content=b"{").status_code == 401


def test_health_needs_no_key(secured_stack: tuple[Stack, str]) -> None:
    stack, _ = secured_stack
    for path in ("/health/live", "/health/ready", "/openapi.json"):
        assert stack.http.get(path).status_code == 200, path


@pytest.mark.parametrize("scope", ["read", "predict", "train"])
def test_a_key_permits_the_operations_of_its_scope(secured_stack: tuple[Stack, str], scope: str) -> None:
    stack, _ = secured_stack
    secret = create_key(secured_stack, scopes=[scope])["secret"]
    for method, path, required in operations():
        response = stack.http.request(method, path, headers=bearer(secret))
        if required == scope:
            assert response.status_code not in {401, 403}, (method, path, response.text)
            assert response.status_code < 500, (method, path, response.text)
        else:
            problem = problem_of(response, 403, "forbidden")
            assert required in problem["detail"]


def test_a_key_with_two_scopes_permits_both(secured_stack: tuple[Stack, str]) -> None:
    stack, _ = secured_stack
    key = create_key(secured_stack, scopes=["train", "read", "read"])
    assert key["scopes"] == ["read", "train"]
    headers = bearer(key["secret"])
    dataset = stack.call("POST", "/v1/datasets", 201, json={"name": "x"}, headers=headers)
    stack.call("GET", f"/v1/datasets/{dataset['id']}", 200, headers=headers)
    stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204, headers=headers)
    problem_of(stack.http.get("/v1/api-keys", headers=headers), 403, "forbidden")


def test_an_expired_key_is_rejected(secured_stack: tuple[Stack, str]) -> None:
    stack, _ = secured_stack
    expiry = datetime.now(UTC) + timedelta(hours=1)
    key = create_key(secured_stack, scopes=["read"], expires_at=expiry.isoformat())
    assert key["expires_at"].endswith("Z")
    headers = bearer(key["secret"])
    assert stack.http.get("/v1/datasets", headers=headers).status_code == 200
    db = Database(f"sqlite:///{stack.data / 'covey.db'}")
    with db.write() as tx:
        tx.session.get_one(tables.ApiKey, key["id"]).expires_at = tx.now
    db.close()

    def get_if_rejected() -> httpx.Response | None:
        response = stack.http.get("/v1/datasets", headers=headers)
        return response if response.status_code != 200 else None

    problem_of(wait_for(get_if_rejected, what="the expiry of the key"), 401, "unauthorized")


def test_a_deleted_key_is_rejected(secured_stack: tuple[Stack, str]) -> None:
    stack, admin = secured_stack
    key = create_key(secured_stack, scopes=["read"])
    stack.call("GET", "/v1/models", 200, headers=bearer(key["secret"]))
    stack.call("DELETE", f"/v1/api-keys/{key['id']}", 204, headers=bearer(admin))
    problem_of(stack.http.get("/v1/models", headers=bearer(key["secret"])), 401, "unauthorized")
    second_deletion = stack.http.delete(f"/v1/api-keys/{key['id']}", headers=bearer(admin))
    problem_of(second_deletion, 404, "not_found")


def test_the_secret_is_returned_once_and_not_stored(secured_stack: tuple[Stack, str]) -> None:
    stack, admin = secured_stack
    key = create_key(secured_stack, scopes=["read"], name="secret one")
    stack.call("GET", "/v1/models", 200, headers=bearer(key["secret"]))

    def used() -> tuple[httpx.Response, dict[str, Any]] | None:
        listed = stack.http.get("/v1/api-keys?limit=500", headers=bearer(admin))
        (item,) = [item for item in listed.json()["items"] if item["id"] == key["id"]]
        return (listed, item) if "last_used_at" in item else None

    listed, item = wait_for(used, what="the time of the last use")
    assert item["name"] == "secret one"
    assert item.keys() == key.keys() - {"secret"} | {"last_used_at"}
    files = [path for path in stack.data.rglob("*") if path.is_file()] + [stack.log]
    assert any(path.name == "covey.db" for path in files)
    for secret in (admin, key["secret"]):
        assert secret not in listed.text
        files_with_secret = [
            str(path) for path in files if secret.removeprefix("cov_").encode() in path.read_bytes()
        ]
        assert files_with_secret == []


def test_a_retry_after_a_lost_secret_creates_no_second_key(
    secured_stack: tuple[Stack, str],
) -> None:
    stack, admin = secured_stack
    before = len(stack.call("GET", "/v1/api-keys", 200, headers=bearer(admin))["items"])
    headers = {**bearer(admin), "Idempotency-Key": "a new client"}
    body = {"name": "client", "scopes": ["predict"]}
    lost = stack.call("POST", "/v1/api-keys", 201, json=body, headers=headers)
    problem = stack.call("POST", "/v1/api-keys", 409, json=body, headers=headers)
    assert problem["code"] == "secret_already_shown"
    assert lost["id"] in problem["detail"]
    path = f"/v1/api-keys/{lost['id']}/rotate"
    headers["Idempotency-Key"] = "its secret was lost"
    rotated = stack.call("POST", path, 200, json={"grace_seconds": 0}, headers=headers)
    assert (
        stack.call("POST", path, 409, json={"grace_seconds": 0}, headers=headers)["code"]
        == "secret_already_shown"
    )
    assert stack.http.get("/v1/datasets", headers=bearer(lost["secret"])).status_code == 401
    assert stack.http.get("/v1/datasets", headers=bearer(rotated["secret"])).status_code == 403, (
        "the new secret is not accepted"
    )
    assert len(stack.call("GET", "/v1/api-keys", 200, headers=bearer(admin))["items"]) == before + 1


def test_idempotency_keys_of_two_callers_are_independent(secured_stack: tuple[Stack, str]) -> None:
    stack, _ = secured_stack
    dataset_ids = []
    for _ in range(2):
        headers = {**bearer(create_key(secured_stack, scopes=["train"])["secret"]), "Idempotency-Key": "same"}
        for _ in range(2):
            dataset = stack.call("POST", "/v1/datasets", 201, json={"name": "x"}, headers=headers)
            dataset_ids.append(dataset["id"])
    assert dataset_ids[0] == dataset_ids[1] != dataset_ids[2] == dataset_ids[3]
