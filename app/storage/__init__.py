"""Files: uploads, data sets, checkpoints and artifacts, in a folder or in an S3-compatible bucket."""

from app.storage.bucket import BucketStorage
from app.storage.factory import open_storage
from app.storage.interface import Found, Storage, StorageUnavailableError, StoredFile
from app.storage.local import LocalStorage

__all__ = [
    "BucketStorage",
    "Found",
    "LocalStorage",
    "Storage",
    "StorageUnavailableError",
    "StoredFile",
    "open_storage",
]
