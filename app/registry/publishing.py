"""Publish a fitted pipeline as the next version of a model, and promote it by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db import tables
from app.db.outbox import queue_event
from app.db.session import Transaction
from app.db.upsert import upsert
from app.errors import Conflict
from app.ids import new_id
from app.registry import alias_changes, router_requirements
from app.registry.alias_changes import Cause, Reason
from app.registry.schemas import PromotionOutcome, PromotionRule
from app.storage import StoredFile
from app.version import software
from models.pipeline import Pipeline
from models.splits import SPLIT_REVISION

LIVE = "live"


@dataclass(frozen=True)
class NewVersion:
    """A version to be published, before it has a number.

    Attributes:
        model: name of the model.
        pipeline: the fitted pipeline.
        artifact: the stored artifact of the pipeline.
        metrics: for each part (``"train"``, ``"test"``), the value of each measure.
        warnings: warnings for people, in full sentences.
        dataset_id: the data set that the pipeline was trained on; None for an import.
        dataset_sha256: SHA-256 of the content of that data set; None if unknown.
        training_job_id: the training job; None for an import.
        key_id: the API key of the request that created the version; None if the service requires no key.
        timings: seconds by phase of the training.
        reason: what created the version, for the history of its alias.
        lineage: the fields of a ``VersionLineage``; None if the version was not made from another one.
        evaluation: the evaluation by part, see ``app.evaluations.evaluate``; None for an import.
    """

    model: str
    pipeline: Pipeline
    artifact: StoredFile
    metrics: dict[str, dict[str, float]]
    warnings: list[str]
    dataset_id: str | None
    dataset_sha256: str | None
    training_job_id: str | None
    timings: dict[str, float]
    evaluation: dict[str, Any] | None = None
    key_id: str | None = None
    reason: Reason = "training"
    lineage: dict[str, int] | None = None


@dataclass(frozen=True)
class ComparisonRecord:
    """A test that has compared two versions.

    Attributes:
        number: its number among the comparisons of the model, from 1.
        documents: the sketch of the documents; see ``models.measures.attempts``.
    """

    number: int
    documents: list[int]


@dataclass(frozen=True)
class Verdict:
    """The decision on the promotion of a new version, after a comparison with the live one.

    Attributes:
        live_version: number of the live version of the comparison; None if there was none.
        promote: whether the new version should be promoted.
        reason: why.
        comparison: the fields of a ``VersionComparison``; None if the versions could not be compared.
        record: the test that has decided; None if there was none.
    """

    live_version: int | None
    promote: bool
    reason: str
    comparison: dict[str, Any] | None = None
    record: ComparisonRecord | None = None


class VerdictOutdatedError(Exception):
    """Another version is live than in the comparison, or another comparison was recorded in the meantime."""


@dataclass(frozen=True)
class Published:
    """A version that was inserted.

    Attributes:
        version: its number.
        promotion: whether it was promoted, and why.
    """

    version: int
    promotion: PromotionOutcome


def publish(tx: Transaction, new: NewVersion, promote: PromotionRule | Verdict) -> Published:
    """Insert a version under the next number of its model, and move ``live`` to it if the rule says so.

    Raises:
        VerdictOutdatedError: the versions must be compared again; the transaction must not commit.
    """
    number = _next_number(tx, new.model)
    live = tx.session.get(tables.ModelAlias, (new.model, LIVE))
    live_before = live.version if live is not None else None
    if isinstance(promote, Verdict):
        if promote.live_version != live_before:
            raise VerdictOutdatedError
        if promote.record is not None:
            _record(tx, new.model, number, promote.record)
        verdict = promote
    else:
        verdict = _apply(promote, live_before)
    row = tables.ModelVersion(
        model=new.model,
        version=number,
        artifact_key=new.artifact.key,
        artifact_sha256=new.artifact.sha256,
        artifact_bytes=new.artifact.size_bytes,
        training_job_id=new.training_job_id,
        dataset_id=new.dataset_id,
        description=_description(new),
        created_at=tx.now,
    )
    if verdict.promote:
        try:
            router_requirements.check(tx, row, LIVE)
        except Conflict as error:
            verdict = replace(verdict, promote=False, reason=error.detail)
            _add_warning(row, f"not promoted: {verdict.reason}")
    elif isinstance(promote, Verdict) and verdict.comparison is None:
        _add_warning(row, f"not promoted: {verdict.reason}")
    tx.session.add(row)
    tx.session.flush()
    if new.evaluation is not None:
        tx.session.add(
            tables.Evaluation(
                id=new_id("evl"),
                model=new.model,
                version=number,
                job_id=new.training_job_id,
                of_training=True,
                dataset_id=new.dataset_id,
                request={},
                content=new.evaluation,
                created_at=tx.now,
            )
        )
        tx.session.flush()
    if verdict.promote:
        set_alias(tx, new.model, LIVE, number, Cause(new.reason, new.key_id, new.training_job_id))
    return Published(
        number,
        PromotionOutcome.model_validate(
            {
                "promoted": verdict.promote,
                "reason": verdict.reason,
                "live_before": live_before,
                "comparison": verdict.comparison,
            }
        ),
    )


def _record(tx: Transaction, model: str, version: int, record: ComparisonRecord) -> None:
    """Record a comparison. The transaction holds the lock on the row of the model.

    Raises:
        VerdictOutdatedError: another comparison was recorded, so that this one has a lower level.
    """
    of = tables.VersionComparison
    if record.number - 1 != tx.session.scalar(select(func.count()).where(of.model == model)):
        raise VerdictOutdatedError
    tx.session.add(
        of(
            model=model,
            number=record.number,
            version=version,
            documents=record.documents,
            compared_at=tx.now,
        )
    )


def compared_documents(session: Session, model: str) -> Sequence[list[int]]:
    """Return the sketch of the documents of each comparison of a model so far."""
    of = tables.VersionComparison
    return session.scalars(select(of.documents).where(of.model == model)).all()


def _apply(rule: PromotionRule, live: int | None) -> Verdict:
    """Return what a rule says that does not compare versions."""
    if rule == "always":
        return Verdict(live, True, "the rule always promotes every version")
    if rule == "if_first" and live is None:
        return Verdict(live, True, "the model had no live version")
    if rule == "if_first":
        return Verdict(live, False, f"the rule if_first keeps version {live}, which is live")
    return Verdict(live, False, "the rule never promotes no version")


def _add_warning(row: tables.ModelVersion, warning: str) -> None:
    row.description = {**row.description, "warnings": [*row.description["warnings"], warning]}


def set_alias(tx: Transaction, model: str, alias: str, version: int, cause: Cause) -> tables.ModelAlias:
    """Set an alias to an existing version, and record the change; create the alias if it does not exist.

    The caller holds the lock on the row of the model.
    """
    row = tx.session.get(tables.ModelAlias, (model, alias))
    if row is None:
        before = None
        revision = alias_changes.last_revision(tx.session, model, alias) + 1
        row = tables.ModelAlias(
            model=model, alias=alias, version=version, revision=revision, updated_at=tx.now
        )
        tx.session.add(row)
    else:
        before = row.version
        row.version = version
        row.revision += 1
        row.updated_at = tx.now
    alias_changes.record(tx, row, before=before, after=version, cause=cause)
    tx.session.flush()
    if version != before:
        data = {"model": model, "alias": alias, "version": version, "reason": cause.reason}
        if before is not None:
            data["previous_version"] = before
        queue_event(tx, "version.promoted", data, model=model)
    return row


def _next_number(tx: Transaction, name: str) -> int:
    """Create a model if it does not exist, lock its row, and return the number of its next version."""
    insert = upsert(tx, tables.Model, name=name, last_version=1, created_at=tx.now)
    number: int = tx.session.execute(
        insert.on_conflict_do_update(
            index_elements=["name"], set_={"last_version": tables.Model.last_version + 1}
        ).returning(tables.Model.last_version)
    ).scalar_one()
    return number


def _description(new: NewVersion) -> dict[str, Any]:
    pipeline = new.pipeline
    return {
        "labels": pipeline.labels_,
        "closed_under_ancestors": pipeline.closed_under_ancestors_,
        "learner": pipeline.learner_.validated_parameters().model_dump(mode="json"),
        "features": pipeline.features_.parameters.model_dump(mode="json"),
        "decision": pipeline.decision_.model_dump(mode="json"),
        "decision_report": None
        if pipeline.decision_report_ is None
        else pipeline.decision_report_.model_dump(mode="json", exclude_none=True),
        "thresholds": pipeline.thresholds_.tolist(),
        "calibrated": pipeline.calibration_ is not None,
        "has_curves": pipeline.curves_ is not None,
        "reference": pipeline.reference_.model_dump(mode="json", exclude_none=True),
        "seed": pipeline.seed,
        "split_revision": SPLIT_REVISION,
        "metrics": new.metrics or None,
        "facts": pipeline.summary_.facts,
        "warnings": new.warnings,
        "dataset_sha256": new.dataset_sha256,
        **({"lineage": new.lineage} if new.lineage is not None else {}),
        "software": software(),
        "timings": {name: round(seconds, 6) for name, seconds in new.timings.items()},
    }
