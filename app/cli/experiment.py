"""``covey experiment``: runs an experiment that a file describes, and shows its progress."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.cli.errors import CommandError

POLL_SECONDS = 0.5
MAX_UNAVAILABLE_SECONDS = 60.0
"""How long the command waits for an unavailable service. The experiment's jobs survive an outage."""

FORMATS = {".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html"}
"""Formats of a report by the extension of its file."""

MARKS = {
    "queued": ("·", "dim"),
    "running": ("▶", "cyan"),
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("–", "yellow"),
}


class ExperimentError(CommandError):
    """The experiment cannot run or has failed; the message is the reason."""


def run(console: Console, file: Path, url: str, key: str | None, reports: list[Path]) -> None:
    """Run an experiment, show its cells until it ends, and write its reports.

    Args:
        console: shows the progress and the results.
        file: YAML or JSON file with the body of ``POST /v1/experiments``.
        url: base URL of the service.
        key: an API key, if the service requires one.
        reports: files to write the report to; the extension determines the format.

    Raises:
        ExperimentError: the file cannot be read, the service is unavailable or rejects the request, or
            no cell succeeded.
    """
    for target in reports:
        if target.suffix not in FORMATS:
            raise ExperimentError(f"{target}: the extension of a report must be one of {', '.join(FORMATS)}")
    body = read_request(file)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=url, headers=headers, timeout=60.0, trust_env=False) as http:
        try:
            experiment = _request_json(http, "POST", "/v1/experiments", json=body)
        except httpx.TransportError as error:
            raise ExperimentError(f"cannot connect to the service at {url}: {error}") from error
        path = f"/v1/experiments/{experiment['id']}"
        console.print(f"Experiment [bold]{experiment['id']}[/]: {experiment['counts']['total']} cells.")
        try:
            ended = _watch(console, http, path)
        except KeyboardInterrupt:
            console.print(f"The experiment continues. To stop it: POST {url}{path}/cancel.")
            raise
        report = _request_json(http, "GET", f"{path}/report", params={"format": "json"})
        console.print(results_table(report))
        for target in reports:
            params = {"format": FORMATS[target.suffix]}
            target.write_bytes(_request(http, "GET", f"{path}/report", params=params).content)
            console.print(f"Report written to {target}.")
    if ended["state"] == "failed":
        raise ExperimentError(ended["error"]["detail"])


def read_request(file: Path) -> dict[str, Any]:
    """Read the body of a request from a YAML or JSON file.

    Raises:
        ExperimentError: the file does not exist or is not a YAML mapping.
    """
    try:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ExperimentError(f"{file} cannot be read: {error}") from error
    if not isinstance(body, dict):
        raise ExperimentError(f"{file} must have the fields of an experiment, such as dataset_id")
    return body


def _watch(console: Console, http: httpx.Client, path: str) -> dict[str, Any]:
    unavailable_since: float | None = None
    experiment = _request_json(http, "GET", path)
    with Live(cells_table(experiment), console=console, refresh_per_second=4) as live:
        while experiment["state"] in ("queued", "running"):
            time.sleep(POLL_SECONDS)
            try:
                experiment = _request_json(http, "GET", path)
            except httpx.TransportError as error:
                unavailable_since = unavailable_since or time.monotonic()
                if time.monotonic() - unavailable_since > MAX_UNAVAILABLE_SECONDS:
                    raise ExperimentError(f"the service is unavailable: {error}") from error
                continue
            unavailable_since = None
            live.update(cells_table(experiment))
    return experiment


def cells_table(experiment: Mapping[str, Any]) -> RenderableType:
    """Build a table with a row for each configuration, a mark for each fold, and the means so far."""
    request = experiment["request"]
    measures = request["measures"][:3]
    table = Table("configuration", "folds", *measures, "progress")
    by_configuration: dict[int, list[Mapping[str, Any]]] = {}
    for cell in experiment.get("cells", []):
        by_configuration.setdefault(cell["configuration"], []).append(cell)
    for i, configuration in enumerate(request["configurations"]):
        fold_cells = by_configuration.get(i, [])
        marks = Text()
        for cell in fold_cells:
            mark, style = MARKS[cell["state"]]
            marks.append(mark, style=style)
        tests = [cell["metrics"]["test"] for cell in fold_cells if "metrics" in cell]
        means = []
        for measure in measures:
            values = [test[measure] for test in tests if measure in test]
            means.append(f"{sum(values) / len(values):.4f}" if values else "")
        table.add_row(Text(configuration["name"]), marks, *means, _progress(fold_cells))
    return table


def _progress(cells: list[Mapping[str, Any]]) -> Text:
    texts = []
    for cell in cells:
        if cell["state"] == "failed":
            texts.append(f"fold {cell['fold']}: {cell['error']['detail']}")
            break
        if (progress := cell.get("progress")) is not None:
            total = f" of {progress['total']}" if "total" in progress else ""
            texts.append(f"{progress['phase']} {progress['completed']}{total} {progress['unit']}")
    text = "; ".join(texts)
    return Text(text if len(text) <= 60 else f"{text[:59]}…", style="dim")


def results_table(report: Mapping[str, Any]) -> RenderableType:
    """Build the table of measures on held-out examples; the best value of each column is bold."""
    table = Table("configuration", *(_column_title(measure) for measure in report["measures"]))
    for row in report["rows"]:
        values = []
        for measure in report["measures"]:
            summary = row["test"].get(measure["name"])
            if summary is None:
                values.append(Text(""))
                continue
            spread = f" ± {summary['deviation']:.4f}" if "deviation" in summary else ""
            values.append(Text(f"{summary['mean']:.4f}{spread}", style="bold" if summary["best"] else ""))
        missing = "" if row["complete"] else f" ({len(row['folds'])} of {report['folds']} folds)"
        table.add_row(Text(row["name"] + missing), *values)
    return table


def _column_title(measure: Mapping[str, Any]) -> str:
    return f"{measure['name']} {'↑' if measure['better'] == 'higher' else '↓'}"


def _request(http: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    response = http.request(method, path, **options)
    if response.is_error:
        try:
            problem = response.json()
            errors = "".join(
                f"\n  {item['pointer']}: {item['message']}" for item in problem.get("errors", ())
            )
            message = f"{problem['detail']}{errors}"
        except (ValueError, KeyError, TypeError):
            message = f"{method} {path}: {response.status_code}"
        raise ExperimentError(message)
    return response


def _request_json(http: httpx.Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = _request(http, method, path, **options).json()
    return body
