"""Find a version by its number or alias and load it, if it is not in memory."""

from __future__ import annotations

from app.serving.loaded_models import ArtifactUnavailable, LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.state import Catalog, ServedVersion
from app.storage import MissingFileError
from app.threads import REQUESTS


async def load_version(
    catalog: Catalog, loaded: LoadedModels, model: str, ref: int | str
) -> tuple[ServedVersion, LoadedVersion]:
    """Return the version with a number or alias, and load it in a thread if it is not in memory.

    Raises:
        NotFound: there is no such model, version or alias.
        ArtifactUnavailable: the file of the version is missing or damaged.
        NotReady: the version is not in memory, and the storage is slow or the database unavailable.
        StorageUnavailableError: the version is not in memory, and the storage is unavailable.
    """
    missing: str | None = None
    while True:
        version = await catalog.resolve(model, ref)
        try:
            found = loaded.loaded(version)
            return version, found if found is not None else await REQUESTS.run(loaded.get, version)
        except MissingFileError as error:
            # Another request may have deleted the version after the snapshot was read. Then the version is
            # gone, or the alias names another one.
            if missing == version.artifact_key:
                raise ArtifactUnavailable(version, "is missing") from error
            missing = version.artifact_key
            catalog.expire()
