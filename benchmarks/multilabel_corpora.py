"""The multilabel corpora as examples in memory, each with its training and its test part."""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from models.data.examples import Examples, Split
from models.data.ingestion.ingest import ingest
from models.data.readers.svmlight import SVMLightOptions
from models.data.store import StoredExamples
from models.labels import LabelTree

FOLDER = Path(os.environ.get("COVEY_DATA", "../shared/data"))


def _read(content: bytes, format_: str | None, tree: LabelTree | None = None, **options: Any) -> Examples:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.parquet"
        ingest(io.BytesIO(content), format_, path, tree=tree, **options)
        return Examples.concatenate(list(StoredExamples(path).batches()))


def _with_split(examples: Examples, split: Split) -> Examples:
    return replace(examples, split_column=[split] * examples.n_examples)


def _json_lines(name: str, change: Callable[[dict[str, Any]], None] | None = None) -> Examples:
    rows = []
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if change is not None:
                change(row)
            rows.append(row)
    return _read(b"".join(json.dumps(row).encode() + b"\n" for row in rows), "jsonl")


def _without_headers(row: dict[str, Any]) -> None:
    row["text"] = row["text"].partition("\n\n")[2]


def _terms_only(row: dict[str, Any]) -> None:
    del row["tfidf500"]


def _mulan(name: str) -> Examples:
    about = json.loads((FOLDER / "mulan" / f"{name}.meta.json").read_text(encoding="utf-8"))
    options = SVMLightOptions(format="svmlight", label_names=about["labels"], feature_names=about["features"])
    parts: list[tuple[Split, str]] = [("train", "train"), ("test", "test")]
    return Examples.concatenate(
        [
            _with_split(
                _read(
                    gzip.decompress((FOLDER / "mulan" / f"{name}-{part}.svm.gz").read_bytes()),
                    "svmlight",
                    options=options,
                ),
                split,
            )
            for split, part in parts
        ]
    )


def _hierarchical_arff(training: Iterable[str], test: str) -> Examples:
    files: list[tuple[Split, str]] = [*(("train", name) for name in training), ("test", test)]
    return Examples.concatenate(
        [
            _with_split(
                _read(gzip.decompress((FOLDER / "hmc" / f"{name}.arff.gz").read_bytes()), None), split
            )
            for split, name in files
        ]
    )


MULAN = ("yeast", "scene", "emotions", "medical", "genbase", "bibtex", "tmc2007-500", "ohsumed")

CORPORA: dict[str, Callable[[], Examples]] = {
    "reuters": partial(_json_lines, "reuters21578"),
    "20newsgroups": partial(_json_lines, "20newsgroups", _without_headers),
    "lists": partial(_json_lines, "spamassassin_lists"),
    "rcv1": partial(_json_lines, "rcv1subset1", _terms_only),
    **{name: partial(_mulan, name) for name in MULAN},
    "imclef07a": partial(_hierarchical_arff, ["ImCLEF07A_Train"], "ImCLEF07A_Test"),
    "cellcycle": partial(
        _hierarchical_arff, ["cellcycle_FUN.train", "cellcycle_FUN.valid"], "cellcycle_FUN.test"
    ),
}
"""Reads each corpus. ``lists`` has no split of its own."""
