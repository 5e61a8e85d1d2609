"""What a web page sends to a service with keys, and to one whose keys are gone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import covey
from contract import operations, problem_of, requires_documented_content_types
from in_process_api import InProcessApi, start
from waiting import wait_for

from app.cli import database as commands
from app.settings import Settings

NO_KEY = {"Authorization": ""}
MODELS = "/v1/models"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service with a key, trusted names and trusted origins."""
    folder = tmp_path_factory.mktemp("keyed")
    shutil.copyfile(migrated_sqlite, folder / "covey.db")
    settings = Settings(
        data_dir=folder, allowed_hosts="covey.test, Other.test", cors_origins="https://console.test"
    )
    with pytest.MonkeyPatch.context() as patch, start(settings, patch) as service:
        for headers in (
            {"Host": "covey.test:8000"},
            {"Host": "other.test"},
            {"Origin": "https://console.test", "Sec-Fetch-Site": "cross-site"},
        ):
            assert service.send("GET", MODELS, headers=headers).status_code == 200
        response = service.send("GET", MODELS, headers={"Origin": "https://console.test.evil"})
        problem_of(response, 403, "foreign_origin")
        key = commands.create_key(settings, "first", ["admin"])
        # The service sees a key of a command when it looks for changes.
        wait_for(lambda: service.send("GET", MODELS).status_code == 401 or None, what="the first key")
        service.authorization = f"Bearer {key.secret}"
        yield service


def test_with_keys_every_host_is_accepted(keyed: InProcessApi) -> None:
    foreign = {"Host": "public.example", "Origin": "https://public.example", "Sec-Fetch-Site": "cross-site"}
    assert keyed.send("GET", MODELS, headers=foreign).status_code == 200
    assert keyed.send("GET", "/health/live", headers={**foreign, **NO_KEY}).status_code == 200
    problem_of(keyed.send("GET", MODELS, headers={**foreign, **NO_KEY}), 401, "unauthorized")


@pytest.mark.parametrize(("method", "path", "content"), [p for p in operations() if p.values[0] != "GET"])
def test_every_operation_requires_its_documented_content_types(
    keyed: InProcessApi, method: str, path: str, content: frozenset[str]
) -> None:
    requires_documented_content_types(keyed.send, method, path, content)


def test_the_content_type_is_checked_after_the_key(keyed: InProcessApi) -> None:
    response = keyed.send("POST", "/v1/datasets", content=b"{}", headers=NO_KEY)
    problem_of(response, 401, "unauthorized")


def test_the_last_admin_key_cannot_be_deleted_over_http(keyed: InProcessApi) -> None:
    (key,) = keyed.call("GET", "/v1/api-keys", 200)["items"]
    problem_of(keyed.send("DELETE", f"/v1/api-keys/{key['id']}"), 409, "last_admin_key")
    assert keyed.send("GET", MODELS, headers=NO_KEY).status_code == 401


def test_a_service_without_valid_keys_is_reopened_by_a_command_only(
    tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile(migrated_sqlite, tmp_path / "covey.db")
    settings = Settings(data_dir=tmp_path)

    def status_after_a_start() -> int:
        with start(settings, monkeypatch) as service:
            return service.send("GET", MODELS).status_code

    assert status_after_a_start() == 200
    commands.create_key(settings, "reader", ["read"])
    assert status_after_a_start() == 401
    covey("keys", "allow-anonymous", "--data", str(tmp_path), check=True)
    assert status_after_a_start() == 200
