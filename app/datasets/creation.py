"""Create data sets: those that await content, those with examples in the request, and derived ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.api.idempotency import Idempotency
from app.context import AppContext
from app.datasets import derivation, feedback, kept_uploads, service
from app.datasets.kept_uploads import Upload
from app.datasets.schemas import Dataset, DatasetCreate, Example
from app.db import tables
from app.db.session import Transaction
from app.errors import from_library_error
from app.ids import new_id
from models.data.ingestion.label_changes import LabelChanges
from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name, quoted
from models.errors import ParameterError
from models.labels import LabelTree
from models.labels.tree import MAX_DEPTH


def create(ctx: AppContext, body: DatasetCreate, idempotency: Idempotency) -> Dataset:
    """Create a data set that awaits its content, or that a worker makes from what the request contains.

    Raises:
        Invalid: the label tree has a cycle or too many levels, the changes of labels are contradictory, or
            the other data sets do not fit together.
        NotFound: a data set or the router to make it from does not exist.
        Conflict: a data set to make it from is not ready, its upload is not kept any more, or the idempotency
            key was used with another request.
        TooMany: the API key has too many unfinished jobs.
    """
    if (first := idempotency.first_response(ctx.db, Dataset)) is not None:
        return first
    sources = derivation.sources(ctx, body)
    tree = body.label_tree
    if tree is None:
        tree = derivation.inherited_tree(sources) or _requested_tree(ctx, body.from_upload)
    try:
        if tree:
            _check_label_tree(tree)
        label_changes = _label_changes(body, tree)
    except ParameterError as error:
        raise from_library_error(error) from error
    dataset_id = new_id("ds")
    # If the transaction fails, retention deletes the file.
    key = None
    if body.examples is not None:
        key = _store_examples(ctx, dataset_id, body.examples, with_ids=body.derive is not None)

    def work(tx: Transaction) -> Dataset:
        derivation.lock(tx, sources)
        upload = None if key is None else Upload(key, None, tx.now)
        if body.from_upload is not None:
            other = service.get_or_404(
                tx.session, body.from_upload, lock={"read": True}, pointer=kept_uploads.POINTER
            )
            upload = kept_uploads.upload_of(other)
        selection = feedback.selection(tx, body)
        row = tables.Dataset(
            id=dataset_id,
            name=body.name,
            description=body.description,
            format=_requested_format(body),
            state="awaiting_content",
            label_tree=tree or None,
            options={
                "max_bad_records": body.max_bad_records,
                "format": body.options.model_dump(mode="json", by_alias=True, exclude_unset=True)
                if body.options
                else None,
                "label_changes": label_changes,
                "derive": body.derive.model_dump(mode="json", exclude_none=True) if body.derive else None,
                "from_feedback": selection,
                "and_dataset": body.and_dataset,
                "from_upload": body.from_upload,
                "has_label_tree": bool(tree),
            },
            lineage=derivation.lineage(body, sources, selection),
            created_at=tx.now,
        )
        tx.session.add(row)
        tx.session.flush()
        if upload is not None or not service.awaits_upload(row):
            service.lock_sources(tx, dataset_id, [source.id for source in sources])
            service.enqueue_ingestion(
                tx,
                row,
                upload,
                idempotency.key_id,
                max_jobs=ctx.settings.jobs_in_flight,
            )
        return service.to_response(row)

    return idempotency.run(ctx.db, Dataset, work)


def _store_examples(ctx: AppContext, dataset_id: str, examples: Sequence[Example], *, with_ids: bool) -> str:
    """Store the examples of a request as JSON lines; return the storage key.

    Args:
        ctx: the application context.
        dataset_id: id of the data set.
        examples: the examples.
        with_ids: whether every example needs an id that no example of another data set has.
    """
    key = service.new_upload_key(dataset_id)
    with ctx.storage.create(key) as file:
        for number, example in enumerate(examples, start=1):
            record = example.model_dump(mode="json", exclude_none=True, by_alias=True)
            if with_ids and example.id is None:
                record["id"] = f"{dataset_id}-{number}"
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    return key


def _check_label_tree(parents: Mapping[str, str]) -> None:
    """Check that a data set can have a label tree.

    Raises:
        ParameterError: the tree has a cycle, too many levels, or a label that no file may contain.
    """
    tree = LabelTree(parents)
    tree.check_depth(MAX_DEPTH)
    for label in tree.labels:
        try:
            check_name(label, "a label", "", IngestLimits.name_length)
        except RecordError as error:
            raise ParameterError(f"{error.reason}: {quoted(label)}", "/label_tree") from error


def _label_changes(body: DatasetCreate, tree: Mapping[str, str] | None) -> dict[str, Any] | None:
    """Return the changes of labels as JSON, from which ``work`` creates the object; None if there are none.

    Raises:
        ParameterError: the changes contradict each other or the label tree, or a new name is not valid.
    """
    if not (body.merge_labels or body.rename_labels or body.remove_labels):
        return None
    rename, remove = body.rename_labels or {}, sorted(set(body.remove_labels or ()))
    merge_similar = body.merge_labels == "similar"
    changes = LabelChanges(rename, frozenset(remove), merge_similar)
    changes.check_tree(LabelTree(tree or {}).labels)
    return {"rename": rename, "remove": remove, "merge_similar": merge_similar}


def _requested_tree(ctx: AppContext, dataset_id: str | None) -> dict[str, str] | None:
    """Return the label tree of the request for a data set, but not one that its file declares."""
    if dataset_id is None:
        return None
    with ctx.db.read() as session:
        row = service.get_or_404(session, dataset_id, pointer=kept_uploads.POINTER)
        return row.label_tree if row.options.get("has_label_tree") else None


def _requested_format(body: DatasetCreate) -> str | None:
    if body.options is not None:
        return body.options.format
    return "jsonl" if body.examples is not None and body.derive is None else body.format
