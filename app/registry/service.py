"""List, import and delete models and versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session

from app.api.idempotency import Idempotency
from app.api.paging import EVERYTHING, ListFilter, Page, ascending, newest_first
from app.context import AppContext
from app.db import tables
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database, Transaction
from app.errors import Conflict, ServiceError, from_library_error
from app.ids import new_id
from app.jobs.queue import UNFINISHED
from app.registry import imports, publishing, router_requirements
from app.registry.publishing import NewVersion
from app.registry.queries import (
    get_model_or_404,
    get_version_or_404,
    no_model,
    read_alias_numbers,
)
from app.registry.schemas import Artifact, Model, ModelPage, ModelVersion, ModelVersionPage, PromotionRule
from models.decisions.apply import NEVER
from models.errors import ArtifactError


def page_models(db: Database, page: Page, conditions: ListFilter = EVERYTHING) -> ModelPage:
    """Return a page of models that meet conditions, by name."""
    with db.read() as session:
        statement = conditions.apply(select(tables.Model), tables.Model.name)
        rows, cursor = ascending(session, statement, tables.Model.name, page)
        return ModelPage(items=_models_to_response(session, rows), next_cursor=cursor)


def get_model(db: Database, name: str) -> Model:
    """Return a model."""
    with db.read() as session:
        return _models_to_response(session, [get_model_or_404(session, name)])[0]


@retry_deadlocks
def delete_model(ctx: AppContext, name: str) -> None:
    """Delete a model with all its versions.

    Raises:
        NotFound: there is no such model.
        Conflict: a router or an unfinished job uses the model.
    """
    with ctx.db.write() as tx:
        lock_model(tx, name)
        if (router := find_router(tx, name)) is not None:
            raise Conflict(
                f"model {name} is used by router {router}; delete the router first", code="model_in_use"
            )
        job = tx.session.scalars(
            select(tables.Job.id).where(tables.Job.model == name, tables.Job.state.in_(UNFINISHED))
        ).first()
        if job is not None:
            raise Conflict(
                f"model {name} is used by job {job}; cancel the job or wait until it ends",
                code="model_in_use",
            )
        of_model = tables.ModelVersion.model == name
        keys = tx.session.scalars(select(tables.ModelVersion.artifact_key).where(of_model)).all()
        tx.session.execute(delete_rows(tables.ModelAlias).where(tables.ModelAlias.model == name))
        tx.session.execute(delete_rows(tables.AliasChange).where(tables.AliasChange.model == name))
        tx.session.execute(delete_rows(tables.ModelVersion).where(of_model))
        tx.session.execute(delete_rows(tables.Model).where(tables.Model.name == name))
    ctx.deletion.delete(keys)


def page_versions(db: Database, name: str, page: Page) -> ModelVersionPage:
    """Return a page of the versions of a model, newest first."""
    with db.read() as session:
        get_model_or_404(session, name)
        statement = select(tables.ModelVersion).where(tables.ModelVersion.model == name)
        rows, cursor = newest_first(session, statement, tables.ModelVersion.version, page)
        aliases = read_alias_numbers(session, name)
        return ModelVersionPage(
            items=[_version_to_response(row, aliases, thresholds=False) for row in rows],
            next_cursor=cursor,
        )


def get_version(db: Database, name: str, version: int) -> ModelVersion:
    """Return a version."""
    with db.read() as session:
        return _version_to_response(
            get_version_or_404(session, name, version), read_alias_numbers(session, name)
        )


def artifact_path(ctx: AppContext, name: str, version: int) -> tuple[Path, Artifact]:
    """Return the local path of the artifact of a version, and its digest and size."""
    with ctx.db.read() as session:
        row = get_version_or_404(session, name, version)
    return ctx.storage.local(row.artifact_key), _artifact_to_response(row)


@retry_deadlocks
def delete_version(ctx: AppContext, name: str, version: int) -> None:
    """Delete a version and its artifact.

    Raises:
        NotFound: there is no such version.
        Conflict: an alias, a router, or an unfinished evaluation or batch prediction uses the version.
    """
    with ctx.db.write() as tx:
        lock_model(tx, name)
        row = get_version_or_404(tx.session, name, version)
        for alias, number in read_alias_numbers(tx.session, name).items():
            if number == version:
                raise Conflict(
                    f"version {version} of {name} has the alias {alias}; move or delete the alias first",
                    code="version_in_use",
                )
        if (router := find_router(tx, name, router_requirements.uses_version(name, version))) is not None:
            raise Conflict(
                f"version {version} of {name} is used by router {router}; change the router first",
                code="version_in_use",
            )
        if (job := _find_unfinished_job(tx, name, version)) is not None:
            raise Conflict(
                f"version {version} of {name} is used by job {job}; cancel the job or wait until it ends",
                code="version_in_use",
            )
        key = row.artifact_key
        tx.session.delete(row)
    ctx.deletion.delete([key])


def import_version(ctx: AppContext, name: str, path: Path, idempotency: Idempotency) -> ModelVersion:
    """Publish an artifact as the next version of a model.

    The whole artifact is verified before it is stored, and stored before the version is inserted.

    Args:
        ctx: the application context.
        name: name of the model; it is created if it does not exist.
        path: the received artifact, in a temporary file of the storage.
        idempotency: with the digest of the artifact in its fingerprint.

    Raises:
        Invalid: the file is not an artifact that this release can serve.
        Conflict: the idempotency key was used with another artifact.
    """
    if (first := idempotency.first_response(ctx.db, ModelVersion)) is not None:
        return first
    try:
        pipeline, provenance = imports.read(path, ctx.settings)
    except ArtifactError as error:
        raise from_library_error(error) from error
    stored = ctx.storage.put(f"artifacts/{new_id('req')}.covey", path)
    new = NewVersion(
        model=name,
        pipeline=pipeline,
        artifact=stored,
        metrics=provenance.metrics.model_dump(exclude_none=True) if provenance.metrics else {},
        warnings=list(pipeline.summary_.warnings),
        dataset_id=None,
        dataset_sha256=provenance.dataset_sha256,
        training_job_id=None,
        timings={},
        key_id=idempotency.key_id,
        reason="import",
    )
    return publish_once(ctx, new, "if_first", idempotency)


def publish_once(
    ctx: AppContext,
    new: NewVersion,
    promote: PromotionRule,
    idempotency: Idempotency,
    check: Callable[[Transaction], object] = lambda _: None,
) -> ModelVersion:
    """Publish a version whose artifact is stored, or delete the artifact if it is not published.

    Args:
        ctx: the application context.
        new: the version.
        promote: when to promote it.
        idempotency: of the request.
        check: called in the transaction before the version is inserted; may raise an error.

    Raises:
        Conflict: the idempotency key was used with another body.
    """
    published = False

    def work(tx: Transaction) -> ModelVersion:
        nonlocal published
        check(tx)
        number = publishing.publish(tx, new, promote).version
        published = True
        version = _version_to_response(
            get_version_or_404(tx.session, new.model, number), read_alias_numbers(tx.session, new.model)
        )
        version.model_dump_json()  # an error of the response must roll back the version
        return version

    try:
        version = idempotency.run(ctx.db, ModelVersion, work)
    except ServiceError:
        ctx.deletion.delete([new.artifact.key])
        raise
    if not published:  # a simultaneous request with this idempotency key has published another copy
        ctx.deletion.delete([new.artifact.key])
    return version


def lock_model(tx: Transaction, name: str, *, shared: bool = False) -> tables.Model:
    """Lock the row of a model until the end of the transaction.

    Every transaction that changes a model, its versions, its aliases, or a router that uses it, locks the
    model first. Otherwise what it has checked may be deleted before it commits, or two transactions may wait
    for each other.

    Args:
        tx: the transaction.
        name: name of the model.
        shared: whether the transaction only uses the model and its versions, as others can at the same time.

    Raises:
        NotFound: there is no such model.
    """
    row = tx.session.get(tables.Model, name, with_for_update={"read": shared}, populate_existing=True)
    if row is None:
        raise no_model(name)
    return row


def find_router(tx: Transaction, name: str, *conditions: ColumnElement[bool]) -> str | None:
    """Return the name of a router that uses a model and meets the conditions."""
    return tx.session.scalars(
        select(tables.Router.name)
        .where(tables.Router.model == name, *conditions)
        .order_by(tables.Router.name)
        .limit(1)
    ).first()


def _find_unfinished_job(tx: Transaction, name: str, version: int) -> str | None:
    """Return the id of an unfinished evaluation or batch prediction job of a version."""
    job = tables.Job
    for user in (tables.Evaluation, tables.BatchPrediction):
        used_by = exists().where(user.job_id == job.id, user.model == name, user.version == version)
        unfinished = select(job.id).where(job.model == name, job.state.in_(UNFINISHED), used_by)
        if (job_id := tx.session.scalars(unfinished.limit(1)).first()) is not None:
            return job_id
    return None


def _models_to_response(session: Session, rows: Sequence[tables.Model]) -> list[Model]:
    names = [row.name for row in rows]
    counts: dict[str, int] = dict(
        session.execute(
            select(tables.ModelVersion.model, func.count())
            .where(tables.ModelVersion.model.in_(names))
            .group_by(tables.ModelVersion.model)
        ).all()
    )
    aliases: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in session.scalars(
        select(tables.ModelAlias)
        .where(tables.ModelAlias.model.in_(names))
        .order_by(tables.ModelAlias.model, tables.ModelAlias.alias)
    ):
        aliases[row.model][row.alias] = row.version
    return [
        Model(
            name=row.name,
            created_at=row.created_at,
            versions=counts.get(row.name, 0),
            last_version=row.last_version,
            aliases=aliases[row.name],
        )
        for row in rows
    ]


def _version_to_response(
    row: tables.ModelVersion, aliases: dict[str, int], *, thresholds: bool = True
) -> ModelVersion:
    """Convert a row to the response, with or without the values of each label."""
    stored = row.description.get("thresholds") if thresholds else None
    reference = row.description.get("reference") if thresholds else None
    fields: dict[str, Any] = {
        **row.description,
        "thresholds": None
        if stored is None
        else {
            label: threshold
            for label, threshold in zip(row.description["labels"], stored, strict=True)
            if threshold != NEVER
        },
        "reference": None
        if reference is None
        else {
            **reference,
            "label_counts": dict(zip(row.description["labels"], reference["label_counts"], strict=True)),
        },
        "model": row.model,
        "version": row.version,
        "aliases": [alias for alias, number in aliases.items() if number == row.version],
        "dataset_id": row.dataset_id,
        "training_job_id": row.training_job_id,
        "artifact": _artifact_to_response(row),
        "created_at": row.created_at,
    }
    return ModelVersion.model_validate(fields)


def _artifact_to_response(row: tables.ModelVersion) -> Artifact:
    return Artifact(sha256=row.artifact_sha256, size_bytes=row.artifact_bytes)
