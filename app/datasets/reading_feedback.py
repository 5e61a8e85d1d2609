"""Make a data set from the messages of decisions with feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import structlog

from app.context import AppContext
from app.datasets import feedback
from app.datasets.feedback import SampleAnswers
from app.datasets.reading_sources import digest, with_counts
from app.datasets.reading_uploads import (
    DatasetContent,
    ingest_limits,
    ingest_upload,
    label_changes,
    label_tree,
)
from app.db import tables
from app.errors import FileDamaged, NotReady
from app.jobs.progress import ProgressReporter
from app.storage import MissingFileError
from models.data.examples import SelectedBy
from models.data.ingestion.derive import SourceCounts
from models.data.ingestion.feedback_records import FeedbackCounts, FeedbackRecords
from models.data.ingestion.ingest import store_items
from models.data.ingestion.message_labels import MessageLabels
from models.data.record import join_first
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail.email import Email

log = structlog.get_logger()

ReadKeptMessage: TypeAlias = Callable[[AppContext, tables.Decision], Email | None]
"""Reads the message of a decision; None if it is not kept."""


def read_feedback(
    ctx: AppContext,
    row: tables.Dataset,
    target: Path,
    report: ProgressReporter,
    read_kept: ReadKeptMessage,
) -> DatasetContent:
    """Make a data set from messages with feedback, and from another data set if one is named.

    Args:
        ctx: the application context.
        row: the data set to make.
        target: the Parquet file to create.
        report: receives the progress.
        read_kept: reads the message of a decision.

    Raises:
        BadDataError: no message is available, or the upload cannot be read.
    """
    answers = feedback.sample_answers(ctx.db, row.options["from_feedback"])
    labels, broken = _labels(ctx, row, report, answers)
    other, facts = _other(ctx, row)
    limits = ingest_limits(ctx.settings)
    warnings = [] if answers.is_complete else [_incomplete(answers)]
    if broken:
        warnings.append(
            f"decisions were omitted, because the feedback has more than {ctx.settings.max_labels:,} labels "
            f"otherwise: {join_first(broken)}"
        )

    def kept(ids: Sequence[str]) -> Iterator[tuple[str, Email]]:
        for decision in feedback.rows(ctx.db, ids):
            email = _read(ctx, decision, read_kept)
            if email is not None:
                yield decision.id, email

    def progress(counts: FeedbackCounts) -> None:
        report("reading", counts.n_relabelled + counts.n_new, None, "messages")

    records = FeedbackRecords(
        labels,
        other,
        kept,
        with_splits=any(count for name, count in facts.get("splits", {}).items() if name != "none"),
        text_chars=limits.text_chars if facts.get("kind") == "text" else None,
        warnings=warnings,
        progress=progress,
    )
    if row.upload_key is not None:
        content = ingest_upload(ctx, row, target, transform=records.records)
    else:
        content = store_items(
            records.records(),
            target,
            tree=label_tree(row),
            limits=limits,
            changes=label_changes(row),
        )
    sha256, size = digest(target)
    return DatasetContent(content, sha256, size, _lineage(row, labels, other, records.counts))


def _read(ctx: AppContext, decision: tables.Decision, read_kept: ReadKeptMessage) -> Email | None:
    """Return the message of a decision; None if it is not kept, or not any more, or its file is damaged.

    Raises:
        BadDataError: the message cannot be decrypted.
    """
    try:
        return read_kept(ctx, decision)
    except MissingFileError:  # retention has just deleted it
        return None
    except FileDamaged as error:
        log.error("datasets.message_damaged", decision_id=decision.id, reason=error.detail)  # noqa: TRY400
        return None
    except NotReady as error:
        raise BadDataError(error.detail) from error


def _labels(
    ctx: AppContext, row: tables.Dataset, report: ProgressReporter, answers: SampleAnswers
) -> tuple[MessageLabels, list[str]]:
    """Return the labels of the feedback, and the ids of decisions with too many labels."""
    broken: list[str] = []
    known: set[str] = set()
    request = row.options["from_feedback"]
    # Only the mistakes of a version, or only its successes, are no random sample either.
    has_sample = answers.is_complete and "feedback" not in request
    labels = MessageLabels(max_id_chars=tables.MAX_MESSAGE_ID)
    for page in feedback.find(ctx.db, request):
        for decision in page:
            if len(known.union(decision.feedback)) > ctx.settings.max_labels:
                broken.append(decision.id)
                continue
            known.update(decision.feedback)
            labels.add(
                decision.id,
                decision.message_id,
                decision.message_key,
                decision.feedback,
                time=decision.feedback_at.timestamp(),
                selected_by="sample"
                if has_sample and decision.sampled
                else _selected_by(decision.disposition),
            )
        report("reading feedback", len(labels), None, "decisions")
    labels.sort()
    return labels, broken


def _selected_by(disposition: str | None) -> SelectedBy:
    """Return what selected a message for a review that is not in the random sample."""
    match disposition:
        case "review":
            return "doubt"
        case "fallback":
            return "fallback"
        case _:
            return "volunteered"


def _incomplete(answers: SampleAnswers) -> str:
    counts = ", ".join(
        f"{answered:,} of {drawn:,} {disposition}"
        for disposition, (drawn, answered) in answers.of_disposition.items()
    )
    return (
        f"too few messages of the random sample (review_sample) have feedback: {counts}; those that have it "
        "are no random sample, so they are not used as one; review the others, too (review=sample)"
    )


def _other(ctx: AppContext, row: tables.Dataset) -> tuple[StoredExamples | None, dict[str, Any]]:
    """Return the other data set with the report on its content."""
    if row.options["and_dataset"] is None:
        return None, {}
    with ctx.db.read() as session:
        other = session.get_one(tables.Dataset, row.options["and_dataset"])
    assert other.storage_key is not None, "a ready data set has a file"  # noqa: S101
    return StoredExamples(ctx.storage.local(other.storage_key)), other.report or {}


def _lineage(
    row: tables.Dataset, labels: MessageLabels, other: StoredExamples | None, counts: FeedbackCounts
) -> dict[str, Any]:
    whole = [] if other is None else [SourceCounts(other.n_examples, 0, 0)]
    lineage = with_counts(row.lineage or {}, whole)
    uploaded = ("n_unlabelled", "n_repeated")
    numbers = {
        name: n for name, n in asdict(counts).items() if row.upload_key is not None or name not in uploaded
    }
    totals = {"n_decisions": len(labels), "n_sampled": labels.n_sampled}
    return {**lineage, "feedback": {**lineage["feedback"], **totals, **numbers}}
