"""Data sets that are made from other data sets: what a request needs, and their lineage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.context import AppContext
from app.datasets import service
from app.datasets.schemas import DatasetCreate, Example
from app.db import tables
from app.db.session import Transaction
from app.errors import Invalid
from models.data.record import json_pointer, quoted


def sources(ctx: AppContext, body: DatasetCreate) -> list[tables.Dataset]:
    """Return the data sets from which a request makes another one, in the order of the request.

    Raises:
        NotFound: one of them does not exist.
        Conflict: one of them is not ready.
        Invalid: they are of different kinds, or of another kind than the examples of the request.
    """
    if body.and_dataset is not None:
        row = service.get_ready(ctx, body.and_dataset, pointer="/and_dataset")
        if _kind(row) == "features":
            message = f"data set {row.id} is of kind features, but messages with feedback are e-mails"
            raise _other_kind(message, "/and_dataset")
        return [row]
    if body.derive is None:
        return []
    rows = [
        service.get_ready(ctx, dataset_id, pointer=json_pointer("derive", "datasets", i))
        for i, dataset_id in enumerate(body.derive.datasets)
    ]
    first = rows[0]
    kind = _kind(first)
    for i, row in enumerate(rows):
        if _kind(row) != kind:
            raise _other_kind(
                f"data set {row.id} is of kind {_kind(row)}, but data set {first.id} is of kind {kind}",
                json_pointer("derive", "datasets", i),
            )
    for i, example in enumerate(body.examples or ()):
        if (other := _kind_of_example(example)) != kind:
            raise _other_kind(
                f"the example is of kind {other}, but data set {first.id} is of kind {kind}",
                json_pointer("examples", i),
            )
    return rows


def _kind(row: tables.Dataset) -> str:
    kind: str = (row.report or {})["kind"]
    return kind


def _kind_of_example(example: Example) -> str:
    if example.text is not None:
        return "text"
    return "features" if example.features is not None else "email"


def _other_kind(message: str, pointer: str) -> Invalid:
    message = f"{message}; all examples of a data set must be of the same kind"
    return Invalid(message, code="invalid_parameters", errors=[(pointer, message)])


def inherited_tree(rows: Sequence[tables.Dataset]) -> dict[str, str] | None:
    """Return the label trees of data sets as one tree; None if none of them has one.

    Raises:
        Invalid: a label has different parents.
    """
    parents: dict[str, str] = {}
    owner: dict[str, str] = {}
    for row in rows:
        for label, parent in (row.label_tree or {}).items():
            if parents.setdefault(label, parent) != parent:
                message = (
                    f"the label {quoted(label)} has the parent {quoted(parents[label])} in data set "
                    f"{owner[label]} and the parent {quoted(parent)} in data set {row.id}; set label_tree"
                )
                raise Invalid(message, code="invalid_parameters", errors=[("/derive/datasets", message)])
            owner.setdefault(label, row.id)
    return parents or None


def lock(tx: Transaction, rows: Sequence[tables.Dataset]) -> None:
    """Prevent the deletion of data sets until the end of the transaction.

    Raises:
        NotFound: one of them does not exist any more.
    """
    for dataset_id in sorted(row.id for row in rows):  # all transactions lock them in the same order
        service.lock_ready(tx, dataset_id)


def lineage(
    body: DatasetCreate, rows: Sequence[tables.Dataset], selection: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return what a data set is made from, as the API returns it; None if it is made from an upload only.

    Args:
        body: the request.
        rows: the other data sets.
        selection: the decisions with feedback; None if there are none.
    """
    if body.derive is None and selection is None:
        return None
    return {
        **(body.derive.model_dump(mode="json", exclude_none=True) if body.derive else {}),
        "datasets": [
            {
                "dataset_id": row.id,
                "name": row.name,
                "sha256": row.sha256,
                "n_examples": (row.report or {})["n_examples"],
            }
            for row in rows
        ],
        **({"n_appended": len(body.examples)} if body.examples else {}),
        **({"feedback": selection} if selection else {}),
        **body.model_dump(
            mode="json", exclude_none=True, include={"merge_labels", "rename_labels", "remove_labels"}
        ),
    }
