"""Lists, imports and deletes models, versions and aliases, and resolves references to versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.context import AppContext
from app.db import tables
from app.db.session import Database, Transaction
from app.http.errors import ApiError, Conflict, NotFound, PreconditionFailed, from_learning
from app.http.idempotency import Idempotency
from app.http.paging import Page, by_name, cut
from app.ids import new_id
from app.jobs.queue import FINISHED
from app.registry import publishing
from app.registry.publishing import NewVersion
from app.registry.schemas import Alias, AliasPut, Artifact, Model, ModelPage, ModelVersion, ModelVersionPage
from models import artifact
from models.errors import ArtifactError


def page_models(db: Database, page: Page) -> ModelPage:
    """Return a page of models, by name."""
    with db.read() as session:
        rows, cursor = by_name(session, select(tables.Model), tables.Model.name, page)
        return ModelPage(items=[_model_to_response(session, row) for row in rows], next_cursor=cursor)


def get_model(db: Database, name: str) -> Model:
    """Return a model."""
    with db.read() as session:
        return _model_to_response(session, _get_model_or_404(session, name))


def delete_model(ctx: AppContext, name: str) -> None:
    """Delete a model with all its versions.

    Raises:
        NotFound: there is no such model.
        Conflict: a router or an unfinished job uses the model.
    """
    with ctx.db.write() as tx:
        _get_model_or_404(tx.session, name)
        router = tx.session.scalars(select(tables.Router.name).where(tables.Router.model == name)).first()
        if router is not None:
            raise Conflict(
                f"model {name} is used by router {router}; delete the router first", code="model_in_use"
            )
        job = tx.session.scalars(
            select(tables.Job.id).where(tables.Job.model == name, tables.Job.state.not_in(FINISHED))
        ).first()
        if job is not None:
            raise Conflict(
                f"model {name} is used by job {job}; cancel the job or wait until it ends",
                code="model_in_use",
            )
        of_model = tables.ModelVersion.model == name
        keys = tx.session.scalars(select(tables.ModelVersion.artifact_key).where(of_model)).all()
        tx.session.execute(delete_rows(tables.ModelAlias).where(tables.ModelAlias.model == name))
        tx.session.execute(delete_rows(tables.ModelVersion).where(of_model))
        tx.session.execute(delete_rows(tables.Model).where(tables.Model.name == name))
    ctx.deletion.delete(keys)


def page_versions(db: Database, name: str, page: Page) -> ModelVersionPage:
    """Return a page of the versions of a model, newest first."""
    with db.read() as session:
        _get_model_or_404(session, name)
        statement = select(tables.ModelVersion).where(tables.ModelVersion.model == name)
        if page.after is not None:
            statement = statement.where(tables.ModelVersion.version < page.after_number())
        rows = session.scalars(
            statement.order_by(tables.ModelVersion.version.desc()).limit(page.limit + 1)
        ).all()
        page_rows, cursor = cut(rows, page, lambda row: row.version)
        aliases = _aliases(session, name)
        return ModelVersionPage(
            items=[_version_to_response(row, aliases) for row in page_rows], next_cursor=cursor
        )


def get_version(db: Database, name: str, version: int) -> ModelVersion:
    """Return a version."""
    with db.read() as session:
        return _version_to_response(_get_version_or_404(session, name, version), _aliases(session, name))


def artifact_path(ctx: AppContext, name: str, version: int) -> tuple[Path, Artifact]:
    """Return the local path of the artifact of a version, and its digest and size."""
    with ctx.db.read() as session:
        row = _get_version_or_404(session, name, version)
    return ctx.storage.local(row.artifact_key), _artifact_to_response(row)


def delete_version(ctx: AppContext, name: str, version: int) -> None:
    """Delete a version and its artifact.

    Raises:
        NotFound: there is no such version.
        Conflict: an alias, a router or an unfinished evaluation uses the version.
    """
    with ctx.db.write() as tx:
        # Lock the row of the model first, as `publish` does, so that the two run one after the other.
        tx.session.get(tables.Model, name, with_for_update=True)
        row = _get_version_or_404(tx.session, name, version)
        for alias, number in _aliases(tx.session, name).items():
            if number == version:
                raise Conflict(
                    f"version {version} of {name} has the alias {alias}; move or delete the alias first",
                    code="version_in_use",
                )
        for router in tx.session.scalars(select(tables.Router).where(tables.Router.model == name)):
            if version in (router.config.get("version"), router.config.get("shadow")):
                raise Conflict(
                    f"version {version} of {name} is used by router {router.name}; change the router first",
                    code="version_in_use",
                )
        evaluation_job = tx.session.scalars(
            select(tables.Job.id)
            .join(tables.Evaluation, tables.Evaluation.job_id == tables.Job.id)
            .where(
                tables.Evaluation.model == name,
                tables.Evaluation.version == version,
                tables.Job.state.not_in(FINISHED),
            )
        ).first()
        if evaluation_job is not None:
            raise Conflict(
                f"version {version} of {name} is being evaluated by job {evaluation_job}; wait until it ends",
                code="version_in_use",
            )
        key = row.artifact_key
        tx.session.delete(row)
    ctx.deletion.delete([key])


def import_version(ctx: AppContext, name: str, key: str, idempotency: Idempotency) -> ModelVersion:
    """Publish an uploaded artifact as the next version of a model.

    The whole artifact is verified before the version is inserted. If the import is rejected, or repeats an
    earlier import, the file under ``key`` is deleted.

    Raises:
        Invalid: the file is not an artifact that this release can serve.
        Conflict: the idempotency key was used with another artifact.
    """
    published = False

    def work(tx: Transaction) -> ModelVersion:
        nonlocal published
        number = publishing.publish(tx, new, "if_first")
        published = True
        return _version_to_response(_get_version_or_404(tx.session, name, number), _aliases(tx.session, name))

    try:
        path = ctx.storage.local(key)
        manifest = artifact.read_manifest(path)
        pipeline = artifact.load(path)
        stored = ctx.storage.put(key, path)
        new = NewVersion(
            model=name,
            pipeline=pipeline,
            artifact=stored,
            metrics=manifest.extra.get("metrics") or {},
            warnings=list(manifest.warnings),
            dataset_id=None,
            dataset_sha256=manifest.extra.get("dataset_sha256"),
            training_job_id=None,
            timings={},
        )
        version = idempotency.of(stored.sha256).run(ctx.db, ModelVersion, work)
    except ArtifactError as error:
        ctx.storage.delete(key)
        raise from_learning(error) from error
    except ApiError:
        ctx.storage.delete(key)
        raise
    if not published:  # an earlier request with this idempotency key has published another copy of the file
        ctx.storage.delete(key)
    return version


def artifact_key() -> str:
    """Return a new storage key for an imported artifact."""
    return f"artifacts/{new_id('req')}.covey"


def put_alias(db: Database, name: str, alias: str, body: AliasPut, if_match: str | None) -> Alias:
    """Set an alias to a version; create the alias if it does not exist.

    Raises:
        NotFound: there is no such model or version.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
    """
    with db.write() as tx:
        tx.session.get(tables.Model, name, with_for_update=True)
        _get_version_or_404(tx.session, name, body.version, pointer="/version")
        _check_revision(tx, name, alias, if_match)
        return _alias_to_response(publishing.set_alias(tx, name, alias, body.version))


def delete_alias(db: Database, name: str, alias: str) -> None:
    """Delete an alias.

    Raises:
        NotFound: there is no such model or alias.
        Conflict: a router uses the alias.
    """
    with db.write() as tx:
        # Lock the row of the model first, as `publish` does, so that the two run one after the other.
        tx.session.get(tables.Model, name, with_for_update=True)
        _get_model_or_404(tx.session, name)
        row = tx.session.get(tables.ModelAlias, (name, alias), with_for_update=True)
        if row is None:
            raise NotFound(f"model {name} has no alias {alias}")
        for router in tx.session.scalars(select(tables.Router).where(tables.Router.model == name)):
            if alias == router.config.get("version"):
                raise Conflict(
                    f"alias {alias} of {name} is used by router {router.name}; change the router first",
                    code="alias_in_use",
                )
        tx.session.delete(row)


def resolve(session: Session, name: str, ref: int | str, *, pointer: str = "/version") -> tables.ModelVersion:
    """Return the version with a number, or the version that an alias currently names.

    Args:
        session: a database session.
        name: name of the model.
        ref: number of a version, or name of an alias.
        pointer: JSON pointer of the reference in the request, for the error.

    Raises:
        NotFound: there is no such model, version or alias.
    """
    _get_model_or_404(session, name)
    if isinstance(ref, int):
        return _get_version_or_404(session, name, ref, pointer=pointer)
    alias = session.get(tables.ModelAlias, (name, ref))
    if alias is None:
        known = ", ".join(_aliases(session, name)) or "none"
        message = f"model {name} has no alias {ref}; existing aliases: {known}"
        raise NotFound(message, errors=[(pointer, message)])
    return _get_version_or_404(session, name, alias.version, pointer=pointer)


def _check_revision(tx: Transaction, name: str, alias: str, if_match: str | None) -> None:
    if if_match is None:
        return
    row = tx.session.get(tables.ModelAlias, (name, alias), with_for_update=True)
    current = f'"{row.revision}"' if row is not None else None
    accepted = [tag.strip() for tag in if_match.split(",")]
    if current is None or ("*" not in accepted and current not in accepted):
        raise PreconditionFailed(
            f"alias {alias} of {name} has the ETag {current or 'none'}, not {if_match}; check the alias and "
            "send its current ETag"
        )


def _get_model_or_404(session: Session, name: str) -> tables.Model:
    row = session.get(tables.Model, name)
    if row is None:
        raise NotFound(f"there is no model {name}")
    return row


def _get_version_or_404(
    session: Session, name: str, version: int, pointer: str | None = None
) -> tables.ModelVersion:
    _get_model_or_404(session, name)
    row = session.get(tables.ModelVersion, (name, version))
    if row is None:
        message = f"model {name} has no version {version}"
        raise NotFound(message, errors=[(pointer, message)] if pointer else ())
    return row


def _aliases(session: Session, name: str) -> dict[str, int]:
    rows: Sequence[tables.ModelAlias] = session.scalars(
        select(tables.ModelAlias).where(tables.ModelAlias.model == name).order_by(tables.ModelAlias.alias)
    ).all()
    return {row.alias: row.version for row in rows}


def _model_to_response(session: Session, row: tables.Model) -> Model:
    count = session.scalar(select(func.count()).where(tables.ModelVersion.model == row.name))
    return Model(
        name=row.name,
        created_at=row.created_at,
        versions=count or 0,
        last_version=row.last_version,
        aliases=_aliases(session, row.name),
    )


def _version_to_response(row: tables.ModelVersion, aliases: dict[str, int]) -> ModelVersion:
    fields: dict[str, Any] = {
        **row.description,
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


def _alias_to_response(row: tables.ModelAlias) -> Alias:
    """Convert a row to the response."""
    return Alias(
        model=row.model,
        alias=row.alias,
        version=row.version,
        revision=row.revision,
        updated_at=row.updated_at,
    )
