"""Two API processes on one database: each sees what the other changes, and no response fails or mixes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import commands
import fork_server
import httpx
import in_process
import pytest
from production import free_port
from waiting import LIMIT_SECONDS, wait_for

from app.context import AppContext
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.registry import service as registry
from app.routing import service as routing
from app.routing.schemas import RouterPut
from models import artifact
from models.data.examples import Examples
from models.features import TextFeatures, TextFeaturesParameters
from models.perceptrons import MLPP
from models.pipeline import Pipeline

PREFIXES = {1: "one", 2: "two"}
"""Start of all labels of each version."""

BODY = {"instances": [{"text": "red apple"}]}
MAIL = {"Content-Type": "message/rfc822"}


@pytest.fixture
def service_ctx(ctx: AppContext, tmp_path: Path) -> AppContext:
    """A service with a model ``m`` of two versions, of which 1 is ``live``, and a router ``desk``."""
    for prefix in PREFIXES.values():
        labels = [(f"{prefix} a", f"{prefix} b"), (f"{prefix} a",), (f"{prefix} b",), ()]
        examples = Examples("text", ["red apple", "red", "apple", "green"], labels)
        path = tmp_path / "new.covey"
        artifact.save(Pipeline(TextFeatures(TextFeaturesParameters(kind="text")), MLPP()).fit(examples), path)
        registry.import_version(ctx, "m", path, in_process.WITHOUT_KEY)
    put_router(ctx, "old@example.org")
    return ctx


def put_router(ctx: AppContext, fallback: str) -> None:
    routing.put(ctx.db, "desk", RouterPut.model_validate({"model": "m", "fallback": fallback}))


def create_key(ctx: AppContext, *scopes: str) -> dict[str, str]:
    """Create a key, and return its header and its id."""
    key = keys.create(ctx.db, ApiKeyCreate.model_validate({"name": "test", "scopes": scopes}))
    return {"Authorization": f"Bearer {key.secret}", "id": key.id}


@contextmanager
def api(ctx: AppContext, log: Path) -> Iterator[httpx.Client]:
    """Run an API process until the block ends."""
    port = free_port()
    with log.open("ab") as file:
        environment = {
            **os.environ,
            "COVEY_DATA_DIR": str(ctx.settings.data_dir),
            "COVEY_DATABASE_URL": ctx.settings.resolved_database_url(),
        }
        process = fork_server.start(["api", "--port", str(port)], environment, file, file)
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=LIMIT_SECONDS, trust_env=False
        ) as client:

            def live() -> bool | None:
                assert process.poll() is None, log.read_text()
                try:
                    return client.get("/health/live").status_code == 200 or None
                except httpx.HTTPError:
                    return None

            wait_for(live, what="the API process")
            yield client
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)


class Observer:
    """Sends requests continuously, and records the response that each gets.

    Args:
        send: sends one request and returns what to record.
    """

    def __init__(self, send: Callable[[], Any]) -> None:
        self.seen: list[Any] = []
        self._send = send
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_for(lambda _: True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def wait_for(self, condition: Callable[[Any], object]) -> None:
        """Wait until the latest response fulfils a condition."""

        def fulfilled() -> object:
            assert self._thread.is_alive(), self._failure
            return (self.seen and condition(self.seen[-1])) or None

        wait_for(fulfilled, what="a response")

    def changes(self) -> list[Any]:
        """Return the responses in order, without repetitions of the one before."""
        return [seen for i, seen in enumerate(self.seen) if i == 0 or seen != self.seen[i - 1]]

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self.seen.append(self._send())
        except BaseException as error:  # noqa: BLE001 - ``wait_for`` shows it
            self._failure = error


def test_changes_in_one_process_are_seen_by_the_other_without_a_failed_or_mixed_response(
    service_ctx: AppContext, tmp_path: Path
) -> None:
    ctx = service_ctx
    admin, gateway, spare = create_key(ctx, "admin"), create_key(ctx, "predict"), create_key(ctx, "predict")
    log = tmp_path / "api.log"
    with api(ctx, log) as first, api(ctx, log) as second:
        key = {"Authorization": gateway["Authorization"]}
        first.headers["Authorization"] = admin["Authorization"]
        n_messages = 0

        def predict() -> tuple[int, int, str]:
            response = second.post("/v1/models/m/predict", json=BODY, headers=key).json()
            ranking = response["predictions"][0]["ranking"]
            (prefix,) = {item["label"].split()[0] for item in ranking}
            return 200, response["version"], prefix

        with Observer(predict) as observer:
            response = first.put("/v1/models/m/aliases/live", json={"version": 2})
            assert response.status_code == 200, response.text
            observer.wait_for(lambda seen: seen[1] == 2)
        assert observer.changes() == [(200, 1, "one"), (200, 2, "two")]

        def route() -> tuple[int, str | None]:
            nonlocal n_messages
            n_messages += 1
            mail = f"Message-ID: <{n_messages}@example.org>\r\n\r\n...".encode()
            response = second.post("/v1/routers/desk/messages", content=mail, headers={**key, **MAIL})
            return response.status_code, *response.json().get("destinations", [None])

        with Observer(route) as observer:
            response = first.put("/v1/routers/desk", json={"model": "m", "fallback": "new@example.org"})
            assert response.status_code == 200, response.text
            observer.wait_for(lambda seen: seen[1] == "new@example.org")
            response = first.delete("/v1/routers/desk")
            assert response.status_code == 204, response.text
            observer.wait_for(lambda seen: seen[0] == 404)
        assert observer.changes() == [(200, "old@example.org"), (200, "new@example.org"), (404, None)]

        def status() -> int:
            return second.post("/v1/models/m/predict", json=BODY, headers=key).status_code

        with Observer(status) as observer:
            response = first.delete(f"/v1/api-keys/{gateway['id']}")
            assert response.status_code == 204, response.text
            observer.wait_for(lambda seen: seen == 401)
        assert observer.changes() == [200, 401]

        # A secret that a command creates is accepted at once, because an unknown key waits for a check.
        result = commands.covey(
            *("keys", "create", "--name", "new", "--scope", "predict"),
            environment={
                "COVEY_DATA_DIR": str(ctx.settings.data_dir),
                "COVEY_DATABASE_URL": ctx.settings.resolved_database_url(),
            },
            check=True,
        )
        (secret,) = [word for word in result.stdout.split() if word.startswith("cov_")]
        key = {"Authorization": f"Bearer {secret}"}
        assert status() == 200
        # Another process of the database revokes a key without an API process.
        key = {"Authorization": spare["Authorization"]}
        with Observer(status) as observer:
            keys.delete(ctx.db, spare["id"])
            observer.wait_for(lambda seen: seen == 401)
        assert observer.changes() == [200, 401]
