"""Runs the API in the process of the test, with a storage that the test controls."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import in_process
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from contract import DOCUMENT
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response
from sqlalchemy import Engine, event
from stack import departments
from waiting import LIMIT_SECONDS

from app.context import AppContext
from app.health.routed_versions import RoutedVersions
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.main import create_app
from app.serving.loaded_models import LoadedModels
from app.settings import Settings
from app.storage import FileInfo, LocalStorage, StorageState, StoredFile

T = TypeVar("T")


class ControlledStorage(LocalStorage):
    """A storage in a folder that calls a function of the test before each call to the storage.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.before: Callable[[str], None] = lambda _call: None
        self.calls: set[str] = set()

    def _call(self, name: str) -> None:
        self.calls.add(name)
        self.before(name)

    def check(self) -> StorageState:
        """See ``LocalStorage``."""
        self._call("check")
        return super().check()

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """See ``LocalStorage``."""
        self._call("create")
        with super().create(key) as file:
            yield file
            self._call("create")

    def put(self, key: str, path: Path) -> StoredFile:
        """See ``LocalStorage``."""
        self._call("put")
        return super().put(key, path)

    def local(self, key: str) -> Path:
        """See ``LocalStorage``."""
        self._call("local")
        return super().local(key)

    def delete(self, key: str) -> None:
        """See ``LocalStorage``."""
        self._call("delete")
        super().delete(key)

    def files(self, folder: str) -> Iterator[FileInfo]:
        """See ``LocalStorage``."""
        self._call("files")
        return super().files(folder)

    @contextmanager
    def temporary_file(self, suffix: str = "") -> Iterator[Path]:
        """See ``LocalStorage``."""
        self._call("temporary_file")
        with super().temporary_file(suffix) as path:
            yield path


class HeldConnections:
    """Knows which threads hold a connection of a database.

    Args:
        engine: engine of the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._of_thread: dict[int, int] = {}
        event.listen(engine, "checkout", lambda *_: self._add(1))
        event.listen(engine, "checkin", lambda *_: self._add(-1))

    def _add(self, n: int) -> None:
        thread = threading.get_ident()
        self._of_thread[thread] = self._of_thread.get(thread, 0) + n

    def any_in_this_thread(self) -> bool:
        """Whether the calling thread holds a connection."""
        return self._of_thread.get(threading.get_ident(), 0) > 0


class InProcessApi:
    """The API, its context and its storage.

    Args:
        portal: runs the event loop of the API in a thread.
        client: sends requests.
        app: the application.
    """

    def __init__(self, portal: BlockingPortal, client: AsyncClient, app: FastAPI) -> None:
        self._portal = portal
        self._client = client
        self.app = app
        self.ctx: AppContext = app.state.context
        self.routed_versions: RoutedVersions = app.state.routed_versions
        self.loaded: LoadedModels = app.state.loaded
        assert isinstance(self.ctx.storage, ControlledStorage)
        self.storage = self.ctx.storage
        self.operations: set[str] = set()
        # A test compares this document with that of the API, which takes seconds to compute.
        self.documented = {
            f"{method.upper()} {path}": operation
            for path, methods in DOCUMENT["paths"].items()
            for method, operation in methods.items()
        }

    def call(self, method: str, path: str, status: int, **options: Any) -> Any:
        """Send a request, check the status of the response, and return its body."""
        response = self.send(method, path, **options)
        assert response.status_code == status, (
            f"{method} {path}: {response.status_code} {response.text[:2000]}"
        )
        is_json = response.content and response.headers["content-type"] == "application/json"
        return response.json() if is_json else None

    def send(self, method: str, path: str, **options: Any) -> Response:
        """Send a request and note its operation."""
        bare = path.partition("?")[0]
        for operation in self.documented:
            name, _, template = operation.partition(" ")
            if name == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), bare):
                self.operations.add(operation)
        return self._portal.call(partial(self._client.request, method, path, **options))

    @property
    def authorization(self) -> str:
        """The header ``Authorization`` of all requests; by default, of an administrator."""
        authorization: str = self._client.headers["Authorization"]
        return authorization

    @authorization.setter
    def authorization(self, value: str) -> None:
        self._client.headers["Authorization"] = value

    def run(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run an asynchronous function on the event loop of the API."""
        result: T = self._portal.call(function)
        return result

    def start(self, method: str, path: str, **options: Any) -> Future[Response]:
        """Send a request without waiting for the response."""
        return self._portal.start_task_soon(partial(self._client.request, method, path, **options))

    def forget_versions(self) -> None:
        """Remove all versions from memory, as if other versions had replaced them."""
        self.loaded._entries.clear()

    @property
    def cookies(self) -> list[str]:
        """The cookies of the browser that sends the requests, as ``name=value``."""
        return [f"{cookie.name}={cookie.value}" for cookie in self._client.cookies.jar]

    def forget_cookies(self) -> None:
        """Remove all cookies, as if another browser sent the next request."""
        self._client.cookies.clear()

    def dataset(self, examples: list[dict[str, Any]] | None = None) -> str:
        """Create a ready data set from inline examples, by default texts, and return its id."""
        examples = examples or [
            {name: example[name] for name in ("id", "text", "labels", "split")} for example in departments(40)
        ]
        body = {"name": "inline", "examples": examples}
        created: str = self.call("POST", "/v1/datasets", 201, json=body)["id"]
        in_process.work(self.ctx)
        return created

    def train(self, dataset: str, model: str = "m", **options: Any) -> dict[str, Any]:
        """Train a version, by default with naive Bayes and without held-out folds, and return the job."""
        body = {
            "dataset_id": dataset,
            "model": model,
            "learner": {"algorithm": "naive_bayes"},
            "decision": {"kind": "sign"},
            **options,
        }
        job: dict[str, Any] = self.call("POST", "/v1/training-jobs", 202, json=body)
        in_process.work(self.ctx)
        return job


@contextmanager
def api(
    folder: Path, migrated_sqlite: Path, patch: pytest.MonkeyPatch, **options: Any
) -> Iterator[InProcessApi]:
    """Run the API with an SQLite database until the block ends.

    Args:
        folder: for the database and the storage.
        migrated_sqlite: a migrated database to copy.
        patch: replaces the storage.
        options: settings of the API.
    """
    shutil.copyfile(migrated_sqlite, folder / "covey.db")
    with start(Settings(data_dir=folder, **options), patch) as service:
        key = keys.create(service.ctx.db, ApiKeyCreate(name="test", scopes=["admin"]))
        service.authorization = f"Bearer {key.secret}"
        yield service


@contextmanager
def start(settings: Settings, patch: pytest.MonkeyPatch) -> Iterator[InProcessApi]:
    """Run the API on the migrated database of its data folder, without a key, until the block ends."""
    storage = ControlledStorage(settings.data_dir / "storage")
    storage.initialize()
    patch.setattr("app.context.open_storage", lambda _settings: storage)
    # On a busy machine everything may take long.
    patch.setattr("app.storage.deletion.WAIT_SECONDS", LIMIT_SECONDS)
    app = create_app(settings)
    transport = ASGITransport(app, raise_app_exceptions=False)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(app.router.lifespan_context(app)),
        portal.wrap_async_context_manager(
            AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=LIMIT_SECONDS)
        ) as client,
    ):
        yield InProcessApi(portal, client, app)
