"""Storage of files (uploads, data sets, checkpoints, artifacts) in a folder or an S3-compatible bucket."""

from app.storage.bucket import BucketStorage
from app.storage.factory import open_storage
from app.storage.interface import (
    FileInfo,
    MissingFileError,
    Storage,
    StorageState,
    StorageUnavailableError,
    StoredFile,
)
from app.storage.local import LocalStorage

__all__ = [
    "BucketStorage",
    "FileInfo",
    "LocalStorage",
    "MissingFileError",
    "Storage",
    "StorageState",
    "StorageUnavailableError",
    "StoredFile",
    "open_storage",
]
