"""List, change and delete data sets, and enqueue the ingestion of their content."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, insert, select
from sqlalchemy import update as update_rows
from sqlalchemy.orm import Session

from app.api.paging import EVERYTHING, ListFilter, Page, ascending, newest_first, positions
from app.context import AppContext
from app.datasets.kept_uploads import Reading, Upload, reading_of, unshared_key
from app.datasets.schemas import Dataset, DatasetPage, DatasetPatch, LabelItem, LabelPage
from app.db import tables
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database, Transaction
from app.errors import Conflict, Invalid, NotFound, ServiceError
from app.ids import new_id
from app.jobs import queue
from app.limits import service as limits


def new_upload_key(dataset_id: str) -> str:
    """Return a new storage key for content of a data set; every upload has another key."""
    return f"uploads/{dataset_id}.{new_id('req')}"


def check_accepts_content(ctx: AppContext, dataset_id: str, key_id: str | None) -> None:
    """Check that a data set accepts content of an API key, before the content is received.

    Raises:
        NotFound: there is no such data set.
        Conflict: the data set already has content.
        TooMany: the key has too many unfinished jobs.
    """
    with ctx.db.read() as session:
        _check_accepts_content(get_or_404(session, dataset_id))
        limits.check_next_job(session, key_id, ctx.settings.jobs_in_flight)


def attach_content(
    ctx: AppContext, dataset_id: str, key: str, encoding: str | None, key_id: str | None = None
) -> Dataset:
    """Set an uploaded file as the content of a data set and enqueue its ingestion.

    If the data set does not accept content, the file is deleted.

    Raises:
        NotFound: there is no such data set.
        Conflict: the data set already has content, or the data set from which it is also made was deleted.
        TooMany: the key has too many unfinished jobs.
    """
    try:
        with ctx.db.write() as tx:
            other = _lock_other(tx, dataset_id)
            row = get_or_404(tx.session, dataset_id, lock=True)
            _check_accepts_content(row)
            replaced = unshared_key(tx, row)  # content that could not be read
            lock_sources(tx, dataset_id, [other] if other is not None else [])
            upload = Upload(key, encoding, tx.now)
            enqueue_ingestion(tx, row, upload, key_id, max_jobs=ctx.settings.jobs_in_flight)
            dataset = to_response(row)
    except ServiceError:
        ctx.deletion.delete([key])
        raise
    ctx.deletion.delete(replaced)
    return dataset


def _lock_other(tx: Transaction, dataset_id: str) -> str | None:
    """Lock the data set to which an upload is added, and return its id; None if there is none."""
    options = tx.session.scalar(select(tables.Dataset.options).where(tables.Dataset.id == dataset_id))
    other: str | None = (options or {}).get("and_dataset")
    if other is not None:
        try:
            lock_ready(tx, other)
        except NotFound as error:
            raise Conflict(
                f"data set {dataset_id} is also made from data set {other}, which was deleted; create "
                "another data set",
                code="conflict",
            ) from error
    return other


def enqueue_ingestion(
    tx: Transaction,
    row: tables.Dataset,
    upload: Upload | None,
    key_id: str | None,
    *,
    max_jobs: int,
) -> None:
    """Enqueue a job that reads the content of a data set, for an API key.

    Args:
        tx: the transaction.
        row: the data set.
        upload: the content; None if there is none, because the data set is made from others.
        key_id: id of the API key that requested the job; None for an anonymous request.
        max_jobs: maximum number of unfinished jobs of the key; 0 for no limit.

    Raises:
        TooMany: the key has too many unfinished jobs.
    """
    row.state = "ingesting"
    if upload is not None:
        row.upload_key = upload.key
        row.upload_encoding = upload.encoding
        row.uploaded_at = upload.uploaded_at if awaits_upload(row) else None
    row.error = None
    queue.enqueue(tx, "ingest", {}, dataset_id=row.id, key_id=key_id)
    limits.check_job_limit(tx, key_id, max_jobs)


def lock_sources(tx: Transaction, dataset_id: str, sources: Collection[str]) -> None:
    """Prevent the deletion of the data sets from which a new one is made, until its job ends.

    The caller has locked them with ``lock_ready``.
    """
    if sources:
        rows = [{"dataset_id": dataset_id, "source_id": source} for source in sources]
        tx.session.execute(insert(tables.DatasetSource), rows)


def unlock_sources(tx: Transaction, dataset_id: str) -> None:
    """Allow the deletion of the data sets from which a data set was made."""
    tx.session.execute(delete_rows(tables.DatasetSource).where(tables.DatasetSource.dataset_id == dataset_id))


def awaits_upload(row: tables.Dataset) -> bool:
    """Return whether the content of a data set is uploaded, perhaps in addition to other sources."""
    options = row.options
    if options.get("from_feedback") is not None:
        return row.format is not None
    return options.get("derive") is None


def _check_accepts_content(row: tables.Dataset) -> None:
    if not awaits_upload(row):
        raise Conflict(
            f"data set {row.id} is not made from an upload and accepts no content; create another data set",
            code="dataset_has_content",
        )
    if row.state not in ("awaiting_content", "failed"):
        raise Conflict(
            f"data set {row.id} is {row.state} and accepts no other content; create another data set",
            code="dataset_has_content",
        )


def get(db: Database, dataset_id: str) -> Dataset:
    """Return a data set."""
    with db.read() as session:
        return to_response(get_or_404(session, dataset_id))


def reading(db: Database, dataset_id: str) -> Reading | None:
    """Return how the upload of a data set was read; None if it cannot be read again."""
    with db.read() as session:
        return reading_of(get_or_404(session, dataset_id))


def page(db: Database, page: Page, conditions: ListFilter = EVERYTHING) -> DatasetPage:
    """Return a page of data sets that meet conditions, newest first."""
    with db.read() as session:
        statement = conditions.apply(select(tables.Dataset), tables.Dataset.name, tables.Dataset.state)
        rows, cursor = newest_first(session, statement, tables.Dataset.id, page)
        items = [to_response(row, with_lineage=False) for row in rows]  # a filter can have many names
        return DatasetPage(items=items, next_cursor=cursor)


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
        Conflict: an unfinished job uses the data set, or makes another data set from it.
    """
    with ctx.db.write() as tx:
        row = get_or_404(tx.session, dataset_id, lock=True)
        derived_id = tx.session.scalars(
            select(tables.DatasetSource.dataset_id).where(tables.DatasetSource.source_id == dataset_id)
        ).first()
        if derived_id is not None:
            raise Conflict(
                f"data set {derived_id} is being made from data set {dataset_id}; wait until it is ready",
                code="dataset_in_use",
            )
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
        keys = unshared_key(tx, row)
        if row.storage_key is not None:
            keys.append(row.storage_key)
        tx.session.delete(row)
    ctx.deletion.delete(keys)


def page_labels(db: Database, dataset_id: str, page: Page) -> LabelPage:
    """Return a page of the labels of a data set, in label order."""
    with db.read() as session:
        dataset = get_or_404(session, dataset_id)
        unknown: dict[str, int] = (dataset.report or {}).get("unknown_counts", {})
        statement = select(tables.DatasetLabel).where(tables.DatasetLabel.dataset_id == dataset_id)
        rows, cursor = ascending(session, statement, tables.DatasetLabel.position, page)
        return LabelPage(items=[_to_label(row, unknown) for row in rows], next_cursor=cursor)


def page_frequent_labels(db: Database, dataset_id: str, page: Page) -> LabelPage:
    """Return a page of the labels of a data set, the most frequent first; ties are in label order."""
    with db.read() as session:
        dataset = get_or_404(session, dataset_id)
        unknown: dict[str, int] = (dataset.report or {}).get("unknown_counts", {})
        of_dataset = tables.DatasetLabel.dataset_id == dataset_id
        shown, cursor = positions(page, session.scalar(select(func.count()).where(of_dataset)) or 0)
        rows = session.scalars(
            select(tables.DatasetLabel)
            .where(of_dataset)
            .order_by(tables.DatasetLabel.count.desc(), tables.DatasetLabel.position)
            .offset(shown.start)
            .limit(len(shown))
        )
        return LabelPage(items=[_to_label(row, unknown) for row in rows], next_cursor=cursor)


def _to_label(row: tables.DatasetLabel, unknown: Mapping[str, int]) -> LabelItem:
    return LabelItem(label=row.label, count=row.count, parent=row.parent, unknown=unknown.get(row.label))


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
        hint = "wait until it is ready" if row.state == "ingesting" else "upload content first"
        message = f"data set {row.id} is {row.state}; {hint}"
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
    session: Session,
    dataset_id: str,
    *,
    lock: bool | dict[str, bool] = False,
    pointer: str | None = None,
) -> tables.Dataset:
    """Return the row of a data set, locked if requested, perhaps with the flags of ``with_for_update``.

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


def to_response(row: tables.Dataset, *, with_lineage: bool = True) -> Dataset:
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
            "from_upload": row.options.get("from_upload"),
            "uploaded_at": row.uploaded_at,
            "sha256": row.sha256,
            "size_bytes": row.size_bytes,
            "error": row.error,
            **{name: report.get(name) for name in REPORT_FIELDS},
            "folds": report.get("folds") or None,
            "lineage": row.lineage if with_lineage else None,
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
    "n_empty",
    "n_duplicates",
    "n_conflicting",
    "n_weighted",
    "splits",
    "n_bad_records",
    "warnings",
)
"""Fields of the ingestion report that are part of the response."""
