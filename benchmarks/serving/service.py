"""The real service: API processes on one database, with the models, routers and API keys of the benchmark."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import commands
import httpx
import production
from stack import BYTES

from benchmarks.serving import processes

ROUTER = "desk"


class Service:
    """One or several API processes on one database.

    Args:
        folder: empty folder for the data and the logs.
        settings: environment variables, ``COVEY_…``.

    Attributes:
        urls: URLs of the API processes that were started.
        pids: their process ids.
        key: secret of an API key with all scopes.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self.environment = {"COVEY_DATA_DIR": str(folder / "data"), **settings}
        self._opened = ExitStack()
        self.urls: list[str] = []
        self.pids: list[int] = []
        commands.covey("migrate", environment=self.environment, check=True)
        self.key = self.create_key()

    def create_key(self, *scopes: str) -> str:
        """Create an API key, and return its secret. By default, it has all scopes."""
        words = [word for scope in scopes or ("admin",) for word in ("--scope", scope)]
        command = ("keys", "create", "--name", "benchmark", *words)
        return commands.covey(*command, environment=self.environment, check=True).stdout.strip()

    def start_api(self, *options: str) -> str:
        """Start an API process, and return its URL."""
        port = production.free_port()
        url = f"http://127.0.0.1:{port}"
        process = self._opened.enter_context(
            processes.server(
                [sys.executable, "-m", "app", "api", "--port", str(port), *options],
                f"{url}/health/live",
                self._folder / f"api-{len(self.urls)}.log",
                environment=self.environment,
            )
        )
        self.urls.append(url)
        self.pids.append(process.pid)
        return url

    def start_worker(self) -> None:
        """Start a worker, and wait until the API reports it."""
        self._opened.enter_context(
            processes.server(
                [sys.executable, "-m", "app", "worker"],
                f"{self.urls[0]}/health/ready",
                self._folder / "worker.log",
                environment=self.environment,
            )
        )

    def stop(self) -> None:
        """Stop all processes."""
        self._opened.close()

    @property
    def headers(self) -> dict[str, str]:
        """Header fields that authenticate a request."""
        return {"Authorization": f"Bearer {self.key}"}

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request to the first API process, and return the body of the response."""
        headers = {**self.headers, **options.pop("headers", {})}
        response = httpx.request(
            method, f"{self.urls[0]}{path}", headers=headers, timeout=300, trust_env=False, **options
        )
        response.raise_for_status()
        return response.json() if response.content else None

    def import_model(self, name: str, artifact: Path) -> int:
        """Import an artifact as the next version of a model, and return its number."""
        path = f"/v1/models/{name}/versions"
        imported = self.call("POST", path, content=artifact.read_bytes(), headers=BYTES)
        return int(imported["version"])

    def put_router(self, model: str, domain: str = "example.org") -> None:
        """Create or replace the router: each label has a destination of its own."""
        labels = self.call("GET", f"/v1/models/{model}/versions/1")["labels"]
        body = {
            "model": model,
            "fallback": f"desk@{domain}",
            "destinations": {label: f"{label}@{domain}" for label in labels},
        }
        self.call("PUT", f"/v1/routers/{ROUTER}", json=body)


@contextmanager
def service(
    folder: Path, artifacts: Mapping[str, Path], settings: Mapping[str, str], *options: str
) -> Iterator[Service]:
    """Run one API process with the models and the router while the block lasts.

    Args:
        folder: empty folder for the data and the logs.
        artifacts: the models by name.
        settings: environment variables, ``COVEY_…``.
        options: options of ``covey api``.
    """
    folder.mkdir()
    started = Service(folder, settings)
    try:
        started.start_api(*options)
        for name, path in artifacts.items():
            started.import_model(name, path)
        started.put_router("mp_boost")
        yield started
    finally:
        started.stop()
