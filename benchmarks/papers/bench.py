"""HTTP client of the papers' scripts."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from benchmarks.papers.charts import Panel, draw
from models import artifact, catalog
from models.pipeline import Pipeline

Json = dict[str, Any]

ENDED = ("succeeded", "failed", "cancelled", "ready")


class RequestFailedError(RuntimeError):
    """A request, data set, job or experiment failed."""


class Bench:
    """Runs trainings and experiments over HTTP. Repeated requests return the first result.

    Args:
        url: returns the URL of the service; called before the first request.
        key: API key.

    Attributes:
        quick: whether to compute small versions.
        long: whether to compute results that take hours.
    """

    def __init__(
        self, url: Callable[[], str], *, key: str | None = None, quick: bool = False, long: bool = False
    ) -> None:
        self._url, self._headers = url, {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client: httpx.Client | None = None
        self.quick = quick
        self.long = long
        self._datasets: dict[str, str] = {}
        self._jobs: dict[str, str] = {}
        self._experiments: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

    def __call__(self, method: str, path: str, **options: Any) -> Json:
        """Send a request and return the body of the response.

        Raises:
            RequestFailedError: If the response is an error.
        """
        body: Json = self._send(method, path, **options).json()
        return body

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        if self._client is None:
            self._client = httpx.Client(
                base_url=self._url(), headers=self._headers, timeout=300.0, trust_env=False
            )
        response = self._client.request(method, path, **options)
        if response.is_error:
            raise RequestFailedError(f"{method} {path}: {response.status_code} {response.text}")
        return response

    def dataset(
        self, name: str, content: Callable[[], bytes], *, tree: Json | None = None, **upload: str
    ) -> str:
        """Return the id of a data set. The first call uploads it.

        Args:
            name: name of the data set, here and in the service.
            content: returns the content.
            tree: the ``label_tree``.
            upload: query parameters of the upload, such as ``format``.

        Raises:
            RequestFailedError: If the service rejects the content.
        """
        if name not in self._datasets:
            body: Json = {"name": name} if tree is None else {"name": name, "label_tree": tree}
            created = self("POST", "/v1/datasets", json=body)
            path = f"/v1/datasets/{created['id']}"
            self(
                "PUT",
                f"{path}/content",
                content=content(),
                params=upload,
                headers={"Content-Type": "application/octet-stream"},
            )
            self._wait(path)
            self._datasets[name] = created["id"]
        return self._datasets[name]

    def train(self, requests: Sequence[Json]) -> list[Json]:
        """Queue trainings, wait for them, and return their jobs.

        Args:
            requests: bodies of ``POST /v1/training-jobs``; ``model`` is optional. Without ``decision``, it is
                the learner's own, as in the papers.

        Raises:
            RequestFailedError: If a training fails.
        """
        keys = [json.dumps(request, sort_keys=True) for request in requests]
        for key, request in zip(keys, requests, strict=True):
            if key not in self._jobs:
                body = {"model": request["learner"]["algorithm"], "promote": "never"}
                body |= with_own_decision(request)
                self._jobs[key] = self("POST", "/v1/training-jobs", json=body)["id"]
        return [self._wait(f"/v1/training-jobs/{self._jobs[key]}") for key in keys]

    def version(self, job: Json) -> Json:
        """Return the version of a training: labels, metrics, facts, timings."""
        return self("GET", f"/v1/models/{job['result']['model']}/versions/{job['result']['version']}")

    def model(self, job: Json) -> Pipeline:
        """Return the fitted pipeline of a training's version."""
        model, version = job["result"]["model"], job["result"]["version"]
        response = self._send("GET", f"/v1/models/{model}/versions/{version}/artifact")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(response.content)
            return artifact.load(path)

    def evaluation(self, job: Json) -> Json:
        """Return the full evaluation of a training's version."""
        return self(
            "GET", f"/v1/models/{job['result']['model']}/versions/{job['result']['version']}/evaluation"
        )

    def curve(self, job: Json) -> list[Json]:
        """Return all points of a training's curve."""
        points: list[Json] = []
        query: dict[str, Any] = {"limit": 500}
        while True:
            page = self("GET", f"/v1/training-jobs/{job['id']}/curve", params=query)
            points += page["items"]
            if page.get("next_cursor") is None:
                return points
            query["cursor"] = page["next_cursor"]

    def experiment(self, request: Json) -> Json:
        """Run an experiment and return its report.

        Args:
            request: body of ``POST /v1/experiments``. Without ``decision``, that of a configuration is the
                learner's own, as in the papers.

        Raises:
            RequestFailedError: If a cell fails.
        """
        if "configurations" in request:
            request = {**request, "configurations": [*map(with_own_decision, request["configurations"])]}
        key = json.dumps(request, sort_keys=True)
        if key not in self._experiments:
            self._experiments[key] = self("POST", "/v1/experiments", json=request)["id"]
        path = f"/v1/experiments/{self._experiments[key]}"
        self._wait(path)
        report = self("GET", f"{path}/report")
        failures = [failure for row in report["rows"] for failure in row["failures"]]
        if failures:
            raise RequestFailedError(f"{path}: {failures}")
        return report

    def draw(self, name: str, caption: str, panels: Sequence[Panel], *, across: int = 2) -> str:
        """Draw a chart and return the Markdown that shows it. Small versions are not drawn."""
        if self.quick:
            return f"({caption}: not drawn)"
        return draw(name, caption, panels, across=across)

    def _wait(self, path: str) -> Json:
        pause, printed_at = 0.05, time.monotonic()
        while (found := self("GET", path))["state"] not in ENDED:
            time.sleep(pause)
            pause = min(1.0, pause * 1.2)
            if time.monotonic() - printed_at > 60:
                printed_at = time.monotonic()
                print(
                    f"  {path}: {found.get('progress') or found.get('counts')}", file=sys.stderr, flush=True
                )
        if found["state"] not in ("succeeded", "ready"):
            raise RequestFailedError(f"{path}: {found['state']}: {found.get('error')}")
        return found


def with_own_decision(request: Json) -> Json:
    """Return a training or configuration whose decision, if it has none, is the learner's own."""
    learner = catalog.LEARNER_PARAMETERS.validate_python(request["learner"])
    return {"decision": catalog.own_decision(learner).model_dump(mode="json"), **request}
