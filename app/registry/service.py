"""What happens to models, versions and aliases."""

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
from app.registry.schemas import Alias, AliasPut, Model, ModelPage, ModelVersion, ModelVersionPage
from models import artifact
from models.errors import ArtifactError


def page_models(db: Database, page: Page) -> ModelPage:
    """A page of models, by name."""
    with db.read() as session:
        rows, cursor = by_name(session, select(tables.Model), tables.Model.name, page)
        return ModelPage(items=[_shown_model(session, row) for row in rows], next_cursor=cursor)


def get_model(db: Database, name: str) -> Model:
    """One model."""
    with db.read() as session:
        return _shown_model(session, _model(session, name))


def delete_model(ctx: AppContext, name: str) -> None:
    """Delete a model with all its versions, unless a router or a job needs it."""
    with ctx.db.write() as tx:
        _model(tx.session, name)
        router = tx.session.scalars(select(tables.Router.name).where(tables.Router.model == name)).first()
        if router is not None:
            raise Conflict(f"model {name} is used by router {router}; delete that first", code="model_in_use")
        job = tx.session.scalars(
            select(tables.Job.id).where(tables.Job.model == name, tables.Job.state.not_in(FINISHED))
        ).first()
        if job is not None:
            raise Conflict(
                f"model {name} is needed by job {job}; cancel it or wait for its end",
                code="model_in_use",
            )
        mine = tables.ModelVersion.model == name
        keys = tx.session.scalars(select(tables.ModelVersion.artifact_key).where(mine)).all()
        tx.session.execute(delete_rows(tables.ModelAlias).where(tables.ModelAlias.model == name))
        tx.session.execute(delete_rows(tables.ModelVersion).where(mine))
        tx.session.execute(delete_rows(tables.Model).where(tables.Model.name == name))
    for key in keys:
        ctx.storage.delete(key)


def page_versions(db: Database, name: str, page: Page) -> ModelVersionPage:
    """A page of a model's versions, the newest first."""
    with db.read() as session:
        _model(session, name)
        statement = select(tables.ModelVersion).where(tables.ModelVersion.model == name)
        if page.after is not None:
            statement = statement.where(tables.ModelVersion.version < page.after_number())
        rows = session.scalars(
            statement.order_by(tables.ModelVersion.version.desc()).limit(page.limit + 1)
        ).all()
        shown_rows, cursor = cut(rows, page, lambda row: row.version)
        aliases = _aliases(session, name)
        return ModelVersionPage(items=[_shown(row, aliases) for row in shown_rows], next_cursor=cursor)


def get_version(db: Database, name: str, version: int) -> ModelVersion:
    """One version."""
    with db.read() as session:
        return _shown(_version(session, name, version), _aliases(session, name))


def artifact_path(ctx: AppContext, name: str, version: int) -> tuple[Path, ModelVersion]:
    """The file of a version, to be sent."""
    with ctx.db.read() as session:
        row = _version(session, name, version)
        return ctx.storage.local(row.artifact_key), _shown(row, _aliases(session, name))


def delete_version(ctx: AppContext, name: str, version: int) -> None:
    """Delete a version, unless an alias or a router names it."""
    with ctx.db.write() as tx:
        # The model's row is locked first, as when a version is published.
        tx.session.get(tables.Model, name, with_for_update=True)
        row = _version(tx.session, name, version)
        for alias, number in _aliases(tx.session, name).items():
            if number == version:
                raise Conflict(
                    f"version {version} of {name} is named by the alias {alias}; move the alias first",
                    code="version_in_use",
                )
        for router in tx.session.scalars(select(tables.Router).where(tables.Router.model == name)):
            if version in (router.config.get("version"), router.config.get("shadow")):
                raise Conflict(
                    f"version {version} of {name} is used by router {router.name}; change that first",
                    code="version_in_use",
                )
        measuring = tx.session.scalars(
            select(tables.Job.id)
            .join(tables.Evaluation, tables.Evaluation.job_id == tables.Job.id)
            .where(
                tables.Evaluation.model == name,
                tables.Evaluation.version == version,
                tables.Job.state.not_in(FINISHED),
            )
        ).first()
        if measuring is not None:
            raise Conflict(
                f"version {version} of {name} is being measured by job {measuring}; wait for its end",
                code="version_in_use",
            )
        key = row.artifact_key
        tx.session.delete(row)
    ctx.storage.delete(key)


def import_version(ctx: AppContext, name: str, key: str, idempotency: Idempotency) -> ModelVersion:
    """Make an uploaded artifact the next version of a model; it is checked whole before anything is kept.

    The file under ``key`` is the version's from then on, or gone.

    Raises:
        Invalid: it is not an artifact that can be served here.
        Conflict: the request's idempotency key came with another artifact before.
    """
    published = False

    def work(tx: Transaction) -> ModelVersion:
        nonlocal published
        number = publishing.publish(tx, new, "if_first")
        published = True
        return _shown(_version(tx.session, name, number), _aliases(tx.session, name))

    try:
        path = ctx.storage.local(key)
        manifest = artifact.read_manifest(path)
        pipeline = artifact.load(path)
        saved = ctx.storage.put(key, path)
        new = NewVersion(
            model=name,
            pipeline=pipeline,
            artifact=saved,
            metrics=manifest.extra.get("metrics") or {},
            warnings=list(manifest.warnings),
            dataset_id=None,
            dataset_sha256=manifest.extra.get("dataset_sha256"),
            training_job_id=None,
            timings={},
        )
        made = idempotency.of(saved.sha256).run(ctx.db, ModelVersion, work)
    except ArtifactError as error:
        ctx.storage.delete(key)
        raise from_learning(error) from error
    except ApiError:
        ctx.storage.delete(key)
        raise
    if not published:  # it was before, from another copy of the file
        ctx.storage.delete(key)
    return made


def artifact_key() -> str:
    """A fresh key for an imported artifact."""
    return f"artifacts/{new_id('req')}.covey"


def put_alias(db: Database, name: str, alias: str, body: AliasPut, if_match: str | None) -> Alias:
    """Make an alias name a version.

    Raises:
        PreconditionFailed: ``if_match`` is another revision than the alias has.
    """
    with db.write() as tx:
        tx.session.get(tables.Model, name, with_for_update=True)
        _version(tx.session, name, body.version, pointer="/version")
        _check_revision(tx, name, alias, if_match)
        return shown_alias(publishing.set_alias(tx, name, alias, body.version))


def delete_alias(db: Database, name: str, alias: str) -> None:
    """Delete an alias, unless a router serves by it."""
    with db.write() as tx:
        # The model's row is locked first, as when a version is published.
        tx.session.get(tables.Model, name, with_for_update=True)
        _model(tx.session, name)
        row = tx.session.get(tables.ModelAlias, (name, alias), with_for_update=True)
        if row is None:
            raise NotFound(f"model {name} has no alias {alias}")
        for router in tx.session.scalars(select(tables.Router).where(tables.Router.model == name)):
            if alias == router.config.get("version"):
                raise Conflict(
                    f"alias {alias} of {name} is used by router {router.name}; change that first",
                    code="alias_in_use",
                )
        tx.session.delete(row)


def resolve(session: Session, name: str, ref: int | str, *, pointer: str = "/version") -> tables.ModelVersion:
    """The version that a number or an alias names now.

    Raises:
        NotFound: no such model, version or alias.
    """
    _model(session, name)
    if isinstance(ref, int):
        return _version(session, name, ref, pointer=pointer)
    alias = session.get(tables.ModelAlias, (name, ref))
    if alias is None:
        known = ", ".join(_aliases(session, name)) or "none yet"
        message = f"model {name} has no alias {ref}; its aliases: {known}"
        raise NotFound(message, errors=[(pointer, message)])
    return _version(session, name, alias.version, pointer=pointer)


def _check_revision(tx: Transaction, name: str, alias: str, if_match: str | None) -> None:
    if if_match is None:
        return
    row = tx.session.get(tables.ModelAlias, (name, alias), with_for_update=True)
    current = f'"{row.revision}"' if row is not None else None
    wanted = [tag.strip() for tag in if_match.split(",")]
    if current is None or ("*" not in wanted and current not in wanted):
        raise PreconditionFailed(
            f"alias {alias} of {name} is at revision {current or 'none'}, not {if_match}; read it again"
        )


def _model(session: Session, name: str) -> tables.Model:
    row = session.get(tables.Model, name)
    if row is None:
        raise NotFound(f"there is no model {name}")
    return row


def _version(session: Session, name: str, version: int, pointer: str | None = None) -> tables.ModelVersion:
    _model(session, name)
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


def _shown_model(session: Session, row: tables.Model) -> Model:
    count = session.scalar(select(func.count()).where(tables.ModelVersion.model == row.name))
    return Model(
        name=row.name,
        created_at=row.created_at,
        versions=count or 0,
        last_version=row.last_version,
        aliases=_aliases(session, row.name),
    )


def _shown(row: tables.ModelVersion, aliases: dict[str, int]) -> ModelVersion:
    fields: dict[str, Any] = {
        **row.description,
        "model": row.model,
        "version": row.version,
        "aliases": [alias for alias, number in aliases.items() if number == row.version],
        "dataset_id": row.dataset_id,
        "training_job_id": row.training_job_id,
        "artifact": {"sha256": row.artifact_sha256, "size_bytes": row.artifact_bytes},
        "created_at": row.created_at,
    }
    return ModelVersion.model_validate(fields)


def shown_alias(row: tables.ModelAlias) -> Alias:
    """A row as clients see it."""
    return Alias(
        model=row.model,
        alias=row.alias,
        version=row.version,
        revision=row.revision,
        updated_at=row.updated_at,
    )
