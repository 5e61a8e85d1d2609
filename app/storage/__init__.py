"""Files: uploads, data sets, checkpoints and artifacts, in a folder or in an S3-compatible bucket."""

from app.storage.bucket import BucketStorage
from app.storage.choosing import open_storage
from app.storage.files import Found, Storage, StorageAwayError, Stored
from app.storage.folder import FolderStorage

__all__ = [
    "BucketStorage",
    "FolderStorage",
    "Found",
    "Storage",
    "StorageAwayError",
    "Stored",
    "open_storage",
]
