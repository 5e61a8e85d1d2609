"""The corpora, as bodies that the service takes, cut to what the papers used."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

CORPORA = Path(os.environ.get("COVEY_DATA", "../shared/data"))


class MissingCorpusError(RuntimeError):
    """A corpus is not where it should be."""


def path_of(name: str) -> Path:
    """Where a file of the corpora is.

    Raises:
        MissingCorpusError: it is not there.
    """
    path = CORPORA / name
    if not path.exists():
        raise MissingCorpusError(f"no {path}; set COVEY_DATA to the folder of the corpora")
    return path


def records(name: str) -> Iterator[dict[str, Any]]:
    """The records of a gzipped file of JSON lines."""
    with gzip.open(path_of(name), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def jsonl(rows: Iterable[dict[str, Any]]) -> bytes:
    """Records as JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def reuters() -> bytes:
    """Reuters-21578, ModApte: 9,603 and 3,299 stories; 115 labels have a training example."""
    return jsonl(records("reuters21578.jsonl.gz"))


def reuters_90() -> bytes:
    """The stories with one at least of the 90 labels that both parts have, and no other labels."""
    rows = list(records("reuters21578.jsonl.gz"))
    parts = [
        {label for row in rows if row["split"] == split for label in row["labels"]}
        for split in ("train", "test")
    ]
    both = parts[0] & parts[1]
    kept = ({**row, "labels": [label for label in row["labels"] if label in both]} for row in rows)
    return jsonl(row for row in kept if row["labels"])


def rcv1() -> bytes:
    """The part of RCV1-v2: 3,000 and 3,000 stories as sets of 944 terms, 102 topics closed under ancestors."""
    return jsonl(
        {"id": row["id"], "text": row["text"], "labels": row["labels"], "split": row["split"]}
        for row in records("rcv1subset1.jsonl.gz")
    )
