"""The local cache keeps entries in use, evicts the least recently used, and never returns a partial file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.storage import cache
from app.storage.cache import LocalCache


def writes(content: bytes, downloads: list[bytes] | None = None) -> Callable[[Path], None]:
    def download(path: Path) -> None:
        path.write_bytes(content)
        if downloads is not None:
            downloads.append(content)

    return download


def size_of_entries(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "copies").iterdir())


def test_a_file_is_downloaded_once(tmp_path: Path) -> None:
    downloads: list[bytes] = []
    for local in (LocalCache(tmp_path, 1000), LocalCache(tmp_path, 1000)):
        for _ in range(2):
            assert local.get("one", 3, writes(b"abc", downloads)).read_bytes() == b"abc"
    assert downloads == [b"abc"]


def test_a_partial_download_is_not_cached(tmp_path: Path) -> None:
    local = LocalCache(tmp_path, 1000)
    with pytest.raises(OSError, match="received 2 of 3 bytes of one"):
        local.get("one", 3, writes(b"ab"))
    assert list(tmp_path.rglob("*one*")) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert local.get("one", 3, writes(b"abc")).read_bytes() == b"abc"


def test_a_truncated_entry_is_downloaded_again(tmp_path: Path) -> None:
    LocalCache(tmp_path, 1000).get("one", 3, writes(b"abc")).write_bytes(b"a")
    assert LocalCache(tmp_path, 1000).get("one", 3, writes(b"abc")).read_bytes() == b"abc"


def test_the_least_recently_used_entry_is_evicted_first(tmp_path: Path) -> None:
    for age, name in ((30, "old"), (20, "older, but used again"), (10, "new")):
        # In another process, so that the entry is unlocked when that process ends.
        path = _get_in_child(tmp_path, name)
        os.utime(path, (time.time() - age, time.time() - age))
    _get_in_child(tmp_path, "older, but used again")
    LocalCache(tmp_path, 400).get("next", 150, writes(b"n" * 150))
    names = {path.name for path in (tmp_path / "copies").iterdir()}
    assert names == {"older, but used again", "new", "next"}
    assert size_of_entries(tmp_path) <= 400


def test_an_entry_in_use_is_kept_until_its_process_ends(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        LocalCache(tmp_path, 200).get("used", 100, writes(b"u" * 100))
        os.write(write_end, b"x")
        signal.pause()
    os.read(read_end, 1)
    local = LocalCache(tmp_path, 200)
    local.get("large", 150, writes(b"l" * 150))
    assert (tmp_path / "copies" / "used").exists()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    local.get("next", 50, writes(b"n" * 50))
    assert not (tmp_path / "copies" / "used").exists()
    for descriptor in (read_end, write_end):
        os.close(descriptor)


def test_a_process_locks_only_its_most_recent_entries(tmp_path: Path) -> None:
    local = LocalCache(tmp_path, 100)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(3 * cache.MAX_LOCKED):
        local.get(f"n{number}", 10, writes(b"x" * 10))
        local.get(f"n{number}", 10, writes(b"x" * 10))
    assert len(list(Path("/proc/self/fd").iterdir())) - before == cache.MAX_LOCKED
    assert size_of_entries(tmp_path) == 10 * (cache.MAX_LOCKED + 1)


def test_temporary_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    local = LocalCache(tmp_path, 100)
    abandoned, fresh = tmp_path / "tmp" / "abandoned", tmp_path / "tmp" / "fresh"
    for path in (abandoned, fresh):
        path.write_bytes(b"x")
    modified = time.time() - cache.ABANDONED_SECONDS - 60
    os.utime(abandoned, (modified, modified))
    local.get("one", 3, writes(b"abc"))
    assert not abandoned.exists()
    assert fresh.exists()


def _get_in_child(root: Path, name: str) -> Path:
    child = os.fork()
    if child == 0:
        LocalCache(root, 10_000).get(name, 100, writes(b"c" * 100))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return root / "copies" / name
