"""Read pages of the examples of a data set from its Parquet file."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import structlog

from app.api.paging import Page, encode_cursor, positions
from app.context import AppContext
from app.datasets import service
from app.datasets.schemas import ExampleItem, ExamplePage
from app.errors import FileDamaged
from models.data.examples import Documents, Examples, FeatureRows
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail import Email, read_email

log = structlog.get_logger()


MAX_SCANNED = 20_000
"""Examples that one search reads at most; a further page continues it."""

MAX_READ_MESSAGES = 1000
"""Raw messages that one search for words reads at most. Reading one takes about a millisecond."""


@dataclass(frozen=True)
class ExampleSearch:
    """The content that examples must have.

    Attributes:
        words: each example has this text, whatever its case: in its id, document, or names of features.
        label: each example has this label.
    """

    words: str = ""
    label: str = ""


@dataclass(frozen=True)
class FoundExamples:
    """A page of examples that were found.

    Attributes:
        items: the examples.
        position: the number of examples from the beginning that have been read; all, at the end.
        next_cursor: continues the search; None at the end.
    """

    items: list[ExampleItem]
    position: int
    next_cursor: str | None


def page(ctx: AppContext, dataset_id: str, page: Page) -> ExamplePage:
    """Return a page of the examples of a ready data set, in the order of its content."""
    stored = _open(ctx, dataset_id)
    shown, cursor = positions(page, stored.n_examples)
    return ExamplePage(items=_to_items(stored.page(shown.start, len(shown))), next_cursor=cursor)


def search(ctx: AppContext, dataset_id: str, search: ExampleSearch, page: Page) -> FoundExamples:
    """Return a page of the examples of a ready data set that a search finds, in the order of its content.

    It reads a limited number of examples, so a page can have fewer examples than its limit, or none, although
    more follow.
    """
    stored = _open(ctx, dataset_id)
    first = page.after_number() + 1
    keep = np.zeros(stored.n_examples, dtype=np.bool_)
    keep[first : first + MAX_SCANNED] = True
    position, n_messages = first, 0
    found: list[ExampleItem] = []
    for batch in stored.where(keep).batches():
        for i in range(batch.n_examples):
            if len(found) == page.limit or n_messages == MAX_READ_MESSAGES:
                return FoundExamples(found, position, encode_cursor(position - 1))
            position += 1
            if search.label and search.label not in batch.labels[i]:
                continue
            if search.words:
                document = None if isinstance(batch.documents, FeatureRows) else batch.documents[i]
                n_messages += isinstance(document, Email) and document.raw is not None
                if not _contains(batch, i, search.words.casefold()):
                    continue
            found += _to_items(batch, [i])
    more = position < stored.n_examples
    return FoundExamples(found, position, encode_cursor(position - 1) if more else None)


def _contains(batch: Examples, i: int, words: str) -> bool:
    """Return whether an example has a text without regard to case."""
    texts = [batch.ids[i]]
    if isinstance(batch.documents, FeatureRows):
        texts += _features(batch.documents, i)
    else:
        document = batch.documents[i]
        if isinstance(document, str):
            texts.append(document)
        else:
            mail = read_email(document)
            texts += [mail.subject, mail.new_text, mail.quoted_text, mail.sender_line]
    return any(words in text.casefold() for text in texts)


def _open(ctx: AppContext, dataset_id: str) -> StoredExamples:
    row = service.get_ready(ctx, dataset_id)
    assert row.storage_key is not None, "a ready data set has a file"  # noqa: S101
    path = ctx.storage.local(row.storage_key)
    try:
        return StoredExamples(path)
    except BadDataError as error:
        log.error("storage.file_damaged", key=row.storage_key)  # noqa: TRY400 - a traceback adds nothing
        raise FileDamaged(f"data set {dataset_id}") from error


def _to_items(batch: Examples, rows: Iterable[int] | None = None) -> list[ExampleItem]:
    splits, folds, unknown = batch.splits(), batch.folds(), batch.unknown_sets()
    selections = batch.selections()
    return [
        ExampleItem(
            id=batch.ids[i],
            labels=list(batch.labels[i]),
            unknown_labels=list(unknown[i]) or None,
            split=splits[i],
            weight=batch.weights[i] if batch.weights and batch.weights[i] != 1.0 else None,
            fold=folds[i],
            selected_by=selections[i],
            **_document_fields(batch.documents, i),
        )
        for i in (range(batch.n_examples) if rows is None else rows)
    ]


def _document_fields(documents: Documents, i: int) -> dict[str, Any]:
    if isinstance(documents, FeatureRows):
        return {"features": _features(documents, i)}
    document = documents[i]
    if isinstance(document, str):
        return {"text": document}
    if document.raw is not None:
        return {"raw_email": base64.b64encode(document.raw).decode("ascii")}
    return {"email": document.parts()}


def _features(documents: FeatureRows, i: int) -> dict[str, float]:
    start, end = documents.matrix.indptr[i : i + 2]
    columns = documents.matrix.indices[start:end]
    values = documents.matrix.data[start:end]
    return {documents.names[j]: float(x) for j, x in zip(columns, values, strict=True)}
