"""HTTP client with which the papers' parts train and compare."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks.corpora import Json
from benchmarks.papers.charts import Panel, draw
from models import artifact, catalog
from models.pipeline import Pipeline

ENDED = ("succeeded", "failed", "cancelled", "ready")

GIVEN: Json = {"kind": "given"}


class RequestFailedError(RuntimeError):
    """A request, data set, job or experiment failed."""


class Bench:
    """Runs trainings and experiments over HTTP. Repeated requests return the first result.

    Without a decision, that of a training or configuration is the learner's own, as in the papers.

    Args:
        url: returns the URL of the service; called before the first request.
        key: API key.
        quick: whether to compute small versions.
        long: whether to compute results that take hours.
    """

    def __init__(
        self, url: Callable[[], str], *, key: str | None = None, quick: bool = False, long: bool = False
    ) -> None:
        self._url, self._headers = url, {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client: httpx.Client | None = None
        self._made: dict[str, str] = {}
        self.quick = quick
        self.long = long

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

    def _once(self, path: str, body: Json) -> str:
        """Create a resource, unless the same one was created before, and return its path."""
        key = path + json.dumps(body, sort_keys=True)
        if key not in self._made:
            self._made[key] = f"{path}/{self(method='POST', path=path, json=body)['id']}"
        return self._made[key]

    def dataset(self, name: str, content: Callable[[], bytes], **about: Json | str | None) -> str:
        """Return the id of a data set. The first call uploads it.

        Args:
            name: name of the data set, here and in the service.
            content: returns the content.
            about: other fields of ``POST /v1/datasets``, such as ``format`` and ``label_tree``.

        Raises:
            RequestFailedError: If the service rejects the content.
        """
        n_made = len(self._made)
        fields = {field: value for field, value in about.items() if value is not None}
        path = self._once("/v1/datasets", {"name": name, **fields})
        if len(self._made) > n_made:
            headers = {"Content-Type": "application/octet-stream"}
            self("PUT", f"{path}/content", content=content(), headers=headers)
            self._wait(path)
        return path.rpartition("/")[2]

    def train(self, requests: Sequence[Json]) -> list[Json]:
        """Queue trainings, wait for them, and return their jobs.

        Args:
            requests: bodies of ``POST /v1/training-jobs``; ``model`` is optional.

        Raises:
            RequestFailedError: If a training fails.
        """
        paths = [
            self._once(
                "/v1/training-jobs",
                {"model": request["learner"]["algorithm"], "promote": "never", **with_own_decision(request)},
            )
            for request in requests
        ]
        return [self._wait(path) for path in paths]

    def version(self, job: Json, part: str = "") -> Json:
        """Return the version of a training (labels, metrics, facts, timings), or a resource of it."""
        return self("GET", self._version(job) + part)

    def model(self, job: Json) -> Pipeline:
        """Return the fitted pipeline of a training's version."""
        response = self._send("GET", f"{self._version(job)}/artifact")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(response.content)
            return artifact.load(path)

    def _version(self, job: Json) -> str:
        return f"/v1/models/{job['result']['model']}/versions/{job['result']['version']}"

    def curve(self, job: Json) -> list[Json]:
        """Return all points of a training's curve."""
        points: list[Json] = []
        query: Json = {"limit": 500}
        while True:
            page = self("GET", f"/v1/training-jobs/{job['id']}/curve", params=query)
            points += page["items"]
            if page.get("next_cursor") is None:
                return points
            query["cursor"] = page["next_cursor"]

    def experiment(
        self,
        dataset: str,
        configurations: Sequence[Json],
        measures: Sequence[str],
        *,
        folds: int = 0,
        **more: Json,
    ) -> Json:
        """Run an experiment on the data set's own split, or on folds, and return its report.

        Raises:
            RequestFailedError: If a cell fails.
        """
        request = {
            "dataset_id": dataset,
            "split": {"kind": "folds", "folds": folds} if folds else GIVEN,
            "configurations": [*map(with_own_decision, configurations)],
            "measures": list(measures),
            **more,
        }
        path = self._once("/v1/experiments", request)
        self._wait(path)
        report = self("GET", f"{path}/report")
        if failures := [failure for row in report["rows"] for failure in row["failures"]]:
            raise RequestFailedError(f"{path}: {failures}")
        return report

    def draw(self, name: str, panels: Sequence[Panel], *, across: int = 2) -> None:
        """Draw a chart of the page. Small versions are not drawn."""
        if not self.quick:
            draw(name, panels, across=across)

    def _wait(self, path: str) -> Json:
        pause, printed_at = 0.05, time.monotonic()
        while (resource := self("GET", path))["state"] not in ENDED:
            time.sleep(pause)
            pause = min(1.0, pause * 1.2)
            if time.monotonic() - printed_at > 60:
                printed_at = time.monotonic()
                progress = resource.get("progress") or resource.get("counts")
                print(f"  {path}: {progress}", file=sys.stderr, flush=True)
        if resource["state"] not in ("succeeded", "ready"):
            raise RequestFailedError(f"{path}: {resource['state']}: {resource.get('error')}")
        return resource


def with_own_decision(request: Json) -> Json:
    """Return a training or configuration whose decision, if it has none, is the learner's own."""
    learner = catalog.LEARNER_PARAMETERS.validate_python(request["learner"])
    return {"decision": catalog.own_decision(learner).model_dump(mode="json"), **request}


def means(report: Json, measures: Sequence[str]) -> list[list[float]]:
    """Return the mean of each measure on the test part, by configuration."""
    return [[row["test"][measure]["mean"] for measure in measures] for row in report["rows"]]


def curves(report: Json, part: str = "out_of_folds") -> dict[tuple[int, str], dict[int, float]]:
    """Return the lines of a report: the value at each step by configuration and measure.

    Args:
        report: from ``experiment``.
        part: ``within_folds`` for the training part, ``out_of_folds`` for the test part.
    """
    return {
        (curve["configuration"], curve["measure"]): dict(zip(curve["steps"], curve[part], strict=True))
        for curve in report["curves"]
    }


def test_of(comparison: Json, name: str) -> Json:
    """Return a test of significance of two configurations by its name."""
    return next(test for test in comparison["tests"] if test["test"] == name)
