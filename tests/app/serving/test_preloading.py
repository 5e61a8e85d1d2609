"""Versions are in memory before an alias or a router refers to them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import in_process
import pytest
from in_process_api import InProcessApi
from waiting import LIMIT_SECONDS, wait_for

from app.serving import loaded_models, loaded_version, preloading
from app.serving.loaded_models import LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.preloading import Preloader
from app.serving.snapshot import ServedRouter, ServedVersion, Snapshot
from app.storage import LocalStorage, StorageUnavailableError

PREDICT = {"instances": [{"text": "an invoice"}]}
LIVE = "/v1/models/m/aliases/live"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the loads of each artifact by its file name."""
    counter: Counter[str] = Counter()
    load = loaded_version.load

    def counted(path: Path) -> LoadedVersion:
        counter[path.name] += 1
        return load(path)

    monkeypatch.setattr(loaded_version, "load", counted)
    return counter


@pytest.fixture
def two_versions(service: InProcessApi) -> InProcessApi:
    """A service with a model of two versions. The alias ``live`` names the first one."""
    dataset = service.dataset()
    for _ in range(2):
        service.train(dataset)
    return service


def artifact(service: InProcessApi, version: int) -> Path:
    """Return the file of a version of the model."""
    files = sorted((service.storage.root / "artifacts").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return files[version - 1]


def live(service: InProcessApi) -> int:
    version: int = service.call("GET", "/v1/models/m", 200)["aliases"]["live"]
    return version


def test_the_request_after_a_promote_loads_nothing(two_versions: InProcessApi, loads: Counter[str]) -> None:
    two_versions.call("PUT", LIVE, 200, json={"version": 2})
    assert loads == {artifact(two_versions, 2).name: 1}
    response = two_versions.call("POST", "/v1/models/m/predict", 200, json=PREDICT)
    assert response["version"] == 2
    assert loads.total() == 1


@pytest.mark.parametrize(("missing", "problem"), [(True, "is missing"), (False, "is damaged")])
def test_a_version_that_cannot_be_loaded_is_not_used(
    missing: bool, problem: str, two_versions: InProcessApi
) -> None:
    service = two_versions
    router = {"model": "m", "version": 1, "fallback": "desk"}
    service.call("PUT", "/v1/routers/r", 200, json=router)
    file = artifact(service, 2)
    content = file.read_bytes()
    file.unlink()
    if not missing:
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for path, body in (("/v1/routers/r", router), (LIVE, {})):
        response = service.send("PUT", path, json={**body, "version": 2})
        assert (response.status_code, response.json()["code"]) == (503, "artifact_unavailable")
        assert problem in response.json()["detail"]
    assert live(service) == 1
    assert service.call("GET", "/v1/routers/r", 200)["version"] == 1


def test_a_promote_while_the_storage_is_slow_is_refused_until_the_version_is_loaded(
    two_versions: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = two_versions
    proceed = threading.Event()
    service.storage.before = lambda call: cast("None", call != "local" or proceed.wait(LIMIT_SECONDS))
    monkeypatch.setattr(loaded_models, "WAIT_SECONDS", 0.01)
    response = service.send("PUT", LIVE, json={"version": 2})
    assert (response.status_code, response.json()["code"]) == (503, "storage_unavailable")
    assert int(response.headers["retry-after"]) > 0
    assert live(service) == 1
    proceed.set()

    def promoted() -> bool | None:
        return True if service.send("PUT", LIVE, json={"version": 2}).status_code == 200 else None

    wait_for(promoted, what="the promote")
    assert live(service) == 2


def test_a_version_in_memory_can_be_promoted_without_the_storage(two_versions: InProcessApi) -> None:
    service = two_versions
    service.call("POST", "/v1/models/m/predict", 200, json={**PREDICT, "version": 2})

    def fail(_call: str) -> None:
        raise StorageUnavailableError("gone")

    service.storage.before = fail
    service.call("PUT", LIVE, 200, json={"version": 2})
    assert live(service) == 2


def test_a_version_that_a_worker_promotes_is_loaded_for_its_router(
    service: InProcessApi, loads: Counter[str]
) -> None:
    dataset = service.dataset()
    service.train(dataset)
    service.call("PUT", "/v1/routers/r", 200, json={"model": "m", "fallback": "desk"})
    body = {"dataset_id": dataset, "model": "m", "learner": {"algorithm": "svm"}, "promote": "always"}
    service.call("POST", "/v1/training-jobs", 202, json=body)
    in_process.work(service.ctx)
    wait_for(lambda: loads[artifact(service, 2).name] or None, what="the version to be loaded")
    before = loads.total()
    mail = {"content": b"Message-ID: <1@example.org>\r\n\r\nan invoice\r\n"}
    headers = {"Content-Type": "message/rfc822"}
    decision = service.call("POST", "/v1/routers/r/messages", 200, headers=headers, **mail)
    assert decision["version"] == 2
    assert loads.total() == before


def served(number: int) -> ServedVersion:
    return ServedVersion("m", number, f"artifacts/v{number}")


def snapshot(aliases: dict[str, int], routers: dict[str, dict[str, str]]) -> Snapshot:
    return Snapshot(
        revisions={},
        requires_keys=False,
        keys={},
        aliases={("m", alias): served(number) for alias, number in aliases.items()},
        routers={
            name: ServedRouter(name, name, {"model": "m", **config}) for name, config in routers.items()
        },
        numbers={},
    )


class Loads:
    """Replaces the loading of files. It can be held up, and fails for some versions."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.proceed = threading.Event()
        self.proceed.set()

    def load(self, path: Path) -> LoadedVersion:
        assert self.proceed.wait(LIMIT_SECONDS)
        self.loaded.append(path.name)
        return cast("LoadedVersion", path.name)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LoadedModels, Loads]]:
    """Memory for three versions; the storage has versions 1 to 5."""
    storage = LocalStorage(tmp_path)
    storage.initialize()
    for number in range(1, 6):
        with storage.create(f"artifacts/v{number}") as file:
            file.write(b"x")
    loads = Loads()
    monkeypatch.setattr(loaded_version, "load", loads.load)
    # On a busy machine a load may take long.
    monkeypatch.setattr(preloading, "START_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr(preloading, "CHANGE_SECONDS", LIMIT_SECONDS)
    yield LoadedModels(storage, capacity=3), loads
    loads.proceed.set()


def prepare(models: LoadedModels, old: Snapshot | None, new: Snapshot) -> None:
    asyncio.run(Preloader(models).before_snapshot(old, new))


def test_a_process_starts_with_the_versions_of_its_routers(models: tuple[LoadedModels, Loads]) -> None:
    routers = {"r": {"version": "live", "shadow": "next"}, "s": {"version": "gone"}}
    prepare(models[0], None, snapshot({"live": 1, "next": 2, "unused": 3}, routers))
    assert sorted(models[1].loaded) == ["v1", "v2"]


def test_a_change_loads_versions_of_routers_and_of_aliases_that_are_used(
    models: tuple[LoadedModels, Loads],
) -> None:
    loaded, loads = models
    loaded.get(served(1))
    routers = {"r": {"version": "live"}}
    old = snapshot({"live": 1, "used": 1, "unused": 2}, routers)
    prepare(loaded, old, snapshot({"live": 3, "used": 4, "unused": 5}, routers))
    assert loads.loaded[0] == "v1"
    assert sorted(loads.loaded[1:]) == ["v3", "v4"]


def test_a_change_of_keys_loads_nothing(models: tuple[LoadedModels, Loads]) -> None:
    old = snapshot({"live": 1}, {"r": {"version": "live"}})
    new = Snapshot({"keys": 1}, True, {}, old.aliases, old.routers, {})
    prepare(models[0], old, new)
    assert models[1].loaded == []


def test_no_more_versions_are_loaded_than_fit(models: tuple[LoadedModels, Loads]) -> None:
    routers = {f"r{number}": {"version": f"a{number}"} for number in range(1, 6)}
    prepare(models[0], None, snapshot({f"a{number}": number for number in range(1, 6)}, routers))
    assert sorted(models[1].loaded) == ["v1", "v2", "v3"]


def test_a_slow_load_delays_a_change_only_for_a_moment(
    models: tuple[LoadedModels, Loads], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, loads = models
    monkeypatch.setattr(preloading, "CHANGE_SECONDS", 0.01)
    routers = {"r": {"version": "live"}}
    loads.proceed.clear()
    prepare(loaded, snapshot({"live": 1}, routers), snapshot({"live": 2}, routers))
    assert not loaded.is_loaded(served(2))
    loads.proceed.set()
    wait_for(lambda: loaded.is_loaded(served(2)) or None, what="the version")


def test_a_version_that_cannot_be_loaded_does_not_prevent_a_change(
    models: tuple[LoadedModels, Loads],
) -> None:
    routers = {"r": {"version": "lost"}, "s": {"version": "live"}}
    prepare(models[0], None, snapshot({"lost": 99, "live": 1}, routers))
    assert models[0].is_loaded(served(1))
