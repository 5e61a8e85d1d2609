"""Creates and replaces routers whose versions are in memory."""

from __future__ import annotations

from contextlib import suppress

from app.db.session import Database
from app.http.errors import NotFound
from app.routing import service
from app.routing.schemas import Router, RouterPut
from app.serving.catalog_reading import resolve
from app.serving.loaded_models import LoadedModels
from app.serving.preloading import load_before_use


def put(db: Database, loaded: LoadedModels, name: str, body: RouterPut) -> Router:
    """Load the version of a router, then create or replace the router.

    The shadow version is loaded when the router has changed. No message waits for it.

    Raises:
        Invalid: the model, version or shadow does not exist, or cannot read e-mail.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    with suppress(NotFound):  # the transaction looks again, and its error names the field
        load_before_use(db, loaded, lambda session: resolve(session, body.model, body.version))
    return service.put(db, name, body)
