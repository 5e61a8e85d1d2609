"""Creates, lists, changes and deletes data sets, and enqueues the ingestion of their content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy import update as update_rows
from sqlalchemy.orm import Session

from app.context import AppContext
from app.datasets.schemas import (
    Dataset,
    DatasetCreate,
    DatasetPage,
    DatasetPatch,
    Example,
    LabelItem,
    LabelPage,
)
from app.db import tables
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database, Transaction
from app.http.errors import ApiError, Conflict, Invalid, NotFound, from_learning
from app.http.idempotency import Idempotency
from app.http.paging import Page, cut, newest_first
from app.ids import new_id
from app.jobs import queue
from models.data.ingestion.label_changes import LabelChanges
from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name, quoted
from models.errors import ParameterError
from models.labels import LabelTree


def create(ctx: AppContext, body: DatasetCreate, idempotency: Idempotency) -> Dataset:
    """Create a data set that awaits its content, or that a worker reads from the examples of the request.

    Raises:
        Invalid: the label tree has a cycle or too many levels, or the changes of labels are contradictory.
        Conflict: the idempotency key was used with another request.
    """
    if (first := idempotency.first_response(ctx.db, Dataset)) is not None:
        return first
    try:
        if body.label_tree:
            _check_label_tree(body.label_tree, ctx.settings.max_tree_depth)
        label_changes = _label_changes(body)
    except ParameterError as error:
        raise from_learning(error) from error
    dataset_id = new_id("ds")
    # If the transaction fails, retention deletes the file.
    key = None if body.examples is None else _store_examples(ctx, dataset_id, body.examples)

    def work(tx: Transaction) -> Dataset:
        row = tables.Dataset(
            id=dataset_id,
            name=body.name,
            description=body.description,
            format=_requested_format(body),
            state="awaiting_content",
            label_tree=body.label_tree,
            options={
                "max_bad_records": body.max_bad_records,
                "format": body.options.model_dump(mode="json", by_alias=True) if body.options else None,
                "label_changes": label_changes,
            },
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        if key is not None:
            enqueue_ingestion(tx, row, key, encoding=None, key_id=idempotency.key_id)
        return to_response(row)

    return idempotency.run(ctx.db, Dataset, work)


def _store_examples(ctx: AppContext, dataset_id: str, examples: Sequence[Example]) -> str:
    """Store the examples of a request as JSON lines; return the storage key."""
    key = new_upload_key(dataset_id)
    with ctx.storage.create(key) as file:
        for example in examples:
            record = example.model_dump(mode="json", exclude_none=True, by_alias=True)
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    return key


def _check_label_tree(parents: Mapping[str, str], max_depth: int) -> None:
    """Check that a data set can have a label tree.

    Raises:
        ParameterError: the tree has a cycle, too many levels, or a label that no file may contain.
    """
    tree = LabelTree(parents)
    tree.check_depth(max_depth)
    for label in tree.labels:
        try:
            check_name(label, "a label", "", IngestLimits.name_length)
        except RecordError as error:
            raise ParameterError(f"{error.reason}: {quoted(label)}", "/label_tree") from error


def _label_changes(body: DatasetCreate) -> dict[str, Any] | None:
    """Return the changes of labels as JSON, from which ``work`` creates the object; None if there are none.

    Raises:
        ParameterError: the changes contradict each other or the label tree, or a new name is not valid.
    """
    if not (body.merge_labels or body.rename_labels or body.remove_labels):
        return None
    rename, remove = body.rename_labels or {}, sorted(set(body.remove_labels or ()))
    merge_similar = body.merge_labels == "similar"
    changes = LabelChanges(rename, frozenset(remove), merge_similar)
    changes.check_tree(LabelTree(body.label_tree or {}).labels)
    return {"rename": rename, "remove": remove, "merge_similar": merge_similar}


def _requested_format(body: DatasetCreate) -> str | None:
    if body.options is not None:
        return body.options.format
    return "jsonl" if body.examples is not None else body.format


def new_upload_key(dataset_id: str) -> str:
    """Return a new storage key for content of a data set; every upload has another key."""
    return f"uploads/{dataset_id}.{new_id('req')}"


def check_accepts_content(db: Database, dataset_id: str) -> None:
    """Check that a data set accepts content, before the content is received.

    Raises:
        NotFound: there is no such data set.
        Conflict: the data set already has content.
    """
    with db.read() as session:
        _check_accepts_content(get_or_404(session, dataset_id))


def attach_content(
    ctx: AppContext, dataset_id: str, key: str, encoding: str | None, key_id: str | None = None
) -> Dataset:
    """Set an uploaded file as the content of a data set and enqueue its ingestion.

    If the data set does not accept content, the file is deleted.

    Raises:
        NotFound: there is no such data set.
        Conflict: the data set already has content.
    """
    try:
        with ctx.db.write() as tx:
            row = get_or_404(tx.session, dataset_id, lock=True)
            _check_accepts_content(row)
            replaced_key = row.upload_key
            enqueue_ingestion(tx, row, key, encoding, key_id)
            dataset = to_response(row)
    except ApiError:
        ctx.deletion.delete([key])
        raise
    if replaced_key is not None:  # content that could not be read
        ctx.deletion.delete([replaced_key])
    return dataset


def enqueue_ingestion(
    tx: Transaction, row: tables.Dataset, key: str, encoding: str | None, key_id: str | None
) -> None:
    """Enqueue a job that reads the content of a data set, for an API key."""
    row.state = "ingesting"
    row.upload_key = key
    row.upload_encoding = encoding
    row.error = None
    queue.enqueue(tx, "ingest", {}, dataset_id=row.id, key_id=key_id)


def _check_accepts_content(row: tables.Dataset) -> None:
    if row.state not in ("awaiting_content", "failed"):
        raise Conflict(
            f"data set {row.id} is {row.state} and accepts no other content; create another data set",
            code="dataset_has_content",
        )


def get(db: Database, dataset_id: str) -> Dataset:
    """Return a data set."""
    with db.read() as session:
        return to_response(get_or_404(session, dataset_id))


def page(db: Database, page: Page) -> DatasetPage:
    """Return a page of data sets, newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.Dataset), tables.Dataset.id, page)
        return DatasetPage(items=[to_response(row) for row in rows], next_cursor=cursor)


def update(db: Database, dataset_id: str, body: DatasetPatch) -> Dataset:
    """Change the name or description of a data set."""
    with db.write() as tx:
        row = get_or_404(tx.session, dataset_id, lock=True)
        if body.name is not None:
            row.name = body.name
        if "description" in body.model_fields_set:
            row.description = body.description
        tx.session.flush()
        return to_response(row)


@retry_deadlocks
def delete(ctx: AppContext, dataset_id: str) -> None:
    """Delete a data set and its files.

    Raises:
        NotFound: there is no such data set.
        Conflict: an unfinished job uses the data set.
    """
    with ctx.db.write() as tx:
        row = get_or_404(tx.session, dataset_id, lock=True)
        job_id = tx.session.scalars(
            select(tables.Job.id).where(
                tables.Job.dataset_id == dataset_id, tables.Job.state.in_(queue.UNFINISHED)
            )
        ).first()
        if job_id is not None:
            raise Conflict(
                f"data set {dataset_id} is used by job {job_id}; cancel the job or wait until it ends",
                code="dataset_in_use",
            )
        tx.session.execute(
            update_rows(tables.Job).where(tables.Job.dataset_id == dataset_id).values(dataset_id=None)
        )
        keys = [key for key in (row.upload_key, row.storage_key) if key is not None]
        tx.session.delete(row)
    ctx.deletion.delete(keys)


def page_labels(db: Database, dataset_id: str, page: Page) -> LabelPage:
    """Return a page of the labels of a data set, in label order."""
    with db.read() as session:
        dataset = get_or_404(session, dataset_id)
        unknown: dict[str, int] = (dataset.report or {}).get("unknown_counts", {})
        rows = session.scalars(
            select(tables.DatasetLabel)
            .where(
                tables.DatasetLabel.dataset_id == dataset_id,
                tables.DatasetLabel.position > page.after_number(),
            )
            .order_by(tables.DatasetLabel.position)
            .limit(page.limit + 1)
        ).all()
        page_rows, cursor = cut(rows, page, lambda row: row.position)
        items = [
            LabelItem(label=row.label, count=row.count, parent=row.parent, unknown=unknown.get(row.label))
            for row in page_rows
        ]
        return LabelPage(items=items, next_cursor=cursor)


def label_counts(db: Database, dataset_id: str) -> dict[str, int]:
    """Return the number of examples of every label of a data set, in label order."""
    with db.read() as session:
        rows = session.execute(
            select(tables.DatasetLabel.label, tables.DatasetLabel.count)
            .where(tables.DatasetLabel.dataset_id == dataset_id)
            .order_by(tables.DatasetLabel.position)
        )
        return dict(rows.all())


def get_ready(ctx: AppContext, dataset_id: str, *, pointer: str | None = None) -> tables.Dataset:
    """Return the row of a data set whose content can be read.

    Args:
        ctx: the application context.
        dataset_id: id of the data set.
        pointer: JSON pointer of the id in the request, for the error.

    Raises:
        NotFound: there is no such data set.
        Conflict: the data set is not ready.
    """
    with ctx.db.read() as session:
        row = get_or_404(session, dataset_id, pointer=pointer)
        _check_ready(row, pointer)
        return row


def lock_ready(tx: Transaction, dataset_id: str, *, pointer: str | None = None) -> None:
    """Check that a data set exists and is ready, and prevent its deletion until the end of the transaction.

    Call this in the transaction that enqueues a job on the data set, before any other row is locked. Several
    transactions can do this at the same time.

    Raises:
        NotFound: there is no such data set.
        Conflict: the data set is not ready.
    """
    row = tx.session.get(
        tables.Dataset,
        dataset_id,
        with_for_update={"read": True, "key_share": True},
        populate_existing=True,
    )
    if row is None:
        raise _not_found(dataset_id, pointer)
    _check_ready(row, pointer)


def _check_ready(row: tables.Dataset, pointer: str | None) -> None:
    if row.state != "ready":
        remedy = "wait until it is ready" if row.state == "ingesting" else "upload content first"
        message = f"data set {row.id} is {row.state}; {remedy}"
        raise Conflict(message, code="dataset_not_ready", errors=[(pointer, message)] if pointer else ())


def check_labelled(row: tables.Dataset, *, pointer: str) -> None:
    """Check that a ready data set has examples with labels.

    Args:
        row: the data set.
        pointer: JSON pointer of its id in the request, for the error.

    Raises:
        Invalid: no example has a label.
    """
    report = row.report or {}
    if report["n_unlabelled"] == report["n_examples"]:
        message = (
            f"no example of data set {row.id} has a label, so it is only suitable for batch predictions; use "
            "a data set with labels"
        )
        raise Invalid(message, errors=[(pointer, message)])


def get_or_404(
    session: Session, dataset_id: str, *, lock: bool = False, pointer: str | None = None
) -> tables.Dataset:
    """Return the row of a data set, locked if requested.

    Raises:
        NotFound: there is no such data set.
    """
    row = session.get(tables.Dataset, dataset_id, with_for_update=lock)
    if row is None:
        raise _not_found(dataset_id, pointer)
    return row


def _not_found(dataset_id: str, pointer: str | None) -> NotFound:
    message = f"there is no data set {dataset_id}"
    return NotFound(message, errors=[(pointer, message)] if pointer else ())


def to_response(row: tables.Dataset) -> Dataset:
    """Convert a row to the response."""
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
            **{name: report.get(name) for name in REPORT_FIELDS},
            "folds": report.get("folds") or None,
        }
    )


REPORT_FIELDS: Sequence[str] = (
    "kind",
    "n_examples",
    "n_labels",
    "label_cardinality",
    "label_density",
    "n_unlabelled",
    "n_with_unknown",
    "n_weighted",
    "splits",
    "n_bad_records",
    "warnings",
)
"""Fields of the ingestion report that are part of the response."""
