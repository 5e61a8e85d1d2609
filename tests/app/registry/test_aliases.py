"""Aliases can be read, their changes are kept with who and why, and a rollback goes one version back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process_api import InProcessApi, api

LIVE = "/v1/models/m/aliases/live"


@pytest.fixture(scope="module")
def with_versions(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service with the versions 1 to 4 of the model ``m``; ``live`` names the first."""
    with (
        pytest.MonkeyPatch.context() as patch,
        api(tmp_path_factory.mktemp("data"), migrated_sqlite, patch) as service,
    ):
        dataset = service.dataset()
        for _ in range(4):
            service.train(dataset)
        yield service


def set_to(service: InProcessApi, *versions: int, path: str = LIVE) -> None:
    for version in versions:
        service.call("PUT", path, 200, json={"version": version})


def history(service: InProcessApi, path: str = LIVE) -> list[tuple[Any, ...]]:
    items = service.call("GET", f"{path}/history", 200)["items"]
    return [
        (item["revision"], item.get("from_version"), item.get("to_version"), item["reason"]) for item in items
    ]


def fresh(service: InProcessApi, name: str) -> str:
    """The path of an alias without a history."""
    return f"/v1/models/m/aliases/{name}"


def roll_back(service: InProcessApi, path: str, **options: Any) -> int:
    version: int = service.call("POST", f"{path}/rollback", 200, **options)["version"]
    return version


def test_an_alias_is_read_with_its_etag_and_listed(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "read")
    set_to(with_versions, 2, 3, path=path)
    response = with_versions.send("GET", path)
    assert response.headers["ETag"] == '"2"'
    assert (response.json()["version"], response.json()["revision"]) == (3, 2)
    page = with_versions.call("GET", "/v1/models/m/aliases", 200)
    assert response.json() in page["items"]
    assert [item["alias"] for item in page["items"]] == sorted(item["alias"] for item in page["items"])
    first = with_versions.call("GET", "/v1/models/m/aliases?limit=1", 200)
    rest = with_versions.call("GET", f"/v1/models/m/aliases?cursor={first['next_cursor']}", 200)
    assert first["items"] + rest["items"] == page["items"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models/none/aliases"),
        ("GET", "/v1/models/none/aliases/live"),
        ("GET", "/v1/models/m/aliases/none"),
        ("GET", "/v1/models/m/aliases/none/history"),
        ("POST", "/v1/models/m/aliases/none/rollback"),
    ],
)
def test_what_does_not_exist_is_not_found(with_versions: InProcessApi, method: str, path: str) -> None:
    with_versions.call(method, path, 404)


@pytest.mark.parametrize("alias", ["1", "001", "latest", "Latest", "v2", "V10", "version-3", "newest"])
def test_an_alias_that_looks_like_a_version_is_refused(with_versions: InProcessApi, alias: str) -> None:
    response = with_versions.send("PUT", fresh(with_versions, alias), json={"version": 2})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/path/alias"


@pytest.mark.parametrize("alias", ["2026-spring", "v2-candidate", "vip", "latest-safe"])
def test_other_aliases_can_contain_numbers(with_versions: InProcessApi, alias: str) -> None:
    set_to(with_versions, 2, path=fresh(with_versions, alias))


def test_the_history_says_who_and_why(with_versions: InProcessApi) -> None:
    key = with_versions.call("GET", "/v1/api-keys", 200)["items"][0]["id"]
    first = with_versions.call("GET", f"{LIVE}/history", 200)["items"][-1]
    job = with_versions.call("GET", "/v1/models/m/versions/1", 200)["training_job_id"]
    assert first.pop("changed_at")
    assert first == {
        "revision": 1,
        "to_version": 1,
        "reason": "training",
        "training_job_id": job,
        "actor_id": key,
        "actor_name": "test",
    }
    path = fresh(with_versions, "why")
    set_to(with_versions, 1, 2, path=path)
    roll_back(with_versions, path)
    with_versions.call("DELETE", path, 204)
    items = with_versions.call("GET", f"{path}/history", 200)["items"]
    assert {item["actor_id"] for item in items} == {key}
    assert history(with_versions, path) == [
        (4, 1, None, "delete"),
        (3, 2, 1, "rollback"),
        (2, 1, 2, "put"),
        (1, None, 1, "put"),
    ]


def test_an_import_that_sets_live_is_in_the_history(with_versions: InProcessApi) -> None:
    artifact = with_versions.send("GET", "/v1/models/m/versions/1/artifact").content
    octets = {"Content-Type": "application/octet-stream"}
    with_versions.call("POST", "/v1/models/copy/versions", 201, content=artifact, headers=octets)
    assert history(with_versions, "/v1/models/copy/aliases/live") == [(1, None, 1, "import")]
    with_versions.call("DELETE", "/v1/models/copy", 204)
    with_versions.call("POST", "/v1/models/copy/versions", 201, content=artifact, headers=octets)
    assert history(with_versions, "/v1/models/copy/aliases/live") == [(1, None, 1, "import")], (
        "the history of a deleted model is deleted with it"
    )


def test_the_history_has_pages(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "paged")
    set_to(with_versions, 1, 2, 3, path=path)
    first = with_versions.call("GET", f"{path}/history?limit=2", 200)
    assert [item["revision"] for item in first["items"]] == [3, 2]
    last = with_versions.call("GET", f"{path}/history?limit=2&cursor={first['next_cursor']}", 200)
    assert [item["revision"] for item in last["items"]] == [1]
    assert "next_cursor" not in last


def test_an_alias_that_is_created_again_never_repeats_an_etag(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "again")
    set_to(with_versions, 1, 2, path=path)
    with_versions.call("DELETE", path, 204)
    response = with_versions.send("PUT", path, json={"version": 3})
    assert response.headers["ETag"] == '"4"'
    assert roll_back(with_versions, path) == 2


def test_rollbacks_go_back_one_version_after_the_other(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "back")
    set_to(with_versions, 1, 2, 3, path=path)
    assert [roll_back(with_versions, path), roll_back(with_versions, path, json={})] == [2, 1]
    response = with_versions.send("POST", f"{path}/rollback")
    assert (response.status_code, response.json()["code"]) == (409, "nothing_to_roll_back")
    set_to(with_versions, 4, path=path)
    assert roll_back(with_versions, path) == 1, "not to 2 or 3, which rollbacks have left behind"


def test_a_rollback_can_name_its_version_if_the_alias_has_named_it(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "named")
    set_to(with_versions, 1, 2, 3, path=path)
    assert roll_back(with_versions, path, json={"to_version": 1}) == 1
    response = with_versions.send("POST", f"{path}/rollback", json={"to_version": 4})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/to_version")
    response = with_versions.send("POST", f"{path}/rollback", json={"to_version": 99})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (404, "/to_version")
    assert roll_back(with_versions, path, json={"to_version": 3}) == 3
    assert roll_back(with_versions, path) == 2


def test_a_rollback_skips_deleted_versions(with_versions: InProcessApi) -> None:
    dataset = with_versions.call("GET", "/v1/models/m/versions/1", 200)["dataset_id"]
    for _ in range(3):
        with_versions.train(dataset, "skip", promote="always")
    with_versions.call("DELETE", "/v1/models/skip/versions/2", 204)
    assert roll_back(with_versions, "/v1/models/skip/aliases/live") == 1


def test_a_change_needs_the_current_etag_if_it_sends_one(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "match")
    set_to(with_versions, 1, 2, path=path)
    old, current = {"If-Match": '"1"'}, {"If-Match": '"2"'}
    with_versions.call("PUT", path, 412, json={"version": 3}, headers=old)
    with_versions.call("POST", f"{path}/rollback", 412, headers=old)
    with_versions.call("DELETE", path, 412, headers=old)
    response = with_versions.send("POST", f"{path}/rollback", headers=current)
    assert (response.status_code, response.headers["ETag"]) == (200, '"3"')
    with_versions.call("POST", f"{path}/rollback", 412, headers=current)
    with_versions.call("DELETE", path, 204, headers={"If-Match": '"3"'})


def test_a_version_is_loaded_before_the_rollback(with_versions: InProcessApi) -> None:
    path = fresh(with_versions, "damaged")
    set_to(with_versions, 2, 3, path=path)
    file = with_versions.storage.local(
        f"artifacts/{with_versions.call('GET', '/v1/models/m/versions/2', 200)['training_job_id']}.1.covey"
    )
    content = file.read_bytes()
    file.unlink()
    try:
        with_versions.forget_versions()
        assert with_versions.send("POST", f"{path}/rollback").json()["code"] == "artifact_unavailable"
        assert with_versions.call("GET", path, 200)["version"] == 3
    finally:
        file.write_bytes(content)


def test_a_rollback_follows_the_alias_if_it_moves_while_the_version_loads(
    with_versions: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fresh(with_versions, "moved")
    set_to(with_versions, 1, 2, path=path)
    with_versions.forget_versions()

    def move_once(call: str) -> None:
        if call == "local":
            with_versions.storage.before = lambda _call: None
            with_versions.start("PUT", path, json={"version": 3}).result()

    monkeypatch.setattr(with_versions.storage, "before", move_once)
    assert roll_back(with_versions, path) == 2
