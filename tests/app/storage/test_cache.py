"""Local copies: as many as fit, those in use always, and never half of one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.storage import cache
from app.storage.cache import LocalCache


def writes(content: bytes, made: list[bytes] | None = None) -> Callable[[Path], None]:
    def download(path: Path) -> None:
        path.write_bytes(content)
        if made is not None:
            made.append(content)

    return download


def sizes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "copies").iterdir())


def test_a_copy_is_made_once(tmp_path: Path) -> None:
    made: list[bytes] = []
    for local in (LocalCache(tmp_path, 1000), LocalCache(tmp_path, 1000)):
        for _ in range(2):
            assert local.get("one", 3, writes(b"abc", made)).read_bytes() == b"abc"
    assert made == [b"abc"]


def test_half_a_download_is_no_copy(tmp_path: Path) -> None:
    local = LocalCache(tmp_path, 1000)
    with pytest.raises(OSError, match="2 bytes came of 3"):
        local.get("one", 3, writes(b"ab"))
    assert list(tmp_path.rglob("*one*")) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert local.get("one", 3, writes(b"abc")).read_bytes() == b"abc"


def test_a_copy_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    LocalCache(tmp_path, 1000).get("one", 3, writes(b"abc")).write_bytes(b"a")
    assert LocalCache(tmp_path, 1000).get("one", 3, writes(b"abc")).read_bytes() == b"abc"


def test_the_copy_that_was_asked_for_longest_ago_makes_room(tmp_path: Path) -> None:
    for age, name in ((30, "old"), (20, "older use, asked again"), (10, "new")):
        # A process of its own, so that nobody holds it afterwards.
        path = _elsewhere(tmp_path, name)
        os.utime(path, (time.time() - age, time.time() - age))
    _elsewhere(tmp_path, "older use, asked again")
    LocalCache(tmp_path, 400).get("next", 150, writes(b"n" * 150))
    names = {path.name for path in (tmp_path / "copies").iterdir()}
    assert names == {"older use, asked again", "new", "next"}
    assert sizes(tmp_path) <= 400


def test_what_a_process_uses_stays_until_the_process_ends(tmp_path: Path) -> None:
    ready, told = os.pipe()
    user = os.fork()
    if user == 0:
        LocalCache(tmp_path, 200).get("used", 100, writes(b"u" * 100))
        os.write(told, b"x")
        signal.pause()
    os.read(ready, 1)
    local = LocalCache(tmp_path, 200)
    local.get("large", 150, writes(b"l" * 150))
    assert (tmp_path / "copies" / "used").exists()
    os.kill(user, signal.SIGKILL)
    os.waitpid(user, 0)
    local.get("next", 50, writes(b"n" * 50))
    assert not (tmp_path / "copies" / "used").exists()
    for descriptor in (ready, told):
        os.close(descriptor)


def test_a_process_holds_only_the_last_that_it_asked_for(tmp_path: Path) -> None:
    local = LocalCache(tmp_path, 100)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(3 * cache.HELD):
        local.get(f"n{number}", 10, writes(b"x" * 10))
        local.get(f"n{number}", 10, writes(b"x" * 10))
    assert len(list(Path("/proc/self/fd").iterdir())) - before == cache.HELD
    assert sizes(tmp_path) == 10 * (cache.HELD + 1)


def test_temporary_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    local = LocalCache(tmp_path, 100)
    left, fresh = tmp_path / "tmp" / "left", tmp_path / "tmp" / "fresh"
    for path in (left, fresh):
        path.write_bytes(b"x")
    ago = time.time() - cache.ABANDONED_SECONDS - 60
    os.utime(left, (ago, ago))
    local.get("one", 3, writes(b"abc"))
    assert not left.exists()
    assert fresh.exists()


def _elsewhere(root: Path, name: str) -> Path:
    child = os.fork()
    if child == 0:
        LocalCache(root, 10_000).get(name, 100, writes(b"c" * 100))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return root / "copies" / name
