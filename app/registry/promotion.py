"""Promotes versions: an alias is set to a version after the version was loaded."""

from __future__ import annotations

from app.db.session import Database
from app.registry import service
from app.registry.schemas import Alias, AliasPut
from app.serving.catalog_reading import get_version_or_404
from app.serving.loaded_models import LoadedModels
from app.serving.preloading import load_before_use


def promote(
    db: Database, loaded: LoadedModels, name: str, alias: str, body: AliasPut, if_match: str | None
) -> Alias:
    """Load a version, and set an alias to it; create the alias if it does not exist.

    Raises:
        NotFound: there is no such model or version.
        PreconditionFailed: ``if_match`` is not the current revision of the alias.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    load_before_use(
        db, loaded, lambda session: get_version_or_404(session, name, body.version, pointer="/version")
    )
    return service.put_alias(db, name, alias, body, if_match)
