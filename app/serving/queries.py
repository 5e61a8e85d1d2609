"""Read snapshots: keys, aliases, versions and routers as of one moment, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from math import inf

from sqlalchemy import and_, select, tuple_
from sqlalchemy.orm import Session

from app.api.guards import Caller
from app.db import tables
from app.db.revisions import PARTS, Part
from app.db.rows import snapshot as consistent_session
from app.db.session import Database
from app.serving.snapshot import (
    Numbers,
    ServedKey,
    ServedRouter,
    ServedVersion,
    Snapshot,
    version_references,
)

BATCH_SIZE = 500
"""Number of versions that one statement reads by their numbers."""


def read_snapshot(db: Database, previous: Snapshot | None = None, numbers: Numbers = frozenset()) -> Snapshot:
    """Return the snapshot of this moment: the previous one if nothing has changed since.

    Only the parts that have changed are read.

    Args:
        db: the database.
        previous: the previous snapshot.
        numbers: models and numbers of the versions that requests have named by their numbers. The snapshot
            also has those that routers name.
    """
    with consistent_session(db) as session:
        revision = tables.CatalogRevision
        revisions: dict[str, int] = dict(session.execute(select(revision.part, revision.revision)).all())

        def is_same(part: Part) -> bool:
            return previous is not None and previous.revisions.get(part) == revisions.get(part)

        same_keys, same_models, same_routers = map(is_same, PARTS)
        if previous is not None and same_keys and same_models and same_routers:
            if previous.numbers.keys() >= numbers:
                return previous
            numbers |= _numbers_of(previous.routers)
            return replace(previous, numbers=_read_numbers(session, numbers))
        routers = previous.routers if previous and same_routers else _read_routers(session)
        return Snapshot(
            revisions,
            previous.requires_keys if previous and same_keys else _requires_keys(session),
            previous.keys if previous and same_keys else _read_keys(session),
            previous.aliases if previous and same_models else _read_aliases(session),
            routers,
            _read_numbers(session, numbers | _numbers_of(routers)),
        )


def _requires_keys(session: Session) -> bool:
    return bool(session.scalar(select(tables.AuthenticationState.required)))


def _read_keys(session: Session) -> dict[str, ServedKey]:
    key = tables.ApiKey
    keys: dict[str, ServedKey] = {}
    for id_, name, scopes, expires_at, digest, previous_digest, previous_expires_at in session.execute(
        select(
            key.id,
            key.name,
            key.scopes,
            key.expires_at,
            key.secret_sha256,
            key.previous_secret_sha256,
            key.previous_secret_expires_at,
        )
    ):
        caller = Caller(id_, name, tuple(scopes))
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


def _read_numbers(session: Session, numbers: Numbers) -> dict[tuple[str, int], ServedVersion]:
    version = tables.ModelVersion
    found: dict[tuple[str, int], ServedVersion] = {}
    remaining = iter(numbers)
    while batch := list(islice(remaining, BATCH_SIZE)):
        for model, number, artifact_key in session.execute(
            select(version.model, version.version, version.artifact_key).where(
                tuple_(version.model, version.version).in_(batch)
            )
        ):
            found[model, number] = ServedVersion(model, number, artifact_key)
    return found


def _numbers_of(routers: Mapping[str, ServedRouter]) -> Numbers:
    """Return the versions that routers name by their numbers."""
    return frozenset(
        (router.config["model"], reference)
        for router in routers.values()
        for reference in (*version_references(router.config), router.config.get("shadow"))
        if isinstance(reference, int)
    )


def _read_routers(session: Session) -> dict[str, ServedRouter]:
    router = tables.Router
    return {
        name: ServedRouter(id_, name, config)
        for id_, name, config in session.execute(select(router.id, router.name, router.config))
    }
