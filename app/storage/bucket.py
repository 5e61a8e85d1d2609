"""Storage in a bucket with the S3 protocol. Files that are read are cached locally.

The client library is boto3. It uploads in parts and aborts the upload if a part fails. It also works in
forked processes, unlike clients that run threads in native code (one of them hung in every forked process).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import parse_qsl, urlsplit

from app.db import open_sessions
from app.storage.cache import LocalCache
from app.storage.interface import (
    FileInfo,
    MissingFileError,
    StorageState,
    StorageUnavailableError,
    StoredFile,
    check_same_bytes,
    validate_key,
)

if TYPE_CHECKING:
    from boto3.s3.transfer import TransferConfig
    from mypy_boto3_s3.client import S3Client

MIB = 1024 * 1024
PART_BYTES = 8 * MIB
"""Size of the parts of an upload. The S3 protocol allows 10,000 parts, so a file has at most 80 GiB."""

CHECK_KEY = "checks/ready"
"""Key to which checks write. ``all_files`` omits it."""

CHECK_TIMEOUT_SECONDS = 2

MAX_CONCURRENT_PARTS = 4
"""Number of parts of one upload or download that are transferred at the same time, and kept in memory."""


class BucketStorage:
    """Files in a bucket. Credentials come from the usual environment variables (``AWS_…``).

    Args:
        bucket: name of the bucket, which must exist.
        prefix: prefix of every key; may be empty.
        endpoint: address of the server. None: AWS.
        region: region of the bucket. None: the region that the environment names.
        cache: local cache of files that are read.
    """

    # Requests to buckets cost money, so checks are rare.
    check_seconds = 10.0

    def __init__(
        self, bucket: str, prefix: str, *, endpoint: str | None, region: str | None, cache: LocalCache
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._endpoint = endpoint
        self._region = region
        self._cache = cache
        self._lock = threading.Lock()
        self._transfer_client: S3Client | None = None
        self._check_client: S3Client | None = None

    @classmethod
    def from_url(cls, url: str, cache: LocalCache) -> BucketStorage:
        """Return the storage for ``s3://bucket/prefix?endpoint=…&region=…``, which the settings check."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        return cls(
            parts.netloc,
            parts.path.strip("/"),
            endpoint=options.get("endpoint"),
            region=options.get("region"),
            cache=cache,
        )

    def initialize(self, *, must_contain_files: bool = False) -> None:  # noqa: ARG002 - see below
        """Check that the bucket exists. It needs no marker, because an absent bucket does not look empty.

        Raises:
            StorageUnavailableError: the bucket does not exist, or does not respond.
        """
        with _convert_errors():
            self._client_for_checks().head_bucket(Bucket=self._bucket)

    def is_initialized(self) -> bool:
        """Return true; see ``initialize``."""
        return True

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """Open a new file for writing. Its content is uploaded in parts while it is written.

        Raises:
            StorageUnavailableError: the upload failed.
        """
        open_sessions.refuse_if_any("a call to the storage")
        name = self._name(key)
        read_end, write_end = os.pipe()
        reader = _PipeReader(read_end)
        with ThreadPoolExecutor(1, thread_name_prefix="upload") as thread:
            upload = thread.submit(self._upload, name, reader)
            try:
                with os.fdopen(write_end, "wb", buffering=MIB) as file:
                    yield file
                    file.flush()
                    reader.complete = True
            except BrokenPipeError:
                upload.result()  # raises the error for which the upload stopped reading
                raise
            except BaseException:
                upload.exception()  # waits until the upload is aborted
                raise
            upload.result()

    def put(self, key: str, path: Path) -> StoredFile:
        """Store a complete local file under a key. The local file is not moved.

        Raises:
            StorageUnavailableError: the upload failed.
        """
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        with _convert_errors():
            self._client().upload_file(str(path), self._bucket, self._name(key), Config=_transfer())
        return StoredFile(key, sha256, path.stat().st_size)

    def local(self, key: str) -> Path:
        """Return the path of the file in the local cache. It is not evicted while this process uses it.

        Raises:
            MissingFileError: the file does not exist.
            StorageUnavailableError: the bucket does not respond or does not exist.
        """
        name = self._name(key)
        tag, size = self._head(key)
        digest = hashlib.sha256(f"{self._endpoint}\n{self._bucket}\n{name}\n{tag}".encode()).hexdigest()[:16]

        def download(path: Path) -> None:
            with _convert_errors():
                self._client().download_file(self._bucket, name, str(path), Config=_transfer())

        with _convert_errors():
            return self._cache.get(f"{digest}.{key.replace('/', '.')}", size, download)

    def size(self, key: str) -> int:
        """Return the size of a file in bytes.

        Raises:
            MissingFileError: the file does not exist.
            StorageUnavailableError: the bucket does not respond or does not exist.
        """
        return self._head(key)[1]

    def delete(self, key: str) -> None:
        """Delete a file. It is no error if the file does not exist."""
        with _convert_errors():
            self._client().delete_object(Bucket=self._bucket, Key=self._name(key))

    def files(self, folder: str) -> Iterator[FileInfo]:
        """List the files whose keys begin with ``<folder>/``.

        Files that are created or deleted during the listing may or may not be included.
        """
        return self._list(self._name(f"{folder}/x").removesuffix("x"))

    def days(self, folder: str) -> list[str]:
        """Return the folders of days in a folder, such as ``messages/2026-11-30``, the oldest first."""
        prefix = self._name(f"{folder}/x").removesuffix("x")
        pages = self._client().get_paginator("list_objects_v2")
        with _convert_errors():
            found = [
                common["Prefix"].removeprefix(prefix).rstrip("/")
                for page in pages.paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
                for common in page.get("CommonPrefixes", [])
            ]
        return sorted(f"{folder}/{day}" for day in found)

    def all_files(self) -> Iterator[FileInfo]:
        """List all files. Files that are created or deleted at the same time may or may not be included."""
        files = self._list(f"{self._prefix}/" if self._prefix else "")
        return (file for file in files if file.key != CHECK_KEY)

    def temporary_file(self, suffix: str = "") -> AbstractContextManager[Path]:
        """Return a path on the disk of the local cache for a file that is removed when the block ends."""
        return self._cache.temporary_file(suffix)

    def check(self) -> StorageState:
        """Write a few bytes and read them back, with short timeouts. Return the state of the storage.

        Raises:
            StorageUnavailableError: the bucket is not readable and writable now.
        """
        name, written = self._name(CHECK_KEY), b"covey"
        with _convert_errors():
            client = self._client_for_checks()
            client.put_object(Bucket=self._bucket, Key=name, Body=written)
            response = client.get_object(Bucket=self._bucket, Key=name)
            read = response["Body"].read()
        check_same_bytes(written, read)
        return StorageState(response["LastModified"])

    def _head(self, key: str) -> tuple[str, int]:
        """Return the tag and the size of a file."""
        with _convert_errors():
            try:
                head = self._client().head_object(Bucket=self._bucket, Key=self._name(key))
            except self._client().exceptions.ClientError as error:
                if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") != 404:
                    raise
                # The response does not tell whether the file or the whole bucket is missing.
                self._client().head_bucket(Bucket=self._bucket)
                raise MissingFileError(key) from error
        return head["ETag"], head["ContentLength"]

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{validate_key(key)}" if self._prefix else validate_key(key)

    def _list(self, start: str) -> Iterator[FileInfo]:
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=start)
        with _convert_errors():
            for page in pages:
                for entry in page.get("Contents", []):
                    key = entry["Key"].removeprefix(f"{self._prefix}/")
                    yield FileInfo(key, entry["LastModified"])

    def _upload(self, name: str, reader: _PipeReader) -> None:
        # If the upload fails, the pipe must be closed, or the writer would wait for its reader forever.
        with reader.file, _convert_errors():
            content = cast("IO[Any]", reader)
            self._client().upload_fileobj(content, self._bucket, name, Config=_transfer())

    def _client(self) -> S3Client:
        """Return the client. It is created on first use, in the process that uses it."""
        with self._lock:
            if self._transfer_client is None:
                self._transfer_client = self._new_client(connect_timeout=5, read_timeout=30, attempts=4)
            return self._transfer_client

    def _client_for_checks(self) -> S3Client:
        """Return a client with short timeouts and no retries."""
        with self._lock:
            if self._check_client is None:
                self._check_client = self._new_client(
                    connect_timeout=CHECK_TIMEOUT_SECONDS, read_timeout=CHECK_TIMEOUT_SECONDS, attempts=1
                )
            return self._check_client

    def _new_client(self, *, connect_timeout: int, read_timeout: int, attempts: int) -> S3Client:
        # The import takes a third of a second. A service whose storage is a folder does not need it.
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        return boto3.session.Session().client(
            "s3",
            endpoint_url=self._endpoint,
            region_name=self._region,
            config=Config(
                connect_timeout=connect_timeout,
                read_timeout=read_timeout,
                retries={"mode": "standard", "total_max_attempts": attempts},
                s3={"addressing_style": "path" if self._endpoint else "auto"},
                # Some servers other than AWS do not support checksums that follow the content.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )


class _AbandonedError(Exception):
    """The writer of the file failed before the file was complete."""


class _PipeReader:
    """A file object that the upload reads from. It raises an error if the writer fails.

    Args:
        descriptor: the reading end of a pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self.file = os.fdopen(descriptor, "rb", buffering=0)
        self.complete = False

    def read(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes, fewer at the end of the file, or all of them if negative."""
        content = bytearray()
        while size < 0 or len(content) < size:
            chunk = self.file.read(min(MIB, size - len(content)) if size >= 0 else MIB)
            if not chunk:
                if not self.complete:
                    raise _AbandonedError
                break
            content += chunk
        return bytes(content)


def _transfer() -> TransferConfig:
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - see _new_client

    config = TransferConfig(
        multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=MAX_CONCURRENT_PARTS
    )
    config.max_in_memory_upload_chunks = MAX_CONCURRENT_PARTS
    return config


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Refuse the call inside a transaction, and raise errors of boto3 and of the cache as storage errors."""
    from boto3.exceptions import Boto3Error  # noqa: PLC0415 - see _new_client
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    open_sessions.refuse_if_any("a call to the storage")
    try:
        yield
    except (StorageUnavailableError, MissingFileError):
        raise
    except (ClientError, BotoCoreError, Boto3Error, OSError) as error:
        raise StorageUnavailableError(str(error)) from error
