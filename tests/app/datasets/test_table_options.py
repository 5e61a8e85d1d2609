"""The options of tables reach the reader through the API, and the command reports the same as the service."""

from __future__ import annotations

import json
from pathlib import Path

import in_process
from contract import problem_of
from in_process_api import InProcessApi
from typer.testing import CliRunner

from app.cli.main import cli

CONTENT = 'sep=;\r\nID;Höhe;rot;rund;Art;\r\n7;"1,5";1;?;Lernen;\r\n9;2;;0;Test;\r\n4;-3;nein;ja;lernen;\r\n'
OPTIONS = {
    "format": "csv",
    "labels": ["rot", "rund"],
    "decimal": ",",
    "split": "Art",
    "split_words": {"train": ["Lernen"]},
}


def test_the_command_reports_the_same_as_the_service(service: InProcessApi, tmp_path: Path) -> None:
    content = CONTENT.encode("utf-16")
    body = {"name": "x", "format": "csv", "options": OPTIONS}
    created = service.call("POST", "/v1/datasets", 201, json=body)["id"]
    headers = {"Content-Type": "application/octet-stream"}
    service.call("PUT", f"/v1/datasets/{created}/content", 202, content=content, headers=headers)
    in_process.work(service.ctx)
    dataset = service.call("GET", f"/v1/datasets/{created}", 200)
    assert dataset["state"] == "ready"
    (first, *_) = service.call("GET", f"/v1/datasets/{created}/examples", 200)["items"]
    assert first["features"] == {"ID": 7, "Höhe": 1.5}
    assert (first["labels"], first["unknown_labels"], first["split"]) == (["rot"], ["rund"], "train")
    path = tmp_path / "Unicode-Text.txt"
    path.write_bytes(content)
    result = CliRunner().invoke(
        cli, ["data", "inspect", str(path), "--options", json.dumps(OPTIONS)], env={"COLUMNS": "500"}
    )
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")] == dataset[
        "warnings"
    ]
    assert any(warning.startswith("features that look like row numbers") for warning in dataset["warnings"])


def test_a_tree_in_utf16_is_read(tmp_path: Path) -> None:
    path, tree = tmp_path / "file.csv", tmp_path / "tree.txt"
    path.write_text("text,labels\na,Köln\n", encoding="utf-8")
    tree.write_text("Köln\tNRW\n", encoding="utf-16")
    result = CliRunner().invoke(cli, ["data", "inspect", str(path), "--tree", str(tree)])
    assert result.exit_code == 0, result.output
    assert "NRW" in result.output


def test_a_word_for_two_splits_is_rejected(service: InProcessApi) -> None:
    options = {"format": "csv", "split_words": {"train": ["A"], "test": ["a"]}}
    response = service.send("POST", "/v1/datasets", json={"name": "x", "format": "csv", "options": options})
    problem_of(response, 422, "invalid_request", "/options/split_words")
