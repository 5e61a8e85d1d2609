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
    """Return the storage that the settings name.

    Raises:
        ValueError: the storage URL is invalid.
    """
    url = settings.storage_url
    if not url:
        return LocalStorage(settings.data_dir.resolve() / "storage")
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return LocalStorage(Path(unquote(parts.path)))
    if parts.scheme == "s3":
        folder = settings.data_dir.resolve() / "storage-cache"
        return BucketStorage.from_url(url, LocalCache(folder, settings.storage_cache_bytes))
    raise ValueError(f"COVEY_STORAGE_URL must be file:///folder or s3://bucket/prefix, not {url!r}")
