"""A running service, and what the papers' scripts ask of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from benchmarks.papers.pictures import Panel, draw

Json = dict[str, Any]

ENDED = ("succeeded", "failed", "cancelled", "ready")


class RefusedError(RuntimeError):
    """The service did not do what was asked of it."""


class Bench:
    """Trainings and experiments over HTTP; what was asked for once is not done again.

    Attributes:
        quick: whether parts should be small.
        long: whether what takes hours is asked for.
    """

    def __init__(self, url: str, *, key: str | None = None, quick: bool = False, long: bool = False) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=300.0, trust_env=False)
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
        self._http.close()

    def __call__(self, method: str, path: str, **options: Any) -> Json:
        """Send a request and give the answer's body.

        Raises:
            RefusedError: the answer is a problem.
        """
        response = self._http.request(method, path, **options)
        if response.is_error:
            raise RefusedError(f"{method} {path}: {response.status_code} {response.text}")
        answer: Json = response.json()
        return answer

    def dataset(
        self, name: str, content: Callable[[], bytes], *, tree: Json | None = None, **upload: str
    ) -> str:
        """The id of a data set, uploaded when first asked for.

        Args:
            name: what it is called, here and in the service.
            content: makes its body.
            tree: its ``label_tree``.
            upload: query parameters of the upload, such as ``format``.

        Raises:
            RefusedError: it could not be read.
        """
        if name not in self._datasets:
            body: Json = {"name": name} if tree is None else {"name": name, "label_tree": tree}
            created = self("POST", "/v1/datasets", json=body)
            path = f"/v1/datasets/{created['id']}"
            self("PUT", f"{path}/content", content=content(), params=upload)
            self._wait(path)
            self._datasets[name] = created["id"]
        return self._datasets[name]

    def train(self, requests: Sequence[Json]) -> list[Json]:
        """The jobs of trainings, all queued at once and waited for.

        Args:
            requests: as for ``POST /v1/training-jobs``; ``model`` may be missing.

        Raises:
            RefusedError: one of them failed.
        """
        keys = [json.dumps(request, sort_keys=True) for request in requests]
        for key, request in zip(keys, requests, strict=True):
            if key not in self._jobs:
                body = {"model": request["learner"]["algorithm"], "promote": "never", **request}
                self._jobs[key] = self("POST", "/v1/training-jobs", json=body)["id"]
        return [self._wait(f"/v1/training-jobs/{self._jobs[key]}") for key in keys]

    def version(self, job: Json) -> Json:
        """The version that a training made: labels, metrics, facts, timings."""
        return self("GET", f"/v1/models/{job['result']['model']}/versions/{job['result']['version']}")

    def evaluation(self, job: Json) -> Json:
        """Everything that was measured of the version that a training made."""
        return self(
            "GET", f"/v1/models/{job['result']['model']}/versions/{job['result']['version']}/evaluation"
        )

    def curve(self, job: Json) -> list[Json]:
        """Every point of a training's curve."""
        points: list[Json] = []
        query: dict[str, Any] = {"limit": 500}
        while True:
            page = self("GET", f"/v1/training-jobs/{job['id']}/curve", params=query)
            points += page["items"]
            if page.get("next_cursor") is None:
                return points
            query["cursor"] = page["next_cursor"]

    def experiment(self, request: Json) -> Json:
        """The report of an experiment.

        Args:
            request: as for ``POST /v1/experiments``.

        Raises:
            RefusedError: a cell of it failed.
        """
        key = json.dumps(request, sort_keys=True)
        if key not in self._experiments:
            self._experiments[key] = self("POST", "/v1/experiments", json=request)["id"]
        path = f"/v1/experiments/{self._experiments[key]}"
        self._wait(path)
        report = self("GET", f"{path}/report")
        failures = [failure for row in report["rows"] for failure in row["failures"]]
        if failures:
            raise RefusedError(f"{path}: {failures}")
        return report

    def draw(self, name: str, caption: str, panels: Sequence[Panel], *, across: int = 2) -> str:
        """Draw a figure of the page, and give the Markdown that shows it; small versions are left undrawn."""
        if self.quick:
            return f"({caption}: left undrawn)"
        return draw(name, caption, panels, across=across)

    def _wait(self, path: str) -> Json:
        pause, said = 0.05, time.monotonic()
        while (found := self("GET", path))["state"] not in ENDED:
            time.sleep(pause)
            pause = min(1.0, pause * 1.2)
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(
                    f"  {path}: {found.get('progress') or found.get('counts')}", file=sys.stderr, flush=True
                )
        if found["state"] not in ("succeeded", "ready"):
            raise RefusedError(f"{path}: {found['state']}: {found.get('error')}")
        return found
