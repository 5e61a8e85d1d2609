"""Storage in a bucket that speaks the S3 protocol, with local copies of what is read.

The client library is boto3: it streams uploads in parts and takes back what was begun when one fails, and a
forked process can use it, which clients with threads of their own in native code cannot (one tried here
hung in every child).
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

from app.storage.cache import LocalCache
from app.storage.interface import Found, StorageUnavailableError, StoredFile, checked, expect_same

if TYPE_CHECKING:
    from boto3.s3.transfer import TransferConfig
    from mypy_boto3_s3.client import S3Client

MIB = 1024 * 1024
PART_BYTES = 8 * MIB
"""Size of the parts of an upload; a bucket takes 10,000 of them, so a file has 80 GiB at most."""

CHECK = "checks/ready"
"""Where a check writes, the same bytes each time; it is none of the files."""

CHECK_TIMEOUT_SECONDS = 2

PARTS_AT_ONCE = 4
"""Parts of one upload or download that are under way, and in memory."""


class BucketStorage:
    """Files in a bucket. Credentials come from the environment that S3 clients share (``AWS_…``).

    Args:
        bucket: its name; it must exist.
        prefix: what comes before every key; may be empty.
        endpoint: address of the server; that of AWS where None.
        region: where the bucket is; as the environment says where None.
        copies: local copies of what is read.
    """

    # Requests to buckets cost money.
    check_seconds = 10.0

    def __init__(
        self, bucket: str, prefix: str, *, endpoint: str | None, region: str | None, copies: LocalCache
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._endpoint = endpoint
        self._region = region
        self._copies = copies
        self._lock = threading.Lock()
        self._made: S3Client | None = None
        self._made_quick: S3Client | None = None

    @classmethod
    def from_url(cls, url: str, copies: LocalCache) -> BucketStorage:
        """Storage for a URL, ``s3://bucket/prefix?endpoint=…&region=…``.

        Raises:
            ValueError: the URL cannot be used, and why.
        """
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        if parts.scheme != "s3" or not parts.netloc:
            raise ValueError(f"a bucket's URL is s3://bucket/prefix, not {url!r}")
        if "@" in parts.netloc:
            raise ValueError("a bucket's URL holds no credentials; set AWS_ACCESS_KEY_ID and the like")
        if unknown := options.keys() - {"endpoint", "region"}:
            raise ValueError(f"a bucket's URL takes endpoint and region, not {', '.join(sorted(unknown))}")
        return cls(
            parts.netloc,
            parts.path.strip("/"),
            endpoint=options.get("endpoint"),
            region=options.get("region"),
            copies=copies,
        )

    @contextmanager
    def create(self, key: str) -> Iterator[BinaryIO]:
        """A new file to write; what is written goes to the bucket at once, in parts.

        Raises:
            StorageUnavailableError: the bucket did not take it.
        """
        name = self._name(key)
        reading, writing = os.pipe()
        incoming = _Incoming(reading)
        with ThreadPoolExecutor(1, thread_name_prefix="upload") as thread:
            upload = thread.submit(self._upload, name, incoming)
            try:
                with os.fdopen(writing, "wb", buffering=MIB) as file:
                    yield file
                    file.flush()
                    incoming.complete = True
            except BrokenPipeError:
                upload.result()  # why nobody reads on
                raise
            except BaseException:
                upload.exception()  # waits until the bucket has let go of what was sent
                raise
            upload.result()

    def put(self, key: str, path: Path) -> StoredFile:
        """Store a finished local file under a key; the local file stays.

        Raises:
            StorageUnavailableError: the bucket did not take it.
        """
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        with _told():
            self._client().upload_file(str(path), self._bucket, self._name(key), Config=_transfer())
        return StoredFile(key, sha256, path.stat().st_size)

    def local(self, key: str) -> Path:
        """The path of a local copy, which stays while this process uses it.

        Raises:
            FileNotFoundError: there is no such file.
            StorageUnavailableError: the bucket does not answer.
        """
        name = self._name(key)
        with _told(key):
            head = self._client().head_object(Bucket=self._bucket, Key=name)
        tag, size = head["ETag"], head["ContentLength"]
        digest = hashlib.sha256(f"{self._endpoint}\n{self._bucket}\n{name}\n{tag}".encode()).hexdigest()[:16]

        def download(path: Path) -> None:
            with _told(key):
                self._client().download_file(self._bucket, name, str(path), Config=_transfer())

        return self._copies.get(f"{digest}.{key.replace('/', '.')}", size, download)

    def delete(self, key: str) -> None:
        """Remove a file; one that is gone already is no error."""
        with _told():
            self._client().delete_object(Bucket=self._bucket, Key=self._name(key))

    def files(self, folder: str) -> Iterator[Found]:
        """The files whose keys begin with ``<folder>/``; of those that come or go meanwhile, any."""
        return self._listed(self._name(f"{folder}/x").removesuffix("x"))

    def all_files(self) -> Iterator[Found]:
        """All files; of those that come or go meanwhile, any."""
        found = self._listed(f"{self._prefix}/" if self._prefix else "")
        return (file for file in found if file.key != CHECK)

    def temporary_file(self, suffix: str = "") -> AbstractContextManager[Path]:
        """A path for a temporary file beside the local copies, removed when the block ends."""
        return self._copies.temporary_file(suffix)

    def check(self) -> None:
        """Write a few bytes and read them back, in seconds or not at all.

        Raises:
            StorageUnavailableError: that cannot be done now.
        """
        name, written = self._name(CHECK), b"covey"
        with _told():
            client = self._quick_client()
            client.put_object(Bucket=self._bucket, Key=name, Body=written)
            read = client.get_object(Bucket=self._bucket, Key=name)["Body"].read()
        expect_same(written, read)

    def _name(self, key: str) -> str:
        return f"{self._prefix}/{checked(key)}" if self._prefix else checked(key)

    def _listed(self, start: str) -> Iterator[Found]:
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=start)
        with _told():
            for page in pages:
                for entry in page.get("Contents", []):
                    key = entry["Key"].removeprefix(f"{self._prefix}/")
                    yield Found(key, entry["LastModified"])

    def _upload(self, name: str, incoming: _Incoming) -> None:
        # Closed whatever happens: a writer that still writes must not wait for a reader that is gone.
        with incoming.file, _told():
            content = cast("IO[Any]", incoming)
            self._client().upload_fileobj(content, self._bucket, name, Config=_transfer())

    def _client(self) -> S3Client:
        """The client; made when it is needed first, in the process that needs it."""
        with self._lock:
            if self._made is None:
                self._made = self._new_client(connect_timeout=5, read_timeout=30, attempts=4)
            return self._made

    def _quick_client(self) -> S3Client:
        """A client that gives up soon."""
        with self._lock:
            if self._made_quick is None:
                self._made_quick = self._new_client(
                    connect_timeout=CHECK_TIMEOUT_SECONDS, read_timeout=CHECK_TIMEOUT_SECONDS, attempts=1
                )
            return self._made_quick

    def _new_client(self, *, connect_timeout: int, read_timeout: int, attempts: int) -> S3Client:
        # Loading it takes a third of a second, which a service with a folder need not wait for.
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
                # Servers other than AWS's stumble over checksums that trail the content.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )


class _AbandonedError(Exception):
    """Whoever wrote the file gave up."""


class _Incoming:
    """What is being written, as a file to upload from; it ends with an error if it was not all written.

    Args:
        descriptor: the reading end of a pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self.file = os.fdopen(descriptor, "rb", buffering=0)
        self.complete = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes; as many as were asked for, but for the end."""
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
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - see _client

    config = TransferConfig(
        multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=PARTS_AT_ONCE
    )
    config.max_in_memory_upload_chunks = PARTS_AT_ONCE
    return config


@contextmanager
def _told(key: str | None = None) -> Iterator[None]:
    """The library's errors as those of storage."""
    from boto3.exceptions import Boto3Error  # noqa: PLC0415 - see _client
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except ClientError as error:
        if key is not None and error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
            raise FileNotFoundError(key) from error
        raise StorageUnavailableError(str(error)) from error
    except (BotoCoreError, Boto3Error) as error:
        raise StorageUnavailableError(str(error)) from error
