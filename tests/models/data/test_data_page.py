"""What docs/data.md shows is what is read."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from pydantic import TypeAdapter

from models.data.ingestion.ingest import ingest
from models.data.readers.registry import FORMATS, OptionsUnion

PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_file_is_read(tmp_path: Path) -> None:
    first = blocks("json")[0].encode()
    report = ingest(io.BytesIO(first), "jsonl", tmp_path / "set.parquet")
    assert report.label_counts == {"billing": 2, "shipping": 1}


def test_the_table_is_read(tmp_path: Path) -> None:
    (table,) = blocks("csv")
    report = ingest(io.BytesIO(table.encode()), "csv", tmp_path / "set.parquet")
    assert report.label_counts == {"billing": 2, "shipping": 1}


def test_the_svmlight_lines_are_read(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```\n(0,3 .*?)```", PAGE, re.DOTALL)
    report = ingest(io.BytesIO(lines.encode()), "svmlight", tmp_path / "set.parquet")
    assert (report.n_examples, report.n_unlabelled) == (2, 1)


def test_options_are_valid_and_every_option_is_mentioned() -> None:
    adapter: TypeAdapter[object] = TypeAdapter(OptionsUnion)
    shown = [json.loads(found) for found in re.findall(r'"options": (\{"format".*?\})\}?[`\n]', PAGE)]
    assert len(shown) == 2
    for options in shown:
        adapter.validate_python(options)
    for known in FORMATS.values():
        for name in known.options.model_fields:
            assert f"`{name}" in PAGE, name
