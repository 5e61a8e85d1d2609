"""Recorded decisions, reports, and backups of a busy service."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import commands

from benchmarks.attack.harness import FALLBACK, QUICK, Result, Targets, at_most, attack, expect

LABELS = 2000
MAX_DECISION_BYTES = 20_000


@attack("decisions of a model with 2,000 labels")
def rankings(targets: Targets) -> Iterator[Result]:
    """Record decisions, and read a page of them."""
    service = targets.shared
    examples = [{"text": f"w{n} w{n + 1} common", "labels": [f"label {n}"]} for n in range(LABELS)]
    dataset = service.stack.dataset(examples)
    service.train(dataset["id"], "ranked", learner={"algorithm": "naive_bayes"})
    service.stack.call("PUT", "/v1/routers/ranked", 200, json={"model": "ranked", "fallback": FALLBACK})
    for n in range(20):
        message = {"email": {"subject": f"w{n}", "text": "common"}}
        service.stack.call("POST", "/v1/routers/ranked/message-parts", 200, json=message)
    page = service.get("/v1/routers/ranked/decisions?limit=500")
    yield expect("status of the page", page.status_code, 200)
    yield at_most("bytes of a recorded decision", len(page.content) / 20, MAX_DECISION_BYTES, "B")


@attack("HTML in the Markdown report")
def report(targets: Targets) -> Iterator[Result]:
    """Give labels and configurations names that a browser would execute."""
    service = targets.shared
    hostile = "<img src=x onerror=alert(1)>"
    dataset = service.stack.dataset(
        [
            {"text": f"w{n % 3} x", "labels": [hostile if n % 2 else "<script>alert(1)</script>"]}
            for n in range(20)
        ]
    )
    request = {
        "name": hostile,
        "dataset_id": dataset["id"],
        "configurations": [{"name": hostile, "learner": QUICK}],
        "split": {"kind": "folds", "folds": 2},
    }
    experiment = service.stack.call("POST", "/v1/experiments", 202, json=request)["id"]
    path = f"/v1/experiments/{experiment}"
    while service.stack.call("GET", path, 200)["state"] in ("queued", "running"):
        time.sleep(0.1)
    for form in ("markdown", "html"):
        text = service.get(f"{path}/report?format={form}").text
        found = re.findall(r"(?<!\\)<(?:img src=x|script>alert)", text)  # Markdown escapes with a backslash
        yield expect(f"such elements in the {form} report", found, [])


@attack("backups while data sets are uploaded and deleted")
def backups(targets: Targets) -> Iterator[Result]:
    """Back up a service that changes all the time."""
    with targets.new() as service:
        service.prepare()
        stopped = threading.Event()
        failures: list[str] = []

        def upload() -> None:
            examples = [{"text": "a b", "labels": ["x"]}, {"text": "c d", "labels": ["y"]}]
            try:
                while not stopped.is_set():
                    dataset = service.stack.dataset(examples)
                    service.stack.call("DELETE", f"/v1/datasets/{dataset['id']}", 204)
            except Exception as error:  # noqa: BLE001 - judged below
                failures.append(str(error))

        uploading = threading.Thread(target=upload)
        uploading.start()
        folder = targets.new_folder()
        statuses = []
        for n in range(5):
            words = ("backup", str(folder / f"{n}.tar.zst"), "--data", str(service.stack.data))
            result = commands.covey(*words, environment=service.stack.environment())
            statuses.append(result.returncode)
            if result.returncode:
                failures.append(result.stderr[-300:])
        stopped.set()
        uploading.join()
        yield expect("exit statuses of five backups", statuses, [0] * 5)
        yield expect("errors", failures, [])
