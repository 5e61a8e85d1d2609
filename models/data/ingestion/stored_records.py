"""Turns the examples of a stored data set back into records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from models.data.examples import Documents, Examples, FeatureRows
from models.data.record import Record


def stored_records(batch: Examples, first_line: int) -> Iterator[Record]:
    """Yield the examples of a batch as records.

    Args:
        batch: the examples, with their documents.
        first_line: the line of the first record.
    """
    splits, folds, unknown = batch.splits(), batch.folds(), batch.unknown_sets()
    selections = batch.selections()
    for i, (id_, labels) in enumerate(zip(batch.ids, batch.labels, strict=True)):
        weight = batch.weights[i] if batch.weights else 1.0
        yield Record(
            line=first_line + i,
            labels=labels,
            id=id_,
            split=splits[i],
            unknown=unknown[i],
            weight=None if weight == 1.0 else weight,
            fold=folds[i],
            selected_by=selections[i],
            **_document(batch.documents, i),
        )


def _document(documents: Documents, i: int) -> dict[str, Any]:
    if isinstance(documents, FeatureRows):
        start, end = documents.matrix.indptr[i : i + 2]
        columns = documents.matrix.indices[start:end].tolist()
        values = documents.matrix.data[start:end].tolist()
        return {"features": {documents.names[j]: value for j, value in zip(columns, values, strict=True)}}
    document = documents[i]
    return {"text": document} if isinstance(document, str) else {"email": document}
