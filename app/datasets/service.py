"""What happens to data sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from app.context import AppContext
from app.datasets.schemas import Dataset, DatasetCreate, DatasetPage, DatasetPatch, LabelItem, LabelPage
from app.db import tables
from app.db.session import Database, Transaction
from app.http.errors import ApiError, Conflict, NotFound, from_learning
from app.http.idempotency import Idempotency
from app.http.paging import Page, cut, newest_first
from app.ids import new_id
from app.jobs import queue
from models.errors import ParameterError
from models.labels import LabelTree


def create(ctx: AppContext, body: DatasetCreate, idempotency: Idempotency) -> Dataset:
    """Make a data set that waits for its content, or is read from the examples in the request."""
    if body.label_tree:
        try:
            LabelTree(body.label_tree)
        except ParameterError as error:
            raise from_learning(error) from error

    def work(tx: Transaction) -> Dataset:
        row = tables.Dataset(
            id=new_id("ds"),
            name=body.name,
            description=body.description,
            format=_format(body),
            state="awaiting_content",
            label_tree=body.label_tree,
            options={
                "max_bad_records": body.max_bad_records,
                "format": body.options.model_dump(mode="json", by_alias=True) if body.options else None,
            },
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        if body.examples is not None:
            key = upload_key(row.id)
            with ctx.storage.create(key) as file:
                for example in body.examples:
                    record = example.model_dump(mode="json", exclude_none=True, by_alias=True)
                    file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            start_ingesting(tx, row, key, encoding=None)
        return shown(row)

    return idempotency.run(ctx.db, Dataset, work)


def _format(body: DatasetCreate) -> str | None:
    if body.options is not None:
        return body.options.format
    return "jsonl" if body.examples is not None else body.format


def upload_key(dataset_id: str) -> str:
    """A fresh key for content of a data set; every upload has its own."""
    return f"uploads/{dataset_id}.{new_id('req')}"


def expect_content(db: Database, dataset_id: str) -> None:
    """Refuse content early where the data set cannot take any.

    Raises:
        NotFound: no such data set.
        Conflict: it has its content already.
    """
    with db.read() as session:
        _open_for_content(session.get(tables.Dataset, dataset_id), dataset_id)


def attach_content(ctx: AppContext, dataset_id: str, key: str, encoding: str | None) -> Dataset:
    """Make a finished upload the content of a data set, and have a worker read it."""
    try:
        with ctx.db.write() as tx:
            row = tx.session.get(tables.Dataset, dataset_id, with_for_update=True)
            row = _open_for_content(row, dataset_id)
            failed = row.upload_key
            start_ingesting(tx, row, key, encoding)
            made = shown(row)
    except ApiError:
        ctx.storage.delete(key)
        raise
    if failed is not None:
        ctx.storage.delete(failed)
    return made


def start_ingesting(tx: Transaction, row: tables.Dataset, key: str, encoding: str | None) -> None:
    """Queue the reading of a data set's content."""
    row.state = "ingesting"
    row.upload_key = key
    row.upload_encoding = encoding
    row.error = None
    queue.enqueue(tx, "ingest", {}, dataset_id=row.id)


def _open_for_content(row: tables.Dataset | None, dataset_id: str) -> tables.Dataset:
    row = _found(row, dataset_id)
    if row.state not in ("awaiting_content", "failed"):
        raise Conflict(
            f"data set {dataset_id} is {row.state}; a data set takes its content once, make another one",
            code="dataset_has_content",
        )
    return row


def get(db: Database, dataset_id: str) -> Dataset:
    """One data set."""
    with db.read() as session:
        return shown(_found(session.get(tables.Dataset, dataset_id), dataset_id))


def page(db: Database, page: Page) -> DatasetPage:
    """A page of data sets, the newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.Dataset), tables.Dataset.id, page)
        return DatasetPage(items=[shown(row) for row in rows], next_cursor=cursor)


def patch(db: Database, dataset_id: str, body: DatasetPatch) -> Dataset:
    """Change a data set's name or description."""
    with db.write() as tx:
        row = _found(tx.session.get(tables.Dataset, dataset_id, with_for_update=True), dataset_id)
        if body.name is not None:
            row.name = body.name
        if "description" in body.model_fields_set:
            row.description = body.description
        tx.session.flush()
        return shown(row)


def delete(ctx: AppContext, dataset_id: str) -> None:
    """Delete a data set and its files, unless a job needs it."""
    with ctx.db.write() as tx:
        row = _found(tx.session.get(tables.Dataset, dataset_id, with_for_update=True), dataset_id)
        needed = tx.session.scalars(
            select(tables.Job.id).where(
                tables.Job.dataset_id == dataset_id, tables.Job.state.not_in(queue.FINISHED)
            )
        ).first()
        if needed is not None:
            raise Conflict(
                f"data set {dataset_id} is needed by job {needed}; cancel it or wait for its end",
                code="dataset_in_use",
            )
        for job in tx.session.scalars(select(tables.Job).where(tables.Job.dataset_id == dataset_id)):
            job.dataset_id = None
        keys = [key for key in (row.upload_key, row.storage_key) if key is not None]
        tx.session.flush()
        tx.session.delete(row)
    for key in keys:
        ctx.storage.delete(key)


def labels(db: Database, dataset_id: str, page: Page) -> LabelPage:
    """A page of a data set's labels, in label order."""
    with db.read() as session:
        _found(session.get(tables.Dataset, dataset_id), dataset_id)
        rows = session.scalars(
            select(tables.DatasetLabel)
            .where(
                tables.DatasetLabel.dataset_id == dataset_id,
                tables.DatasetLabel.position > page.after_number(),
            )
            .order_by(tables.DatasetLabel.position)
            .limit(page.limit + 1)
        ).all()
        shown_rows, cursor = cut(rows, page, lambda row: row.position)
        items = [LabelItem(label=row.label, count=row.count, parent=row.parent) for row in shown_rows]
        return LabelPage(items=items, next_cursor=cursor)


def label_counts(db: Database, dataset_id: str) -> dict[str, int]:
    """Every label of a data set with its number of examples, in label order."""
    with db.read() as session:
        rows = session.execute(
            select(tables.DatasetLabel.label, tables.DatasetLabel.count)
            .where(tables.DatasetLabel.dataset_id == dataset_id)
            .order_by(tables.DatasetLabel.position)
        )
        return dict(rows.all())


def ready(ctx: AppContext, dataset_id: str, *, pointer: str | None = None) -> tables.Dataset:
    """A data set that can be read.

    Raises:
        NotFound: no such data set.
        Conflict: it is not ready.
    """
    with ctx.db.read() as session:
        row = _found(session.get(tables.Dataset, dataset_id), dataset_id, pointer=pointer)
        if row.state != "ready":
            remedy = "wait until it is ready" if row.state == "ingesting" else "give it content first"
            message = f"data set {dataset_id} is {row.state}; {remedy}"
            raise Conflict(message, code="dataset_not_ready", errors=[(pointer, message)] if pointer else ())
        return row


def _found(row: tables.Dataset | None, dataset_id: str, pointer: str | None = None) -> tables.Dataset:
    if row is None:
        message = f"there is no data set {dataset_id}"
        raise NotFound(message, errors=[(pointer, message)] if pointer else ())
    return row


def shown(row: tables.Dataset) -> Dataset:
    """A row as clients see it."""
    report: dict[str, Any] = row.report or {}
    return Dataset.model_validate(
        {
            "id": row.id,
            "name": row.name,
            "description": row.description,
            "format": row.format,
            "state": row.state,
            "label_tree": row.label_tree,
            "created_at": row.created_at,
            "ready_at": row.ready_at,
            "sha256": row.sha256,
            "size_bytes": row.size_bytes,
            "error": row.error,
            **{name: report.get(name) for name in REPORTED},
        }
    )


REPORTED: Sequence[str] = (
    "kind",
    "n_examples",
    "n_labels",
    "label_cardinality",
    "label_density",
    "n_unlabelled",
    "splits",
    "n_bad_records",
    "warnings",
)
"""What of an ingestion's report is part of the data set."""
