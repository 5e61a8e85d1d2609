"""Reads snapshots from the database, and resolves references to versions."""

from __future__ import annotations

from datetime import datetime
from math import inf

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from app.db import tables
from app.db.revisions import Part
from app.db.rows import snapshot as consistent_session
from app.db.session import Database
from app.http.errors import NotFound
from app.http.guards import Caller
from app.serving.snapshot import ServedKey, ServedRouter, ServedVersion, Snapshot


def read_snapshot(db: Database, previous: Snapshot | None = None) -> Snapshot:
    """Return the snapshot of this moment: the previous one if nothing has changed since.

    Only the parts that have changed are read.
    """
    with consistent_session(db) as session:
        revision = tables.CatalogRevision
        revisions: dict[str, int] = dict(session.execute(select(revision.part, revision.revision)).all())
        if previous is None:
            return Snapshot(
                revisions,
                _requires_keys(session),
                _read_keys(session),
                _read_aliases(session),
                _read_routers(session),
            )
        if previous.revisions == revisions:
            return previous

        def is_same(part: Part) -> bool:
            return previous.revisions.get(part) == revisions.get(part)

        same_keys, same_models = is_same("keys"), is_same("models")
        return Snapshot(
            revisions,
            previous.requires_keys if same_keys else _requires_keys(session),
            previous.keys if same_keys else _read_keys(session),
            previous.aliases if same_models else _read_aliases(session),
            previous.routers if is_same("routers") else _read_routers(session),
            previous.numbers if same_models else {},
        )


def _requires_keys(session: Session) -> bool:
    return bool(session.scalar(select(tables.AuthenticationState.required)))


def _read_keys(session: Session) -> dict[str, ServedKey]:
    key = tables.ApiKey
    keys: dict[str, ServedKey] = {}
    for id_, scopes, expires_at, digest, previous_digest, previous_expires_at in session.execute(
        select(
            key.id,
            key.scopes,
            key.expires_at,
            key.secret_sha256,
            key.previous_secret_sha256,
            key.previous_secret_expires_at,
        )
    ):
        caller = Caller(id_, tuple(scopes))
        end = _seconds(expires_at)
        keys[digest] = ServedKey(caller, end)
        if previous_digest is not None and previous_expires_at is not None:
            keys[previous_digest] = ServedKey(caller, min(end, _seconds(previous_expires_at)))
    return keys


def _seconds(moment: datetime | None) -> float:
    return inf if moment is None else moment.timestamp()


def _read_aliases(session: Session) -> dict[tuple[str, str], ServedVersion]:
    alias, version = tables.ModelAlias, tables.ModelVersion
    return {
        (model, name): ServedVersion(model, number, artifact_key)
        for model, name, number, artifact_key in session.execute(
            select(alias.model, alias.alias, alias.version, version.artifact_key).join(
                version, and_(version.model == alias.model, version.version == alias.version)
            )
        )
    }


def _read_routers(session: Session) -> dict[str, ServedRouter]:
    router = tables.Router
    return {
        name: ServedRouter(id_, name, config)
        for id_, name, config in session.execute(select(router.id, router.name, router.config))
    }


def read_version(db: Database, name: str, ref: int | str, *, pointer: str = "/version") -> ServedVersion:
    """Return the version with a number, or the version that an alias currently names.

    Raises:
        NotFound: as ``resolve``.
    """
    with db.read() as session:
        row = resolve(session, name, ref, pointer=pointer)
        return ServedVersion(row.model, row.version, row.artifact_key)


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
    if isinstance(ref, int):
        return get_version_or_404(session, name, ref, pointer=pointer)
    # One statement: the alias cannot move to another version, and its version be deleted, in between.
    version = session.scalars(
        select(tables.ModelVersion)
        .join(
            tables.ModelAlias,
            and_(
                tables.ModelAlias.model == tables.ModelVersion.model,
                tables.ModelAlias.version == tables.ModelVersion.version,
            ),
        )
        .where(tables.ModelAlias.model == name, tables.ModelAlias.alias == ref)
    ).one_or_none()
    if version is not None:
        return version
    get_model_or_404(session, name)
    known = ", ".join(read_alias_numbers(session, name)) or "none"
    message = f"model {name} has no alias {ref}; existing aliases: {known}"
    raise NotFound(message, errors=[(pointer, message)])


def get_model_or_404(session: Session, name: str) -> tables.Model:
    """Return a model.

    Raises:
        NotFound: there is no such model.
    """
    row = session.get(tables.Model, name)
    if row is None:
        raise no_model(name)
    return row


def no_model(name: str) -> NotFound:
    """Return the error for a model that does not exist."""
    return NotFound(f"there is no model {name}")


def get_version_or_404(
    session: Session, name: str, version: int, pointer: str | None = None
) -> tables.ModelVersion:
    """Return a version.

    Args:
        session: a database session.
        name: name of the model.
        version: number of the version.
        pointer: JSON pointer of the number in the request, if the body contains it.

    Raises:
        NotFound: there is no such model or version.
    """
    row = session.get(tables.ModelVersion, (name, version))
    if row is None:
        get_model_or_404(session, name)
        message = f"model {name} has no version {version}"
        raise NotFound(message, errors=[(pointer, message)] if pointer else ())
    return row


def read_alias_numbers(session: Session, name: str) -> dict[str, int]:
    """Return the aliases of a model in order, each with the number of its version."""
    alias = tables.ModelAlias
    statement = select(alias.alias, alias.version).where(alias.model == name).order_by(alias.alias)
    return dict(session.execute(statement).all())
