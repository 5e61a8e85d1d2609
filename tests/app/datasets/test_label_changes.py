"""Labels of a data set are renamed, removed and merged as its request or the options of the command state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import in_process
import pytest
from contract import problem_of
from in_process_api import InProcessApi
from typer.testing import CliRunner

from app.cli.main import cli

EXAMPLES = [
    {"text": f"text {i}", "labels": labels}
    for i, labels in enumerate([["help desk"], ["Help Desk"], ["Help Desk", "nan"], ["Hilfe"]])
]
CHANGES: dict[str, Any] = {
    "merge_labels": "similar",
    "rename_labels": {"Hilfe": "Support"},
    "remove_labels": ["nan"],
}


def labels_of(service: InProcessApi, dataset_id: str) -> dict[str, int]:
    items = service.call("GET", f"/v1/datasets/{dataset_id}/labels", 200)["items"]
    return {item["label"]: item["count"] for item in items}


def test_examples_of_a_request_are_changed(service: InProcessApi) -> None:
    body = {"name": "x", "examples": EXAMPLES, **CHANGES}
    created = service.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(service.ctx)
    dataset = service.call("GET", f"/v1/datasets/{created}", 200)
    assert dataset["state"] == "ready"
    assert labels_of(service, created) == {"Help Desk": 3, "Support": 1}
    assert any(warning.startswith("labels merged or renamed") for warning in dataset["warnings"])
    items = service.call("GET", f"/v1/datasets/{created}/examples", 200)["items"]
    assert [item["labels"] for item in items] == [["Help Desk"], ["Help Desk"], ["Help Desk"], ["Support"]]


def test_an_uploaded_file_is_changed(service: InProcessApi) -> None:
    created = service.call("POST", "/v1/datasets", 201, json={"name": "x", "format": "jsonl", **CHANGES})[
        "id"
    ]
    content = "\n".join(map(json.dumps, EXAMPLES)).encode()
    headers = {"Content-Type": "application/octet-stream"}
    service.call("PUT", f"/v1/datasets/{created}/content", 202, content=content, headers=headers)
    in_process.work(service.ctx)
    assert labels_of(service, created) == {"Help Desk": 3, "Support": 1}


def test_invalid_changes_are_rejected_at_their_place(service: InProcessApi) -> None:
    for fields, pointer in (
        ({"rename_labels": {"a": "b", "b": "c"}}, "/rename_labels"),
        ({"rename_labels": {"a": "b"}, "remove_labels": ["a"]}, "/remove_labels"),
        ({"rename_labels": {"a": "b"}, "label_tree": {"a": "p"}}, "/rename_labels"),
        ({"remove_labels": ["p"], "label_tree": {"a": "p"}}, "/remove_labels"),
    ):
        response = service.send("POST", "/v1/datasets", json={"name": "x", **fields})
        problem_of(response, 422, "invalid_parameters", pointer)
    response = service.send("POST", "/v1/datasets", json={"name": "x", "merge_labels": "equal"})
    problem_of(response, 422, "invalid_request", "/merge_labels")


def test_the_command_reports_the_same_labels(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(map(json.dumps, EXAMPLES)))
    options = [
        *("--merge-labels", "similar"),
        *("--rename-labels", '{"Hilfe": "Support"}'),
        *("--remove-labels", '["nan"]'),
    ]
    result = CliRunner().invoke(cli, ["data", "inspect", str(path), *options])
    assert result.exit_code == 0, result.output
    assert [
        line.split() for line in result.output.splitlines() if line.startswith((" Help", " Support"))
    ] == [
        ["Help", "Desk", "3"],
        ["Support", "1"],
    ]


@pytest.mark.parametrize("options", [["--rename-labels", '{"a": 1}'], ["--remove-labels", "nan"]])
def test_the_command_names_an_option_that_is_no_valid_json(options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps(EXAMPLES[0]))
    result = CliRunner().invoke(cli, ["data", "inspect", str(path), *options])
    assert result.exit_code == 2
    assert options[0] in result.output
