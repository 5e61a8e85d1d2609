"""``covey demo``: trains a model and routes messages over HTTP, and prints the results of each step."""

from __future__ import annotations

import signal
import time
from importlib.resources import files
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from app.demo.service import temporary_service
from app.pages.measures import measure_title
from app.pages.rendering import percent
from models.measures.directions import direction_of

MODEL = "helpdesk"
ROUTER = "frontdesk"
MESSAGES = ("single.eml", "several.eml", "fallback.eml")

TRAINING: dict[str, Any] = {"model": MODEL, "learner": {"algorithm": "svm"}}

SHOWN_MEASURES = (
    *("f1_micro", "f1_macro", "hamming_loss", "subset_zero_one"),
    *("one_error", "coverage", "average_precision"),
)


class DemoError(RuntimeError):
    """A step of the demonstration failed; the message is the reason."""


def demo(console: Console, *, once: bool) -> None:
    """Run the demonstration on a temporary service.

    Args:
        console: shows the results.
        once: whether to stop the service after the last step; otherwise it runs until Ctrl-C or SIGTERM.

    Raises:
        DemoError: a step failed.
        NotStartedError: the service did not become ready.
    """
    console.print("Starting the service (database, broker, worker, API) …")
    with temporary_service() as url, httpx.Client(base_url=url, timeout=60.0, trust_env=False) as http:
        client = Client(http)
        dataset = _upload(console, client)
        job = _train(console, client, dataset)
        _show_measures(console, job)
        _route(console, client, job)
        _show_next_steps(console, url)
        if not once:
            _wait_for_signal()
            console.print("Stopping the service.")


class Client:
    """Send requests to the service and expect success."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __call__(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Send a request and return the body of the response.

        Raises:
            DemoError: the response is a problem.
        """
        response = self._http.request(method, path, **options)
        body: dict[str, Any] = response.json()
        if response.is_error:
            raise DemoError(f"{method} {path}: {body.get('detail', response.text)}")
        return body


def _resource(name: str) -> bytes:
    return (files("app.demo") / name).read_bytes()


def _upload(console: Console, client: Client) -> str:
    content = _resource("messages.jsonl")
    dataset = client("POST", "/v1/datasets", json={"name": "demo mail", "format": "jsonl"})
    path = f"/v1/datasets/{dataset['id']}"
    client("PUT", f"{path}/content", content=content, headers={"Content-Type": "application/octet-stream"})
    while dataset["state"] in ("awaiting_content", "ingesting"):
        time.sleep(0.1)
        dataset = client("GET", path)
    if dataset["state"] != "ready":
        raise DemoError(dataset["error"]["detail"])
    splits = dataset["splits"]
    console.print(
        f"Data set [bold]{dataset['id']}[/]: {dataset['n_examples']} messages "
        f"({splits['train']} for training, {splits['test']} held out), {dataset['n_labels']} departments, "
        f"{dataset['label_cardinality']:.2f} departments per message on average."
    )
    return str(dataset["id"])


def _train(console: Console, client: Client, dataset_id: str) -> dict[str, Any]:
    job = client("POST", "/v1/training-jobs", json={**TRAINING, "dataset_id": dataset_id})
    path = f"/v1/training-jobs/{job['id']}"
    columns = (TextColumn("Training {task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("svm: waiting for a worker", total=None, count="")
        while job["state"] not in ("succeeded", "failed", "cancelled"):
            time.sleep(0.1)
            job = client("GET", path)
            if progress := job.get("progress"):
                total = progress.get("total")
                bar.update(
                    task,
                    description=f"svm: {progress['phase']}",
                    completed=progress["completed"],
                    total=total,
                    count=f"{progress['completed']}/{total} {progress['unit']}",
                )
        bar.update(task, description="svm: done", completed=1, total=1, count="")
    if job["state"] != "succeeded":
        raise DemoError(job.get("error", {}).get("detail", job["state"]))
    return job


def _show_measures(console: Console, job: dict[str, Any]) -> None:
    result = job["result"]
    table = Table(title=f"{result['model']} version {result['version']} on the held-out messages")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("", style="dim")
    for name in SHOWN_MEASURES:
        value = f"{result['metrics']['test'][name]:.3f}"
        table.add_row(measure_title(name), value, f"{direction_of(name)} is better")
    console.print(table)


def _route(console: Console, client: Client, job: dict[str, Any]) -> None:
    result = job["result"]
    version = client("GET", f"/v1/models/{result['model']}/versions/{result['version']}")
    client(
        "PUT",
        f"/v1/routers/{ROUTER}",
        json={
            "model": MODEL,
            "destinations": {label: f"{label}@example.org" for label in version["labels"]},
            "fallback": "frontdesk@example.org",
        },
    )
    for name in MESSAGES:
        decision = client(
            "POST",
            f"/v1/routers/{ROUTER}/messages?explain=true",
            content=_resource(name),
            headers={"Content-Type": "message/rfc822"},
        )
        subject = decision["message"].get("subject", "")
        console.print(f"\n[bold]{name}[/] “{subject}” → [bold]{', '.join(decision['destinations'])}[/]")
        explained = {item["label"]: item["terms"] for item in decision.get("explanation", [])}
        for department in decision["departments"]:
            terms = ", ".join(
                f"{term['term']} {term['weight']:+.2f}" for term in explained[department["label"]][:5]
            )
            console.print(f"  {department['label']} ({percent(department['probability'])} probable): {terms}")
        if not decision["departments"]:
            best = decision["ranking"][0]
            console.print(
                "  no department has a score above its threshold; the most probable is "
                f"{best['label']} ({percent(best['probability'])})"
            )
        console.print(f"  exactly right with probability {percent(decision['set_probability'])}")


def _show_next_steps(console: Console, url: str) -> None:
    console.print(
        f"\nCovey runs. Open [bold]{url}/console[/] in a browser to see the data set, the model and the "
        f"router, and to route messages of your own.\nThe API documentation is at [bold]{url}/docs[/]. Try:"
    )
    console.print(
        f"  curl {url}/v1/routers/{ROUTER}/message-parts -H 'Content-Type: application/json' \\\n"
        '    -d \'{"email": {"subject": "Charged twice", "text": "My invoice shows two payments."}}\'',
        highlight=False,
        markup=False,
    )


def _wait_for_signal() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        signal.sigwait(signals)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
