"""Runs ``covey serve`` for tests: starts it, sends requests, and finds its processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import fork_server
import holds
import httpx
from waiting import LIMIT_SECONDS, wait_for

from models import catalog

READY = "Covey is ready at "
"""Start of the line that ``covey serve`` prints when it is ready."""

BYTES = {"Content-Type": "application/octet-stream"}
"""Headers of an upload."""


class Stack:
    """One service, ``covey serve``, on one data folder.

    Args:
        data: the data folder.
        settings: environment variables to add, ``COVEY_…``.
    """

    def __init__(self, data: Path, settings: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.log = data.parent / f"{data.name}.log"
        self.settings = dict(settings or {})
        self._holds = data.parent / f"{data.name}.holds"
        self._process: fork_server.Command | None = None
        self.url = ""
        self.http = httpx.Client(timeout=LIMIT_SECONDS, trust_env=False)

    def start(self) -> Stack:
        """Start the service, and wait until it is ready."""
        with self.log.open("ab") as log:
            output, output_write = os.pipe()
            arguments = ["serve", "--data", str(self.data), "--port", "0"]
            self._process = fork_server.start(arguments, self.environment(), output_write, log)
            os.close(output_write)
        self._output: TextIO = os.fdopen(output)
        line = self._output.readline()
        if not line.startswith(READY):
            self._process.wait(LIMIT_SECONDS)
            self._output.close()
            raise RuntimeError(f"not ready: {self.tail()}")
        self.url = line.removeprefix(READY).strip()
        self.http.close()
        self.http = httpx.Client(base_url=self.url, timeout=LIMIT_SECONDS, trust_env=False)
        return self

    def stop(self) -> int:
        """Stop the service with SIGTERM, and return its exit status."""
        self.http.close()
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(LIMIT_SECONDS)
        self._output.close()
        self._process = None
        return status

    @property
    def is_running(self) -> bool:
        """Whether the service was started and not stopped."""
        return self._process is not None

    def environment(self) -> dict[str, str]:
        """Return the environment of the service's processes."""
        return {**os.environ, **self.settings, **holds.environment(self._holds)}

    def hold(self, **where: Any) -> holds.Hold:
        """Hold the next job that reaches a point; see ``holds.Hold`` for the arguments."""
        return holds.Hold(self._holds, **where)

    def release_all(self) -> None:
        """Release what is held."""
        for hold in self._holds.glob("*.json"):
            hold.unlink()

    def tail(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(errors="replace")[-6000:]

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        assert self._process is not None
        return self._process.pid

    def processes(self, words: str) -> list[int]:
        """Return the ids of the supervisor's descendants whose command line contains the words."""
        return [pid for pid in descendants(self.pid) if words in command_of(pid)]

    def api_pids(self) -> list[int]:
        """Return the process ids of the API."""
        return [pid for pid in children(self.pid) if name_of(pid) == "covey-api"]

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers' main processes."""
        return [pid for pid in children(self.pid) if name_of(pid) == "covey-worker"]

    def worker_parts(self, worker: int, role: str) -> list[int]:
        """Return the process ids of a worker's ``pool``, ``guard``, ``maintenance`` or jobs (``job``)."""
        name = f"covey-{role}"[:15]
        return [pid for pid in descendants(worker) if name_of(pid) == name]

    def job_pids(self, worker: int) -> list[int]:
        """Return the process ids of a worker's running jobs."""
        return [job for process in self.worker_parts(worker, "pool") for job in children(process)]

    def is_ready(self) -> bool:
        """Whether the service reports that it is ready."""
        try:
            return self.http.get("/health/ready").status_code == 200
        except httpx.HTTPError:
            return False

    def reap(self) -> None:
        """Wait until a killed supervisor has ended."""
        assert self._process is not None
        self._process.wait(LIMIT_SECONDS)
        self._output.close()

    def call(self, method: str, path: str, status: int, **options: Any) -> Any:
        """Send a request, check the status of the response, and return its body."""
        response = self.http.request(method, path, **options)
        assert response.status_code == status, (
            f"{method} {path}: {response.status_code} {response.text[:2000]}"
        )
        return response.json() if response.content else None

    def all(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages of a list; none if the list does not exist."""
        query: dict[str, Any] = {"limit": 500}
        while True:
            response = self.http.get(path, params=query)
            if response.status_code == 404:
                return
            page = response.raise_for_status().json()
            yield from page["items"]
            if "next_cursor" not in page:
                return
            query["cursor"] = page["next_cursor"]

    def dataset(self, examples: Iterable[Mapping[str, Any]], **fields: Any) -> dict[str, Any]:
        """Upload examples and wait until they are ready."""
        content = "".join(json.dumps(example) + "\n" for example in examples)
        dataset = self.upload(content.encode(), **fields)
        assert dataset["state"] == "ready", dataset
        return dataset

    def upload(
        self, content: bytes, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Upload content and wait until it is ready or has failed."""
        dataset = self.call("POST", "/v1/datasets", 201, json={"name": "test", **fields})
        path = f"/v1/datasets/{dataset['id']}"
        self.call("PUT", f"{path}/content", 202, content=content, headers={**BYTES, **(headers or {})})

        def ingested() -> dict[str, Any] | None:
            dataset: dict[str, Any] = self.call("GET", path, 200)
            return dataset if dataset["state"] in ("ready", "failed") else None

        return wait_for(ingested, what="the data set")

    def train(self, dataset_id: str, **request: Any) -> dict[str, Any]:
        """Create a training job, and return it. By default it holds nothing out, which is faster."""
        body = {"model": "test", "learner": {"algorithm": "mp_boost", "rounds": 5}, **request}
        own = catalog.own_decision(catalog.LEARNER_PARAMETERS.validate_python(body["learner"]))
        body.setdefault("decision", {"kind": own.kind})
        job: dict[str, Any] = self.call(
            "POST", "/v1/training-jobs", 202, json={"dataset_id": dataset_id, **body}
        )
        return job

    def job(self, job_id: str) -> dict[str, Any]:
        """Return the current state of a training job."""
        job: dict[str, Any] = self.call("GET", f"/v1/training-jobs/{job_id}", 200)
        return job

    def finished(self, job_id: str, seconds: float = LIMIT_SECONDS) -> dict[str, Any]:
        """Wait until a training job has ended, and return it."""

        def ended() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] in ("succeeded", "failed", "cancelled") else None

        return wait_for(ended, what=f"the end of {job_id}", seconds=seconds)


def children(pid: int) -> list[int]:
    """Return the process ids of the children of a process."""
    pids = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids += [int(child) for child in task.read_text().split()]
        except OSError:  # the process has just ended
            continue
    return pids


def descendants(pid: int) -> list[int]:
    """Return the process ids of all descendants of a process."""
    return [descendant for child in children(pid) for descendant in (child, *descendants(child))]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def command_of(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def name_of(pid: int) -> str:
    """Return the name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def departments(n: int, *, words_each: int = 12) -> list[dict[str, Any]]:
    """Generate n messages with one or two of four labels; the same messages for the same n."""
    topics = {
        "billing": "invoice payment charged refund receipt amount card bank",
        "shipping": "parcel courier delivery tracking late warehouse address label",
        "support": "error crash login screen update install button reset",
        "sales": "quote price offer discount order bulk licence contract",
    }
    names = list(topics)
    examples = []
    for i in range(n):
        labels = [names[i % 4]] + ([names[(i + 1 + i // 4) % 4]] if i % 5 == 0 else [])
        labels = sorted(set(labels))
        words = []
        for k in range(words_each):
            pool = topics[labels[k % len(labels)]].split()
            words.append(pool[(i * 7 + k * 3 + i // 9) % len(pool)])
        noise = [f"w{(i * 31 + k * 17) % 97}" for k in range(8)]
        examples.append(
            {
                "id": f"m{i}",
                "text": " ".join(words + noise),
                "labels": labels,
                "split": "test" if i % 4 == 3 else "train",
            }
        )
    return examples
