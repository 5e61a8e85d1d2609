"""The examples in the pages about data work as the pages state."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from pydantic import TypeAdapter

from models.data.ingestion.ingest import ingest
from models.data.readers.registry import FORMATS, FormatOptions

DOCS = Path(__file__).parents[3] / "docs"
FILES = [*sorted((DOCS / "data").glob("*.md")), DOCS / "background/formats.md"]
PAGES = "\n".join(path.read_text(encoding="utf-8") for path in FILES)


def first_block(page: str, language: str) -> str:
    text = (DOCS / "data" / page).read_text(encoding="utf-8")
    match = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_first_example_file_is_valid(tmp_path: Path) -> None:
    first = first_block("index.md", "json").encode()
    report = ingest(io.BytesIO(first), "jsonl", tmp_path / "set.parquet")
    assert report.label_counts == {"billing": 2, "shipping": 1}


def test_the_csv_example_is_valid(tmp_path: Path) -> None:
    table = first_block("spreadsheet.md", "csv")
    report = ingest(io.BytesIO(table.encode()), "csv", tmp_path / "set.parquet")
    assert report.label_counts == {"billing": 2, "shipping": 1}


def test_the_svmlight_example_is_valid(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```\n(0,3 1:0.5 7:1.25  #.*?)```", PAGES, re.DOTALL)
    report = ingest(io.BytesIO(lines.encode()), "svmlight", tmp_path / "set.parquet")
    assert (report.n_examples, report.n_unlabelled) == (2, 1)


def test_options_are_valid_and_every_option_is_documented() -> None:
    adapter: TypeAdapter[object] = TypeAdapter(FormatOptions)
    shown = [json.loads(match) for match in re.findall(r'"options": (\{"format".*?\})\}?[`\n]', PAGES)]
    assert len(shown) == 4
    for options in shown:
        adapter.validate_python(options)
    for format_ in FORMATS.values():
        for name in format_.options.model_fields:
            assert f"`{name}" in PAGES, name
