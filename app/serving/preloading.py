"""Load versions before requests need them: before an alias or a router refers to them, and at the start.

The process that changes an alias or a router loads the version before its transaction, so a version that
cannot be loaded is never promoted. The other processes, and changes by workers, follow the snapshot of the
catalog: a process loads what is new before it uses the new snapshot, but waits for it only a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from sqlalchemy.orm import Session

from app.db.session import Database
from app.serving.loaded_models import ArtifactUnavailable, LoadedModels, VersionReference
from app.serving.loaded_version import LoadedVersion
from app.serving.snapshot import ServedVersion, Snapshot, version_references
from app.storage import MissingFileError

START_SECONDS = 10.0
"""How long a process waits at its start for the versions of routers. They continue to load afterwards."""

CHANGE_SECONDS = 0.5
"""How long a process uses the old snapshot while the versions of the new one load."""


def load_before_use(
    db: Database, loaded: LoadedModels, find: Callable[[Session], VersionReference]
) -> LoadedVersion:
    """Load a version, for example because a transaction is about to refer to it.

    Args:
        db: the database.
        loaded: the loaded models.
        find: returns the version, or raises an error if it does not exist.

    Raises:
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the storage is slow. The version continues to load, so a repeated request finds it.
        StorageUnavailableError: the storage is unavailable.
    """
    missing: str | None = None
    while True:
        with db.read() as session:
            version = find(session)
        try:
            return loaded.get(version)
        except MissingFileError as error:
            # The version may have been deleted in the meantime. Then ``find`` raises the error.
            if missing == version.artifact_key:
                raise ArtifactUnavailable(version, "is missing") from error
            missing = version.artifact_key


class Preloader:
    """Load what a new snapshot of the catalog needs.

    Args:
        loaded: the loaded models.
    """

    def __init__(self, loaded: LoadedModels) -> None:
        self._loaded = loaded

    async def before_snapshot(self, old: Snapshot | None, new: Snapshot) -> None:
        """Load versions that requests are likely to ask for, and wait for them for a limited time.

        Args:
            old: the snapshot that requests use; None at the start.
            new: the snapshot that requests will use.
        """
        if old is not None and old.aliases is new.aliases and old.routers is new.routers:
            return
        expected = list(dict.fromkeys(self._expected(old, new)))
        # More versions would replace each other.
        missing = [v for v in expected[: self._loaded.capacity] if not self._loaded.is_loaded(v)]
        loading = [asyncio.wrap_future(future) for future in self._loaded.start(missing)]
        if loading:
            await asyncio.wait(loading, timeout=START_SECONDS if old is None else CHANGE_SECONDS)
        for future in loading:
            # A request for the version gets the error.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _expected(self, old: Snapshot | None, new: Snapshot) -> Iterator[ServedVersion]:
        """Yield the versions of routers, of their shadows, and of aliases whose last version is in memory."""
        configs = [router.config for router in new.routers.values()]
        deciding = [(config, reference) for config in configs for reference in version_references(config)]
        shadows = [(config, config["shadow"]) for config in configs if config.get("shadow") is not None]
        for config, reference in (*deciding, *shadows):
            version = new.version(config["model"], reference)
            if version is not None:
                yield version
        if old is None or old.aliases is new.aliases:
            return
        for key, version in new.aliases.items():
            before = old.aliases.get(key)
            if before is not None and before != version and self._loaded.is_loaded(before):
                yield version
