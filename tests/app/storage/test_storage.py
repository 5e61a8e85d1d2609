"""Storage in a folder and storage in a bucket behave alike."""

from __future__ import annotations

import errno
import hashlib
import os
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bucket
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.settings import Settings
from app.storage import BucketStorage, LocalStorage, Storage, StorageUnavailableError, open_storage

MIB = 1024 * 1024
LARGE = random.Random(0).randbytes(20 * MIB + 7)  # noqa: S311 - test data, not a secret


@pytest.fixture(scope="module")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bucket.BucketServer]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in bucket.CREDENTIALS.items():
            patch.setenv(name, value)
        with bucket.server(tmp_path_factory.mktemp("bucket") / "log") as server:
            yield server


@pytest.fixture(params=["folder", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return f"file://{tmp_path}/a%20folder"
    server: bucket.BucketServer = request.getfixturevalue("buckets")
    return server.create()


@pytest.fixture
def storage(url: str, tmp_path: Path) -> Storage:
    storage = open_storage(Settings(data_dir=tmp_path / "data", storage_url=url))
    storage.initialize()
    return storage


def write(storage: Storage, key: str, content: bytes) -> None:
    with storage.create(key) as file:
        file.write(content)


def test_a_file_is_read_back_as_it_was_written(storage: Storage) -> None:
    with storage.create("uploads/one") as file:
        for start in range(0, len(LARGE), 100_000):
            file.write(LARGE[start : start + 100_000])
    write(storage, "uploads/empty", b"")
    assert storage.local("uploads/one").read_bytes() == LARGE
    assert storage.local("uploads/empty").read_bytes() == b""


def test_put_stores_a_local_file(storage: Storage) -> None:
    for content in (b"some bytes", LARGE):
        key = f"artifacts/{len(content)}.covey"
        with storage.temporary_file(".covey") as path:
            path.write_bytes(content)
            stored = storage.put(key, path)
        assert not path.exists()
        assert (stored.key, stored.size_bytes) == (key, len(content))
        assert stored.sha256 == hashlib.sha256(content).hexdigest()
        assert storage.local(key).read_bytes() == content


@pytest.mark.parametrize("written", [0, 100, 9 * MIB])
def test_a_file_does_not_appear_if_writing_fails(
    storage: Storage, url: str, written: int, request: pytest.FixtureRequest
) -> None:
    def fail() -> None:
        with storage.create("uploads/partial") as file:
            file.write(LARGE[:written])
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        fail()
    with pytest.raises(FileNotFoundError):
        storage.local("uploads/partial")
    assert list(storage.files("uploads")) == []
    if isinstance(storage, BucketStorage):
        server: bucket.BucketServer = request.getfixturevalue("buckets")
        assert server.count_unfinished_uploads(url) == 0


def test_a_check_leaves_no_file_behind(storage: Storage) -> None:
    for _ in range(2):
        storage.check()
    assert list(storage.all_files()) == []


def test_the_check_fails_if_the_bucket_is_missing_or_does_not_respond(
    buckets: bucket.BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.bucket.CHECK_TIMEOUT_SECONDS", 0.2)
    missing = Settings(data_dir=tmp_path, storage_url=buckets.create().replace("covey-test-", "no-such-"))
    with pytest.raises(StorageUnavailableError, match="NoSuchBucket"):
        open_storage(missing).check()
    storage = open_storage(Settings(data_dir=tmp_path, storage_url=buckets.create()))
    buckets.pause()
    try:
        with pytest.raises(StorageUnavailableError, match=r"[Tt]ime"):
            storage.check()
    finally:
        buckets.resume()
    storage.check()


def test_deleting_a_file_twice_is_no_error(storage: Storage) -> None:
    write(storage, "uploads/one", b"1")
    write(storage, "uploads/two", b"2")
    for _ in range(2):
        storage.delete("uploads/one")
    with pytest.raises(FileNotFoundError):
        storage.local("uploads/one")
    assert storage.local("uploads/two").read_bytes() == b"2"


def test_files_are_listed_with_their_modification_times(storage: Storage) -> None:
    keys = ["checkpoints/job_1.1.1.safetensors", "checkpoints/job_1.1.2.safetensors"]
    for key in [*keys, "checkpointsx/other", "datasets/other"]:
        write(storage, key, b"content")
    files = list(storage.files("checkpoints"))
    assert sorted(file.key for file in files) == keys
    for file in files:
        assert abs(file.modified - datetime.now(UTC)) < timedelta(minutes=5)
    assert list(storage.files("nothing")) == []
    assert sorted(file.key for file in storage.all_files()) == [*keys, "checkpointsx/other", "datasets/other"]


@pytest.mark.parametrize(
    "key", ["", "one", "a/b/c", "../covey.db", "uploads/../../x", "uploads/", "/etc/passwd", "UP/x", "a/b\n"]
)
def test_invalid_keys_are_rejected(storage: Storage, key: str) -> None:
    operations: list[Callable[[], object]] = [
        lambda: storage.local(key),
        lambda: storage.delete(key),
        lambda: write(storage, key, b""),
        lambda: storage.put(key, Path("/dev/null")),
    ]
    for operation in operations:
        with pytest.raises(ValueError, match="not a storage key"):
            operation()


OPERATIONS = st.tuples(
    st.sampled_from(["write", "put", "delete"]), st.sampled_from("abc"), st.binary(max_size=50)
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(OPERATIONS, max_size=8))
def test_storage_behaves_like_a_dictionary(
    storage: Storage, operations: list[tuple[str, str, bytes]]
) -> None:
    expected: dict[str, bytes] = {}
    for name in "abc":
        storage.delete(f"uploads/{name}")
    for operation, name, content in operations:
        key = f"uploads/{name}"
        if operation == "delete":
            storage.delete(key)
            expected.pop(key, None)
            continue
        if operation == "write":
            write(storage, key, content)
        else:
            with storage.temporary_file() as path:
                path.write_bytes(content)
                storage.put(key, path)
        expected[key] = content
    assert {file.key: storage.local(file.key).read_bytes() for file in storage.files("uploads")} == expected


def test_a_forked_process_can_use_the_storage_of_its_parent(
    storage: Storage, url: str, tmp_path: Path
) -> None:
    """Job processes do this: they open their own storage after the fork."""
    write(storage, "uploads/one", b"before")
    assert storage.local("uploads/one").read_bytes() == b"before"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            storage_of_child = open_storage(Settings(data_dir=tmp_path / "data", storage_url=url))
            write(storage_of_child, "uploads/two", storage_of_child.local("uploads/one").read_bytes() + LARGE)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storage.local("uploads/two").read_bytes() == b"before" + LARGE


@pytest.mark.parametrize("absent", ["server", "bucket"])
def test_an_unavailable_bucket_raises_an_os_error(
    absent: str, buckets: bucket.BucketServer, tmp_path: Path
) -> None:
    """Its error number tells the job process that the job can be retried."""
    endpoint = buckets.url if absent == "bucket" else "http://127.0.0.1:9"
    url = f"s3://absent/x?endpoint={endpoint}&region=us-east-1"
    unavailable = open_storage(Settings(data_dir=tmp_path, storage_url=url))
    with unavailable.temporary_file() as path:
        path.write_bytes(LARGE)
        operations: list[Callable[[], object]] = [
            lambda: write(unavailable, "uploads/one", LARGE),
            lambda: unavailable.put("uploads/one", path),
            lambda: list(unavailable.files("uploads")),
            lambda: unavailable.delete("uploads/one"),
        ]
        for operation in operations:
            with pytest.raises(StorageUnavailableError) as raised:
                operation()
            assert raised.value.errno == errno.EIO
        assert path.read_bytes() == LARGE


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://key:secret@bucket", "no credentials"),
        ("s3://bucket?endpoint=http://x&secret=y", "can contain endpoint and region, not secret"),
        ("s3:///prefix", "s3://bucket/prefix"),
        ("file://host/folder", "three slashes"),
        ("ftp://host/folder", "must be file:///folder or"),
        ("/folder", "must be file:///folder or"),
    ],
)
def test_an_invalid_url_is_rejected(url: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        Settings(data_dir=tmp_path, storage_url=url)


def test_without_a_url_files_are_in_the_data_folder(tmp_path: Path) -> None:
    storage = open_storage(Settings(data_dir=tmp_path, storage_url=""))
    assert isinstance(storage, LocalStorage)
    storage.initialize()
    write(storage, "uploads/one", b"1")
    assert (tmp_path / "storage" / "uploads" / "one").read_bytes() == b"1"
