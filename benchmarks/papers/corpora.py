"""The corpora, as bodies that the service takes, cut to what the papers used."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from models.splits import stratified_folds

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


def labelled_reuters() -> list[dict[str, Any]]:
    """The stories of Reuters-21578, ModApte, that have a label: 7,775 and 3,019, 118 labels."""
    return [row for row in records("reuters21578.jsonl.gz") if row["labels"]]


def mulan(name: str) -> list[dict[str, Any]]:
    """A data set of Mulan's, its training part first; each row says its split."""
    about = json.loads(path_of(f"mulan/{name}.meta.json").read_text())
    rows = []
    for split in ("train", "test"):
        with gzip.open(path_of(f"mulan/{name}-{split}.svm.gz"), "rt") as lines:
            for i, line in enumerate(lines):
                labels, _, values = line.partition(" ")
                pairs = (pair.split(":") for pair in values.split())
                rows.append(
                    {
                        "id": f"{split}/{i}",
                        "features": {about["features"][int(f) - 1]: float(x) for f, x in pairs},
                        "labels": [about["labels"][int(j)] for j in labels.split(",") if j],
                        "split": split,
                    }
                )
    return rows


def folds(rows: Sequence[dict[str, Any]], n_folds: int) -> list[bytes]:
    """The records once for each fold, which is its test part.

    The folds are those that an experiment with seed 0 makes.
    """
    labels = sorted({label for row in rows for label in row["labels"]})
    place = {label: j for j, label in enumerate(labels)}
    cells = [(i, place[label]) for i, row in enumerate(rows) for label in set(row["labels"])]
    i, j = np.array(cells).T
    Y = csr_array((np.ones(len(cells), dtype=np.int8), (i, j)), shape=(len(rows), len(labels)))
    fold_of = stratified_folds(Y, n_folds, seed=0).tolist()
    return [
        jsonl(
            {**row, "split": "test" if at == fold else "train"} for row, at in zip(rows, fold_of, strict=True)
        )
        for fold in range(n_folds)
    ]
