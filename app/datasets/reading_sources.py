"""Make a data set from other data sets and from examples of a request."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from app.context import AppContext
from app.datasets.reading_uploads import DatasetContent, ingest_limits, label_changes, label_tree
from app.db import tables
from app.jobs.progress import ProgressReporter
from models.data.export import export_jsonl
from models.data.ingestion.derive import Source, SourceCounts, derive
from models.data.ingestion.example_filter import ExampleFilter
from models.data.ingestion.ingest import ingest
from models.data.store import StoredExamples


def read_sources(
    ctx: AppContext, row: tables.Dataset, target: Path, report: ProgressReporter
) -> DatasetContent:
    """Make a data set from other data sets, and from the examples of the request.

    Args:
        ctx: the application context.
        row: the data set to make.
        target: the Parquet file to create.
        report: receives the progress.

    Raises:
        BadDataError: the data set cannot be made, for example because no example is left.
    """
    request = row.options["derive"]
    with ctx.db.read() as session:
        keys = [session.get_one(tables.Dataset, id_).storage_key for id_ in request["datasets"]]
    sources = []
    for dataset_id, key in zip(request["datasets"], keys, strict=True):
        assert key is not None, "a ready data set has a file"  # noqa: S101
        sources.append(Source(f"data set {dataset_id}", StoredExamples(ctx.storage.local(key))))
    with ctx.storage.temporary_file(".parquet") as appended:
        if row.upload_key is not None:
            with ctx.storage.local(row.upload_key).open("rb") as stream:
                ingest(stream, "jsonl", appended, limits=ingest_limits(ctx.settings))
            sources.append(Source("the request", StoredExamples(appended), filtered=False))
        derived, counts = derive(
            sources,
            target,
            filter=_filter(request.get("filter")),
            repeated_ids=request["repeated_ids"],
            tree=label_tree(row),
            limits=ingest_limits(ctx.settings),
            changes=label_changes(row),
            progress=lambda done, total: report("reading", done, total, "examples"),
        )
    sha256, size = digest(target)
    return DatasetContent(derived, sha256, size, with_counts(row.lineage or {}, counts))


def _filter(request: dict[str, Any] | None) -> ExampleFilter | None:
    if request is None:
        return None
    names = {name: frozenset(value) for name, value in request.items() if isinstance(value, list)}
    if "splits" in names:
        names["splits"] = frozenset(None if split == "none" else split for split in names["splits"])
    return ExampleFilter(**{**request, **names})


def with_counts(lineage: dict[str, Any], counts: list[SourceCounts]) -> dict[str, Any]:
    """Return a lineage with the outcome for the examples of each data set."""
    datasets = [
        {
            **entry,
            "n_filtered": count.n_filtered,
            "n_replaced": count.n_replaced,
            "n_used": count.n_used,
        }
        for entry, count in zip(lineage["datasets"], counts, strict=False)  # the last one can be the request
    ]
    return {**lineage, "datasets": datasets}


def digest(path: Path) -> tuple[str, int]:
    """Return the SHA-256 digest (hexadecimal) and the size of a stored data set as JSON Lines."""
    stream = _DigestStream()
    export_jsonl(StoredExamples(path), stream)
    return stream.sha256.hexdigest(), stream.size


class _DigestStream:
    """Compute the digest of what is written."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes, /) -> None:
        """Add bytes."""
        self.sha256.update(data)
        self.size += len(data)
