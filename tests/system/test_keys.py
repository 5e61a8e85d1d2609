"""Keys: who may do what, and that nobody else may."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import covey
from contract import DOCUMENT, problem_of
from stack import Stack
from waiting import wait_for

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("keys")]

EVERYWHERE = "0.0.0.0"  # noqa: S104 - to be refused


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, str]]:
    """A service with one key, made on the command line, and that key's secret."""
    stack = Stack(tmp_path_factory.mktemp("keys") / "data").start()
    assert stack.http.get("/v1/datasets").status_code == 200, "open on loopback while there is no key"
    made = covey("keys", "create", "--name", "first", "--scope", "admin", "--data", str(stack.data))
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    assert secret.startswith("cov_")
    assert secret not in made.stderr
    yield stack, secret
    stack.stop()


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def make_key(guarded: tuple[Stack, str], **fields: Any) -> dict[str, Any]:
    stack, admin = guarded
    made: dict[str, Any] = stack.call(
        "POST", "/v1/api-keys", 201, json={"name": "test", **fields}, headers=bearer(admin)
    )
    return made


def operations() -> Iterator[tuple[str, str, str]]:
    """Method, path and scope of every guarded operation, with names in the place of parameters."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if "Scope: `" in operation["description"]:
                scope = operation["description"].rsplit("Scope: `", 1)[1].split("`")[0]
                filled = path.replace("{version}", "1").replace("{", "").replace("}", "")
                yield method.upper(), filled, scope


def test_another_address_is_refused_while_there_is_no_key(tmp_path: Path) -> None:
    refused = covey("serve", "--data", str(tmp_path / "data"), "--host", EVERYWHERE, "--port", "0")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert f"refusing to listen on {EVERYWHERE} without API keys" in refused.stderr
    assert "covey keys create" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_api_alone_refuses_it_too(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert covey("migrate", "--data", data).returncode == 0
    refused = covey("api", "--host", EVERYWHERE, "--port", "0", environment={"COVEY_DATA_DIR": data})
    assert refused.returncode == 1
    assert f"refusing to listen on {EVERYWHERE} without API keys" in refused.stderr


def test_a_key_for_an_unknown_scope_is_not_made(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert covey("migrate", "--data", data).returncode == 0
    refused = covey("keys", "create", "--name", "x", "--scope", "root", "--data", data)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert "Traceback" not in refused.stderr


def test_every_request_needs_a_key_from_the_first_one_on(guarded: tuple[Stack, str]) -> None:
    stack, admin = guarded
    wrong = {
        "none": {},
        "an unknown one": bearer("cov_" + "A" * 43),
        "an empty one": {"Authorization": "Bearer"},
        "another scheme": {"Authorization": f"Basic {admin}"},
        "without a scheme": {"Authorization": admin},
        "a part of it": bearer(admin[:-1]),
        "more than it": bearer(admin + "A"),
        "another case": bearer(admin.swapcase()),
        "letters beyond ASCII": {"Authorization": "Bearer cov_\xe9"},
    }
    for method, path, _ in operations():
        answer = stack.http.request(method, path)
        problem_of(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    for what, headers in wrong.items():
        encoded = httpx.Headers(headers, encoding="latin-1")
        answer = stack.http.get("/v1/datasets", headers=encoded)
        problem_of(answer, 401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer", what
    assert stack.http.get("/v1/datasets", headers=bearer(admin)).status_code == 200
    # Nobody learns by an error what is there: an unknown thing is refused like a known one.
    assert stack.http.get("/v1/datasets/ds_nope").status_code == 401
    assert stack.http.post("/v1/datasets", content=b"{").status_code == 401


def test_health_is_open(guarded: tuple[Stack, str]) -> None:
    stack, _ = guarded
    for path in ("/health/live", "/health/ready", "/openapi.json"):
        assert stack.http.get(path).status_code == 200, path


@pytest.mark.parametrize("scope", ["read", "predict", "train"])
def test_a_key_opens_what_its_scope_says(guarded: tuple[Stack, str], scope: str) -> None:
    stack, _ = guarded
    secret = make_key(guarded, scopes=[scope])["secret"]
    for method, path, needed in operations():
        answer = stack.http.request(method, path, headers=bearer(secret))
        if needed == scope:
            assert answer.status_code not in {401, 403}, (method, path, answer.text)
            assert answer.status_code < 500, (method, path, answer.text)
        else:
            problem = problem_of(answer, 403, "forbidden")
            assert needed in problem["detail"]


def test_a_key_of_two_scopes_opens_both(guarded: tuple[Stack, str]) -> None:
    stack, _ = guarded
    made = make_key(guarded, scopes=["train", "read", "read"])
    assert made["scopes"] == ["read", "train"]
    headers = bearer(made["secret"])
    dataset = stack.call("POST", "/v1/datasets", 201, json={"name": "x"}, headers=headers)
    stack.call("GET", f"/v1/datasets/{dataset['id']}", 200, headers=headers)
    stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204, headers=headers)
    problem_of(stack.http.get("/v1/api-keys", headers=headers), 403, "forbidden")


def test_a_key_opens_nothing_after_its_time(guarded: tuple[Stack, str]) -> None:
    stack, _ = guarded
    until = datetime.now(UTC) + timedelta(hours=1)
    made = make_key(guarded, scopes=["read"], expires_at=until.isoformat())
    assert made["expires_at"].endswith("Z")
    headers = bearer(made["secret"])
    assert stack.http.get("/v1/datasets", headers=headers).status_code == 200
    with closing(sqlite3.connect(stack.data / "covey.db")) as db, db:
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        changed = db.execute("UPDATE api_keys SET expires_at = ? WHERE id = ?", [now, made["id"]])
        assert changed.rowcount == 1

    def refused() -> httpx.Response | None:
        answer = stack.http.get("/v1/datasets", headers=headers)
        return answer if answer.status_code != 200 else None

    problem_of(wait_for(refused, what="the end of the key"), 401, "unauthorized")


def test_a_deleted_key_opens_nothing(guarded: tuple[Stack, str]) -> None:
    stack, admin = guarded
    made = make_key(guarded, scopes=["read"])
    stack.call("GET", "/v1/models", 200, headers=bearer(made["secret"]))
    stack.call("DELETE", f"/v1/api-keys/{made['id']}", 204, headers=bearer(admin))
    problem_of(stack.http.get("/v1/models", headers=bearer(made["secret"])), 401, "unauthorized")
    again = stack.http.delete(f"/v1/api-keys/{made['id']}", headers=bearer(admin))
    problem_of(again, 404, "not_found")


def test_the_secret_is_shown_once_and_kept_nowhere(guarded: tuple[Stack, str]) -> None:
    stack, admin = guarded
    made = make_key(guarded, scopes=["read"], name="secret one")
    stack.call("GET", "/v1/models", 200, headers=bearer(made["secret"]))
    listed = stack.http.get("/v1/api-keys?limit=500", headers=bearer(admin))
    (mine,) = [item for item in listed.json()["items"] if item["id"] == made["id"]]
    assert mine["name"] == "secret one"
    assert "last_used_at" in mine
    assert mine.keys() == made.keys() - {"secret"} | {"last_used_at"}
    files = [path for path in stack.data.rglob("*") if path.is_file()] + [stack.log]
    assert any(path.name == "covey.db" for path in files)
    for secret in (admin, made["secret"]):
        assert secret not in listed.text
        holding = [str(path) for path in files if secret.removeprefix("cov_").encode() in path.read_bytes()]
        assert holding == []


def test_a_lost_answer_with_a_secret_costs_a_rotation_and_makes_no_second_key(
    guarded: tuple[Stack, str],
) -> None:
    stack, admin = guarded
    before = len(stack.call("GET", "/v1/api-keys", 200, headers=bearer(admin))["items"])
    headers = {**bearer(admin), "Idempotency-Key": "a new client"}
    body = {"name": "client", "scopes": ["predict"]}
    lost = stack.call("POST", "/v1/api-keys", 201, json=body, headers=headers)
    problem = stack.call("POST", "/v1/api-keys", 409, json=body, headers=headers)
    assert problem["code"] == "secret_already_shown"
    assert lost["id"] in problem["detail"]
    path = f"/v1/api-keys/{lost['id']}/rotate"
    headers["Idempotency-Key"] = "its secret was lost"
    found = stack.call("POST", path, 200, json={"grace_seconds": 0}, headers=headers)
    assert (
        stack.call("POST", path, 409, json={"grace_seconds": 0}, headers=headers)["code"]
        == "secret_already_shown"
    )
    assert stack.http.get("/v1/datasets", headers=bearer(lost["secret"])).status_code == 401
    assert stack.http.get("/v1/datasets", headers=bearer(found["secret"])).status_code == 403, "it opens"
    assert len(stack.call("GET", "/v1/api-keys", 200, headers=bearer(admin))["items"]) == before + 1


def test_idempotency_keys_of_two_callers_do_not_meet(guarded: tuple[Stack, str]) -> None:
    stack, _ = guarded
    made = []
    for _ in range(2):
        headers = {**bearer(make_key(guarded, scopes=["train"])["secret"]), "Idempotency-Key": "same"}
        for _ in range(2):
            dataset = stack.call("POST", "/v1/datasets", 201, json={"name": "x"}, headers=headers)
            made.append(dataset["id"])
    assert made[0] == made[1] != made[2] == made[3]
