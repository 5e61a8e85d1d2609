"""Writes a data set as JSON Lines, which ingestion can read back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from models.data.examples import Examples, ExampleSource, FeatureRows


class ByteStream(Protocol):
    """Receives bytes, such as a file that is open for writing."""

    def write(self, data: bytes, /) -> object:
        """Receive bytes."""
        ...


def export_jsonl(source: ExampleSource, stream: ByteStream) -> int:
    r"""Write every example as one line. Ingesting the lines gives the same examples in the same order.

    Labels without an example and the label tree are not exported, because the format has no place for them.
    Unknown labels and weights are exported.
    Features that are 0 in every example are kept: the first line lists them with the value 0.

    Args:
        source: the examples.
        stream: receives UTF-8.

    Returns:
        The number of lines written.

    >>> import io
    >>> out = io.BytesIO()
    >>> export_jsonl(Examples("text", ["a bill"], [("billing",)], ["m1"], ["train"]), out)
    1
    >>> out.getvalue()
    b'{"id": "m1", "text": "a bill", "labels": ["billing"], "split": "train"}\n'
    """
    zeros = _all_zero_features(source)
    n_lines = 0
    for batch in source.batches():
        for i, document in enumerate(_documents(batch)):
            line: dict[str, Any] = {"id": batch.ids[i]} if batch.ids else {}
            line |= document
            if zeros:
                line["features"] = line["features"] | zeros
                zeros = {}
            line["labels"] = list(batch.labels[i])
            if batch.unknown and batch.unknown[i]:
                line["unknown_labels"] = list(batch.unknown[i])
            if batch.split_column and batch.split_column[i] is not None:
                line["split"] = batch.split_column[i]
            if batch.weights and batch.weights[i] != 1.0:
                line["weight"] = batch.weights[i]
            if batch.fold_column and batch.fold_column[i] is not None:
                line["fold"] = batch.fold_column[i]
            if batch.selected_by_column and batch.selected_by_column[i] is not None:
                line["selected_by"] = batch.selected_by_column[i]
            stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n")
            n_lines += 1
    return n_lines


def _documents(batch: Examples) -> Iterator[dict[str, Any]]:
    """Yield the document of each example as members of its JSON object."""
    if isinstance(batch.documents, FeatureRows):
        names, matrix = batch.documents.names, batch.documents.matrix
        for i in range(batch.n_examples):
            row = slice(matrix.indptr[i], matrix.indptr[i + 1])
            cells = zip(matrix.indices[row].tolist(), matrix.data[row].tolist(), strict=True)
            yield {"features": {names[j]: value for j, value in cells}}
        return
    for document in batch.documents:
        if isinstance(document, str):
            yield {"text": document}
        elif document.raw is not None:
            yield {"raw_email": base64.b64encode(document.raw).decode("ascii")}
        else:
            yield {"email": document.parts()}


def _all_zero_features(source: ExampleSource) -> dict[str, float]:
    if source.kind != "features":
        return {}
    used: set[int] = set()
    names: list[str] = []
    for batch in source.batches():
        if isinstance(batch.documents, FeatureRows):
            names = list(batch.documents.names)
            used.update(np.unique(batch.documents.matrix.indices).tolist())
    return {name: 0.0 for j, name in enumerate(names) if j not in used}
