"""Versions in memory: each is loaded once, the most recently used ones are kept, failures are not."""

from __future__ import annotations

import errno
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from waiting import LIMIT_SECONDS, wait_for

from app.api.errors import status_of
from app.db.tables import ModelVersion
from app.errors import NotReady
from app.serving import loaded_models, loaded_version
from app.serving.loaded_models import (
    MAX_LOADING,
    MAX_QUEUED,
    MAX_WAITING,
    ArtifactUnavailable,
    LoadedModels,
)
from app.serving.loaded_version import LoadedVersion
from app.storage import LocalStorage, MissingFileError, StorageUnavailableError
from models.errors import ArtifactError

THREADS = 8


class Loader:
    """Replaces ``loaded_version.load``: counts the loads of each file and can hold them up."""

    def __init__(self) -> None:
        self.loads: Counter[str] = Counter()
        self.before_load: Callable[[str], None] = lambda _name: None

    def load(self, path: Path) -> LoadedVersion:
        self.loads[path.name] += 1
        self.before_load(path.name)
        return cast("LoadedVersion", f"pipeline {path.name} {self.loads[path.name]}")


@pytest.fixture(autouse=True)
def long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a load may take long."""
    monkeypatch.setattr(loaded_models, "WAIT_SECONDS", LIMIT_SECONDS)


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Loader:
    loader = Loader()
    monkeypatch.setattr(loaded_version, "load", loader.load)
    return loader


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(tmp_path)
    storage.initialize()
    for name in "abc":
        with storage.create(f"artifacts/{name}") as file:
            file.write(name.encode())
    return storage


def version(key: str) -> ModelVersion:
    return ModelVersion(model="m", version=1, artifact_key=f"artifacts/{key}")


def get_concurrently(models: LoadedModels, keys: str) -> list[LoadedVersion | BaseException]:
    """Get versions in one thread each; all threads start together."""
    start = threading.Barrier(len(keys))

    def get(key: str) -> LoadedVersion | BaseException:
        start.wait(LIMIT_SECONDS)
        try:
            return models.get(version(key))
        except (ArtifactUnavailable, MissingFileError) as error:
            return error

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(get, keys))


def test_concurrent_requests_load_a_version_once(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    pipelines = get_concurrently(models, "a" * THREADS)
    assert loader.loads == {"a": 1}
    assert {id(pipeline) for pipeline in pipelines} == {id(models.get(version("a")))}


def test_versions_load_side_by_side(storage: LocalStorage, loader: Loader) -> None:
    both_loading = threading.Barrier(2)
    loader.before_load = lambda _name: cast("None", both_loading.wait(LIMIT_SECONDS))
    get_concurrently(LoadedModels(storage, capacity=2), "ab" * (THREADS // 2))
    assert loader.loads == {"a": 1, "b": 1}


def test_a_loaded_version_is_returned_while_another_one_loads(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    models.get(version("a"))
    loading, proceed = threading.Event(), threading.Event()

    def wait(_name: str) -> None:
        loading.set()
        assert proceed.wait(LIMIT_SECONDS)

    loader.before_load = wait
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(models.get, version("b"))
        try:
            assert loading.wait(LIMIT_SECONDS)
            assert str(models.get(version("a"))) == "pipeline a 1"
        finally:
            proceed.set()
        assert str(slow.result()) == "pipeline b 1"


def test_the_least_recently_used_version_is_evicted(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    for key in "abac":  # c replaces b, because a was used after b
        models.get(version(key))
    assert loader.loads == {"a": 1, "b": 1, "c": 1}
    models.get(version("a"))
    models.get(version("c"))
    assert loader.loads == {"a": 1, "b": 1, "c": 1}
    models.get(version("b"))
    assert loader.loads == {"a": 1, "b": 2, "c": 1}


def test_a_look_into_memory_loads_nothing_and_counts_as_a_use(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    assert models.loaded(version("a")) is None
    assert loader.loads == {}
    models.get(version("a"))
    models.get(version("b"))
    assert models.loaded(version("a")) is models.get(version("a"))
    models.loaded(version("a"))
    models.get(version("c"))  # replaces b
    assert models.loaded(version("b")) is None
    assert str(models.loaded(version("a"))) == "pipeline a 1"


def test_a_failed_load_raises_in_every_thread_and_can_be_repeated(
    storage: LocalStorage, loader: Loader
) -> None:
    models = LoadedModels(storage, capacity=2)

    def fail(_name: str) -> None:
        raise ArtifactError("the file is damaged")

    loader.before_load = fail
    errors = get_concurrently(models, "a" * THREADS)
    assert [type(error) for error in errors] == [ArtifactUnavailable] * THREADS
    loader.before_load = lambda _name: None
    failed = loader.loads["a"]
    assert failed == 1, "a damaged file is not verified again"
    assert models.damaged() == {"artifacts/a": "the file is damaged"}
    restore(storage, "a")
    pipelines = get_concurrently(models, "a" * THREADS)
    assert loader.loads["a"] == failed + 1
    assert set(map(str, pipelines)) == {f"pipeline a {failed + 1}"}
    assert models.damaged() == {}


def restore(storage: LocalStorage, name: str) -> None:
    """Replace a file, as a restore from a backup does."""
    with storage.create(f"artifacts/{name}") as file:
        file.write(name.encode())


def test_a_missing_file_is_reported_until_it_exists(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    errors = get_concurrently(models, "dd")
    assert [type(error) for error in errors] == [MissingFileError] * 2
    assert loader.loads == {}
    restore(storage, "d")
    models.get(version("d"))


def test_a_damaged_artifact_is_reported(storage: LocalStorage) -> None:
    with pytest.raises(ArtifactUnavailable) as raised:
        LoadedModels(storage, capacity=2).get(version("a"))
    assert (status_of(raised.value), raised.value.code) == (503, "artifact_unavailable")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ArtifactError("damaged"), ArtifactUnavailable),
        (OSError(errno.EIO, "Input/output error"), StorageUnavailableError),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), MissingFileError),
        (SystemExit(1), SystemExit),
    ],
)
def test_a_failed_load_leaves_nothing_behind(
    error: BaseException, expected: type[BaseException], storage: LocalStorage, loader: Loader
) -> None:
    def fail(_name: str) -> None:
        raise error

    models = LoadedModels(storage, capacity=2)
    loader.before_load = fail
    for _ in range(MAX_QUEUED + 1):
        with pytest.raises(expected):
            models.get(version("a"))
    assert models._loading == {}
    assert models._waiting == 0


def test_a_version_is_loaded_after_the_process_had_too_many_threads(
    storage: LocalStorage, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = LoadedModels(storage, capacity=2)

    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(NotReady):
            models.get(version("a"))
        assert models.start([version("a")]) == []
    assert str(models.get(version("a"))) == "pipeline a 1"


def test_a_request_waits_only_so_long_and_the_version_continues_to_load(
    storage: LocalStorage, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_models, "WAIT_SECONDS", 0.01)
    models = LoadedModels(storage, capacity=2)
    proceed = threading.Event()
    loader.before_load = lambda _name: cast("None", proceed.wait(LIMIT_SECONDS))
    with pytest.raises(NotReady) as raised:
        models.get(version("a"))
    assert (raised.value.code, raised.value.headers) == ("storage_unavailable", {"Retry-After": "5"})
    proceed.set()

    def loaded() -> LoadedVersion | None:
        try:
            return models.get(version("a"))
        except NotReady:
            return None

    wait_for(loaded, what="the version")
    assert loader.loads == {"a": 1}


def test_few_requests_wait_for_a_slow_storage_and_few_versions_load_at_once(
    storage: LocalStorage, loader: Loader
) -> None:
    models = LoadedModels(storage, capacity=100)
    names = [f"v{i}" for i in range(2 * MAX_WAITING)]
    for name in names:
        restore(storage, name)
    models.get(version("a"))
    proceed = threading.Event()
    loading: list[str] = []

    def hold(name: str) -> None:
        loading.append(name)
        assert proceed.wait(LIMIT_SECONDS)

    loader.before_load = hold

    def get(name: str) -> str:
        try:
            return str(models.get(version(name)))
        except NotReady as error:
            return error.code

    with ThreadPoolExecutor(len(names)) as pool:
        try:
            requests = [pool.submit(get, name) for name in names]
            refused = len(names) - MAX_WAITING
            wait_for(
                lambda: True if sum(request.done() for request in requests) == refused else None,
                what="the requests that cannot wait",
            )
            wait_for(lambda: True if len(loading) == MAX_LOADING else None, what="the first loads")
            assert get("a") == "pipeline a 1"
        finally:
            proceed.set()
        results = [request.result() for request in requests]
    assert results.count("storage_unavailable") == refused
    assert len(loader.loads) == 1 + MAX_WAITING
