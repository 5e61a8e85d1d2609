"""Return, set, roll back and delete aliases, and list their history."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.api.etags import accepts
from app.api.paging import Page, ascending, newest_first
from app.db import tables
from app.db.deadlocks import retry_deadlocks
from app.db.session import Database, Transaction
from app.errors import Conflict, Invalid, NotFound, PreconditionFailed
from app.registry import alias_changes, publishing, router_requirements
from app.registry.alias_changes import Cause
from app.registry.queries import get_model_or_404, get_version_or_404
from app.registry.schemas import Alias, AliasChange, AliasHistoryPage, AliasPage, AliasPut
from app.registry.service import find_router, lock_model
from app.users.queries import names_of

_LIKE_A_VERSION = re.compile(r"(?:v|ver|version)?[-_]?[0-9]+|latest|newest", re.IGNORECASE)
"""Aliases that a reader would take for the number of a version, or for the last one."""


def page(db: Database, name: str, page: Page) -> AliasPage:
    """Return a page of the aliases of a model, by name.

    Raises:
        NotFound: there is no such model.
    """
    alias = tables.ModelAlias
    with db.read() as session:
        get_model_or_404(session, name)
        rows, cursor = ascending(session, select(alias).where(alias.model == name), alias.alias, page)
        return AliasPage(items=[_to_response(row) for row in rows], next_cursor=cursor)


def get(db: Database, name: str, alias: str) -> Alias:
    """Return an alias.

    Raises:
        NotFound: there is no such model or alias.
    """
    with db.read() as session:
        return _to_response(_get_or_404(session, name, alias))


def page_history(db: Database, name: str, alias: str, page: Page) -> AliasHistoryPage:
    """Return a page of the changes of an alias, newest first, also if the alias was deleted.

    Raises:
        NotFound: there is no such model, or it has never had the alias.
    """
    change = tables.AliasChange
    with db.read() as session:
        statement = select(change).where(change.model == name, change.alias == alias)
        rows, cursor = newest_first(session, statement, change.revision, page)
        if not rows and page.after is None:  # the alias is older than its history, or does not exist
            _get_or_404(session, name, alias)
        names = names_of(session, (row.key_id for row in rows))
        return AliasHistoryPage(items=[_change_to_response(row, names) for row in rows], next_cursor=cursor)


@retry_deadlocks
def put(
    db: Database, name: str, alias: str, body: AliasPut, if_match: str | None, key_id: str | None = None
) -> Alias:
    """Set an alias to a version; create the alias if it does not exist.

    Raises:
        Invalid: the alias looks like a version.
        NotFound: there is no such model or version.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
        Conflict: a router that uses the alias needs probabilities, and the version is not calibrated.
    """
    if _LIKE_A_VERSION.fullmatch(alias) is not None:
        message = f"the alias {alias} looks like a version; use a word that says what it is for, such as live"
        raise Invalid(message, errors=[("/path/alias", message)])
    with db.write() as tx:
        lock_model(tx, name)
        get_version_or_404(tx.session, name, body.version, pointer="/version")
        _check_revision(tx.session, name, alias, if_match)
        return _move(tx, name, alias, body.version, Cause("put", key_id))


def find_rollback(
    session: Session, name: str, alias: str, to_version: int | None, if_match: str | None
) -> tables.ModelVersion:
    """Return the version that a rollback of an alias goes back to.

    Args:
        session: a database session.
        name: name of the model.
        alias: name of the alias.
        to_version: number of a version that the alias has named; None for the one before the current one.
        if_match: the revision that the alias must have; None if it can have any.

    Raises:
        NotFound: there is no such model or alias, or the version was deleted.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
        Invalid: the alias has never named the version.
        Conflict: no earlier version of the alias exists.
    """
    row = _get_or_404(session, name, alias)
    _check_revision(session, name, alias, if_match)
    if to_version is None:
        previous = alias_changes.find_previous_version(session, name, alias)
        if previous is None:
            raise Conflict(
                f"alias {alias} of {name} names version {row.version}, and its history has no earlier "
                "version that still exists; set the alias to another version instead",
                code="nothing_to_roll_back",
            )
        return get_version_or_404(session, name, previous)
    version = get_version_or_404(session, name, to_version, pointer="/to_version")
    if not alias_changes.has_named(session, name, alias, to_version):
        message = (
            f"alias {alias} of {name} has never named version {to_version}, so it cannot be rolled back "
            "to it; set the alias to the version instead"
        )
        raise Invalid(message, errors=[("/to_version", message)])
    return version


@retry_deadlocks
def roll_back(
    db: Database,
    name: str,
    alias: str,
    to_version: int | None,
    if_match: str | None,
    *,
    loaded_version: int,
    key_id: str | None,
) -> Alias | None:
    """Set an alias back to an earlier version, unless the version is not the one that was loaded for it.

    Args:
        db: the database.
        name: name of the model.
        alias: name of the alias.
        to_version: see ``find_rollback``.
        if_match: see ``find_rollback``.
        loaded_version: number of the version that was loaded.
        key_id: the API key of the request.

    Returns:
        the alias; None if it has changed since ``loaded_version`` was loaded.

    Raises:
        NotFound: see ``find_rollback``.
        PreconditionFailed: see ``find_rollback``.
        Invalid: see ``find_rollback``.
        Conflict: see ``find_rollback`` and ``put``.
    """
    with db.write() as tx:
        lock_model(tx, name)
        version = find_rollback(tx.session, name, alias, to_version, if_match)
        if version.version != loaded_version:
            return None
        return _move(tx, name, alias, version.version, Cause("rollback", key_id))


@retry_deadlocks
def delete(
    db: Database, name: str, alias: str, if_match: str | None = None, key_id: str | None = None
) -> None:
    """Delete an alias. Its history is kept.

    Raises:
        NotFound: there is no such model or alias.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
        Conflict: a router uses the alias.
    """
    with db.write() as tx:
        lock_model(tx, name)
        row = _get_or_404(tx.session, name, alias)
        _check_revision(tx.session, name, alias, if_match)
        used_by = or_(router_requirements.decides_by(name, alias), tables.Router.shadow_alias == alias)
        if (router := find_router(tx, name, used_by)) is not None:
            raise Conflict(
                f"alias {alias} of {name} is used by router {router}; change the router first",
                code="alias_in_use",
            )
        row.revision += 1
        alias_changes.record(tx, row, before=row.version, after=None, cause=Cause("delete", key_id))
        tx.session.delete(row)


def etag(alias: Alias) -> str:
    """Return the ``ETag`` of an alias."""
    return f'"{alias.revision}"'


def _move(tx: Transaction, name: str, alias: str, number: int, cause: Cause) -> Alias:
    """Set an alias to an existing version, unless a router could not use the version."""
    version = get_version_or_404(tx.session, name, number)
    router_requirements.check(tx, version, alias)
    return _to_response(publishing.set_alias(tx, name, alias, number, cause))


def _get_or_404(session: Session, name: str, alias: str) -> tables.ModelAlias:
    row = session.get(tables.ModelAlias, (name, alias))
    if row is None:
        get_model_or_404(session, name)
        raise NotFound(f"model {name} has no alias {alias}")
    return row


def _check_revision(session: Session, name: str, alias: str, if_match: str | None) -> None:
    if if_match is None:
        return
    row = session.get(tables.ModelAlias, (name, alias))
    current = etag(_to_response(row)) if row is not None else None
    if not accepts(if_match, current):
        raise PreconditionFailed(
            f"alias {alias} of {name} has the ETag {current or 'none'}, not {if_match}; check the alias and "
            "send its current ETag"
        )


def _to_response(row: tables.ModelAlias) -> Alias:
    return Alias(
        model=row.model,
        alias=row.alias,
        version=row.version,
        revision=row.revision,
        updated_at=row.updated_at,
    )


def _change_to_response(row: tables.AliasChange, names: Mapping[str, str]) -> AliasChange:
    return AliasChange.model_validate(
        {
            "revision": row.revision,
            "from_version": row.from_version,
            "to_version": row.to_version,
            "reason": row.reason,
            "actor_id": row.key_id,
            "actor_name": names.get(row.key_id or ""),
            "training_job_id": row.job_id,
            "changed_at": row.changed_at,
        }
    )
