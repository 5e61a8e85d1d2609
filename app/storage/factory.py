"""Open the storage that the settings name."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from app.settings import Settings
from app.storage.bucket import BucketStorage
from app.storage.cache import LocalCache
from app.storage.interface import Storage
from app.storage.local import LocalStorage


def open_storage(settings: Settings) -> Storage:
    """Return the storage that the settings name."""
    url = settings.storage_url
    if not url:
        return LocalStorage(settings.data_dir.resolve() / "storage")
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStorage(Path(unquote(parts.path)))
    folder = settings.data_dir.resolve() / "storage-cache"
    return BucketStorage.from_url(url, LocalCache(folder, settings.storage_cache_bytes))
