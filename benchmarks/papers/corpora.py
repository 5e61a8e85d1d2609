"""The corpora as request bodies, reduced to the parts that the papers use."""

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
    """A corpus file does not exist."""


def path_of(name: str) -> Path:
    """Return the path of a corpus file.

    Raises:
        MissingCorpusError: If the file does not exist.
    """
    path = CORPORA / name
    if not path.exists():
        raise MissingCorpusError(f"no {path}; set COVEY_DATA to the folder of the corpora")
    return path


def records(name: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a gzipped JSON Lines file."""
    with gzip.open(path_of(name), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def jsonl(rows: Iterable[dict[str, Any]]) -> bytes:
    """Return records as JSON Lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def reuters() -> bytes:
    """Return Reuters-21578, ModApte split: 9,603 training and 3,299 test stories, 115 labels in training."""
    return jsonl(records("reuters21578.jsonl.gz"))


def reuters_90() -> bytes:
    """Return the stories with at least one of the 90 labels that occur in both parts, without other labels."""
    rows = list(records("reuters21578.jsonl.gz"))
    parts = [
        {label for row in rows if row["split"] == split for label in row["labels"]}
        for split in ("train", "test")
    ]
    both = parts[0] & parts[1]
    kept = ({**row, "labels": [label for label in row["labels"] if label in both]} for row in rows)
    return jsonl(row for row in kept if row["labels"])


def rcv1() -> bytes:
    """Return the RCV1-v2 part: 3,000 and 3,000 stories as sets of 944 terms, 102 topics with all ancestors."""
    return jsonl(
        {"id": row["id"], "text": row["text"], "labels": row["labels"], "split": row["split"]}
        for row in records("rcv1subset1.jsonl.gz")
    )


def labelled_reuters() -> list[dict[str, Any]]:
    """Return the labelled stories of Reuters-21578, ModApte split: 7,775 and 3,019, 118 labels."""
    return [row for row in records("reuters21578.jsonl.gz") if row["labels"]]


def mulan(name: str) -> list[dict[str, Any]]:
    """Return a Mulan data set with the training part first. Each row contains its split."""
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
    """Return one copy of the records per fold, with this fold as the test part.

    The folds are the same as those of an experiment with seed 0, except that equal documents, of which the
    corpora have few, can be in different folds.
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
