"""Promote and roll back versions: an alias is set to a version after the version was loaded."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.db import tables
from app.db.session import Database
from app.registry import aliases
from app.registry.queries import get_version_or_404
from app.registry.schemas import Alias, AliasPut
from app.serving.loaded_models import LoadedModels
from app.serving.preloading import load_before_use


def promote(
    db: Database,
    loaded: LoadedModels,
    name: str,
    alias: str,
    body: AliasPut,
    if_match: str | None,
    key_id: str | None,
) -> Alias:
    """Load a version, and set an alias to it; create the alias if it does not exist.

    Raises:
        NotFound: there is no such model or version.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
        Conflict: a router that uses the alias needs probabilities, and the version is not calibrated.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    load_before_use(
        db, loaded, lambda session: get_version_or_404(session, name, body.version, pointer="/version")
    )
    return aliases.put(db, name, alias, body, if_match, key_id)


def roll_back(
    db: Database,
    loaded: LoadedModels,
    name: str,
    alias: str,
    to_version: int | None,
    if_match: str | None,
    key_id: str | None,
) -> Alias:
    """Load an earlier version of an alias, and set the alias back to it.

    Raises:
        NotFound: there is no such model or alias, or the version was deleted.
        Invalid: the alias has never named the version.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
        Conflict: no earlier version exists, or a router that uses the alias needs probabilities, and the
            version is not calibrated.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    number = 0

    def find(session: Session) -> tables.ModelVersion:
        nonlocal number
        version = aliases.find_rollback(session, name, alias, to_version, if_match)
        number = version.version
        return version

    while True:
        load_before_use(db, loaded, find)
        result = aliases.roll_back(
            db, name, alias, to_version, if_match, loaded_version=number, key_id=key_id
        )
        if result is not None:
            return result
