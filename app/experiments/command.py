"""``covey experiment``: runs an experiment that a file describes, and shows it as it goes."""

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

EVERY_SECONDS = 0.5
PATIENCE_SECONDS = 60.0
"""How long the service may be away while the experiment runs; its jobs survive that."""

FORMS = {".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html"}
"""The report's form, by the ending of the file that it is written to."""

MARKS = {
    "queued": ("·", "dim"),
    "running": ("▶", "cyan"),
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("–", "yellow"),
}


class ExperimentError(RuntimeError):
    """The experiment cannot be run, or came to nothing; says why."""


def run(console: Console, file: Path, url: str, key: str | None, reports: list[Path]) -> None:
    """Run the experiment, show its cells until it ends, and write its reports.

    Args:
        console: where to show it.
        file: YAML (or JSON) with the body of ``POST /v1/experiments``.
        url: of the service.
        key: an API key, where the service needs one.
        reports: files to write the report to, each in the form of its ending.

    Raises:
        ExperimentError: the file cannot be read, the service refuses it, or no cell succeeded.
    """
    for target in reports:
        if target.suffix not in FORMS:
            raise ExperimentError(f"{target}: a report is one of {', '.join(FORMS)}")
    body = read(file)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=url, headers=headers, timeout=60.0, trust_env=False) as http:
        try:
            made = _answer(http, "POST", "/v1/experiments", json=body)
        except httpx.TransportError as error:
            raise ExperimentError(f"no service answers at {url}: {error}") from error
        path = f"/v1/experiments/{made['id']}"
        console.print(f"Experiment [bold]{made['id']}[/]: {made['counts']['total']} cells.")
        try:
            ended = _watch(console, http, path)
        except KeyboardInterrupt:
            console.print(f"It goes on without you: GET {url}{path}; POST {url}{path}/cancel stops it.")
            raise
        report = _answer(http, "GET", f"{path}/report", params={"format": "json"})
        console.print(results(report))
        for target in reports:
            form = FORMS[target.suffix]
            target.write_bytes(_sent(http, "GET", f"{path}/report", params={"format": form}).content)
            console.print(f"Report written to {target}.")
    if ended["state"] == "failed":
        raise ExperimentError(ended["error"]["detail"])


def read(file: Path) -> dict[str, Any]:
    """The body of the request that a file describes.

    Raises:
        ExperimentError: it is not there, or not such a file.
    """
    try:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ExperimentError(f"{file} cannot be read: {error}") from error
    if not isinstance(body, dict):
        raise ExperimentError(f"{file} must hold the fields of an experiment, such as dataset_id")
    return body


def _watch(console: Console, http: httpx.Client, path: str) -> dict[str, Any]:
    away_since: float | None = None
    experiment = _answer(http, "GET", path)
    with Live(cells(experiment), console=console, refresh_per_second=4) as live:
        while experiment["state"] in ("queued", "running"):
            time.sleep(EVERY_SECONDS)
            try:
                experiment = _answer(http, "GET", path)
            except httpx.TransportError as error:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since > PATIENCE_SECONDS:
                    raise ExperimentError(f"the service does not answer any more: {error}") from error
                continue
            away_since = None
            live.update(cells(experiment))
    return experiment


def cells(experiment: Mapping[str, Any]) -> RenderableType:
    """How far an experiment is: a row a configuration, a mark a fold, and measures so far."""
    request = experiment["request"]
    measures = request["measures"][:3]
    table = Table("configuration", "folds", *measures, "now")
    found: dict[int, list[Mapping[str, Any]]] = {}
    for cell in experiment.get("cells", []):
        found.setdefault(cell["configuration"], []).append(cell)
    for i, configuration in enumerate(request["configurations"]):
        own = found.get(i, [])
        marks = Text()
        for cell in own:
            mark, style = MARKS[cell["state"]]
            marks.append(mark, style=style)
        tests = [cell["metrics"]["test"] for cell in own if "metrics" in cell]
        means = []
        for measure in measures:
            values = [test[measure] for test in tests if measure in test]
            means.append(f"{sum(values) / len(values):.4f}" if values else "")
        table.add_row(Text(configuration["name"]), marks, *means, _now(own))
    return table


def _now(own: list[Mapping[str, Any]]) -> Text:
    said = []
    for cell in own:
        if cell["state"] == "failed":
            said.append(f"fold {cell['fold']}: {cell['error']['detail']}")
            break
        if (progress := cell.get("progress")) is not None:
            total = f" of {progress['total']}" if "total" in progress else ""
            said.append(f"{progress['phase']} {progress['completed']}{total} {progress['unit']}")
    text = "; ".join(said)
    return Text(text if len(text) <= 60 else f"{text[:59]}…", style="dim")


def results(report: Mapping[str, Any]) -> RenderableType:
    """The report's table; the best of each column is bold."""
    table = Table("configuration", *(_head(measure) for measure in report["measures"]))
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


def _head(measure: Mapping[str, Any]) -> str:
    return f"{measure['name']} {'↑' if measure['better'] == 'higher' else '↓'}"


def _sent(http: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    response = http.request(method, path, **options)
    if response.is_error:
        try:
            problem = response.json()
            places = "".join(
                f"\n  {item['pointer']}: {item['message']}" for item in problem.get("errors", ())
            )
            said = f"{problem['detail']}{places}"
        except (ValueError, KeyError, TypeError):
            said = f"{method} {path}: {response.status_code}"
        raise ExperimentError(said)
    return response


def _answer(http: httpx.Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = _sent(http, method, path, **options).json()
    return answer
