"""Reads pages of the examples of a data set from its Parquet file."""

from __future__ import annotations

import base64
from typing import Any

import structlog

from app.context import AppContext
from app.datasets import service
from app.datasets.schemas import ExampleItem, ExamplePage
from app.http.errors import FileDamaged
from app.http.paging import Page, encode_cursor
from models.data.examples import Documents, Examples, FeatureRows
from models.data.store import StoredExamples
from models.errors import BadDataError

log = structlog.get_logger()


def page(ctx: AppContext, dataset_id: str, page: Page) -> ExamplePage:
    """Return a page of the examples of a ready data set, in the order of its content."""
    row = service.get_ready(ctx, dataset_id)
    assert row.storage_key is not None, "a ready data set has a file"  # noqa: S101
    path = ctx.storage.local(row.storage_key)
    try:
        stored = StoredExamples(path)
    except BadDataError as error:
        log.error("storage.file_damaged", key=row.storage_key)  # noqa: TRY400 - a traceback adds nothing
        raise FileDamaged(f"data set {dataset_id}") from error
    first = page.after_number() + 1
    items = _to_items(stored.page(first, page.limit))
    more = first + page.limit < stored.n_examples
    return ExamplePage(items=items, next_cursor=encode_cursor(first + page.limit - 1) if more else None)


def _to_items(batch: Examples) -> list[ExampleItem]:
    splits, folds, unknown = batch.splits(), batch.folds(), batch.unknown_sets()
    return [
        ExampleItem(
            id=batch.ids[i],
            labels=list(batch.labels[i]),
            unknown_labels=list(unknown[i]) or None,
            split=splits[i],
            weight=batch.weights[i] if batch.weights and batch.weights[i] != 1.0 else None,
            fold=folds[i],
            **_document_fields(batch.documents, i),
        )
        for i in range(batch.n_examples)
    ]


def _document_fields(documents: Documents, i: int) -> dict[str, Any]:
    if isinstance(documents, FeatureRows):
        start, end = documents.matrix.indptr[i : i + 2]
        columns = documents.matrix.indices[start:end]
        values = documents.matrix.data[start:end]
        return {"features": {documents.names[j]: float(x) for j, x in zip(columns, values, strict=True)}}
    document = documents[i]
    if isinstance(document, str):
        return {"text": document}
    if document.raw is not None:
        return {"raw_email": base64.b64encode(document.raw).decode("ascii")}
    return {"email": document.parts()}
