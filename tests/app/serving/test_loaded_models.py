"""Versions in memory: each is loaded once, the most recently used ones are kept, failures are not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from app.db.tables import ModelVersion
from app.serving.loaded_models import LoadedModels
from app.storage import LocalStorage
from models import artifact
from models.errors import ArtifactError
from models.pipeline import Pipeline

THREADS = 8


class Loader:
    """Replaces ``artifact.load``: counts the loads of each file and can hold them up."""

    def __init__(self) -> None:
        self.loads: Counter[str] = Counter()
        self.before_load: Callable[[str], None] = lambda _name: None

    def load(self, path: Path) -> Pipeline:
        self.loads[path.name] += 1
        self.before_load(path.name)
        return cast("Pipeline", f"pipeline {path.name} {self.loads[path.name]}")


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Loader:
    loader = Loader()
    monkeypatch.setattr(artifact, "load", loader.load)
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


def get_concurrently(models: LoadedModels, keys: str) -> list[Pipeline | BaseException]:
    """Get versions in one thread each; all threads start together."""
    start = threading.Barrier(len(keys))

    def get(key: str) -> Pipeline | BaseException:
        start.wait(30)
        try:
            return models.get(version(key))
        except (ArtifactError, FileNotFoundError) as error:
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
    loader.before_load = lambda _name: cast("None", both_loading.wait(30))
    get_concurrently(LoadedModels(storage, capacity=2), "ab" * (THREADS // 2))
    assert loader.loads == {"a": 1, "b": 1}


def test_a_loaded_version_is_returned_while_another_one_loads(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    models.get(version("a"))
    loading, proceed = threading.Event(), threading.Event()

    def wait(_name: str) -> None:
        loading.set()
        assert proceed.wait(30)

    loader.before_load = wait
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(models.get, version("b"))
        try:
            assert loading.wait(30)
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


def test_a_failed_load_raises_in_every_thread_and_can_be_repeated(
    storage: LocalStorage, loader: Loader
) -> None:
    models = LoadedModels(storage, capacity=2)

    def fail(_name: str) -> None:
        raise ArtifactError("the file is damaged")

    loader.before_load = fail
    errors = get_concurrently(models, "a" * THREADS)
    assert [type(error) for error in errors] == [ArtifactError] * THREADS
    loader.before_load = lambda _name: None
    failed = loader.loads["a"]
    pipelines = get_concurrently(models, "a" * THREADS)
    assert loader.loads["a"] == failed + 1
    assert set(map(str, pipelines)) == {f"pipeline a {failed + 1}"}


def test_a_missing_file_is_reported_until_it_exists(storage: LocalStorage, loader: Loader) -> None:
    models = LoadedModels(storage, capacity=2)
    loader.before_load = lambda name: cast("None", storage.local(f"artifacts/{name}").stat())
    errors = get_concurrently(models, "dd")
    assert [type(error) for error in errors] == [FileNotFoundError] * 2
    with storage.create("artifacts/d") as file:
        file.write(b"d")
    models.get(version("d"))


def test_a_damaged_artifact_is_reported(storage: LocalStorage) -> None:
    with pytest.raises(ArtifactError):
        LoadedModels(storage, capacity=2).get(version("a"))
