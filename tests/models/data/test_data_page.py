"""The examples in docs/data.md work as the page states."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from pydantic import TypeAdapter

from models.data.ingestion.ingest import ingest
from models.data.readers.registry import FORMATS, FormatOptions

PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_example_file_is_valid(tmp_path: Path) -> None:
    first = blocks("json")[0].encode()
    report = ingest(io.BytesIO(first), "jsonl", tmp_path / "set.parquet")
    assert report.label_counts == {"billing": 2, "shipping": 1}


def test_the_csv_example_is_valid(tmp_path: Path) -> None:
    table, _ = blocks("csv")  # a test of all pages runs the second one
    report = ingest(io.BytesIO(table.encode()), "csv", tmp_path / "set.parquet")
    assert report.label_counts == {"billing": 2, "shipping": 1}


def test_the_svmlight_example_is_valid(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```\n(0,3 .*?)```", PAGE, re.DOTALL)
    report = ingest(io.BytesIO(lines.encode()), "svmlight", tmp_path / "set.parquet")
    assert (report.n_examples, report.n_unlabelled) == (2, 1)


def test_options_are_valid_and_every_option_is_documented() -> None:
    adapter: TypeAdapter[object] = TypeAdapter(FormatOptions)
    shown = [json.loads(match) for match in re.findall(r'"options": (\{"format".*?\})\}?[`\n]', PAGE)]
    assert len(shown) == 3
    for options in shown:
        adapter.validate_python(options)
    for format_ in FORMATS.values():
        for name in format_.options.model_fields:
            assert f"`{name}" in PAGE, name
