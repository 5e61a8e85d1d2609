"""Packs a folder of mail as a zip while it is sent: neither the zip nor a message is in memory as a whole."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_CHUNK_BYTES = 256 * 1024


def total_size(folder: Path) -> int:
    """Return the number of bytes of all files in a folder."""
    return sum(path.stat().st_size for path in _files(folder))


def zip_folder(folder: Path, count: Callable[[int], None]) -> Generator[bytes]:
    """Yield the bytes of a zip of a folder.

    Args:
        folder: contains a folder for each label, or mailboxes.
        count: receives the number of bytes of files that were packed.
    """
    sink = _Sink()
    with ZipFile(sink, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for path in _files(folder):
            name = path.relative_to(folder).as_posix()
            info = ZipInfo.from_file(path, name, strict_timestamps=False)
            info.compress_type = ZIP_DEFLATED
            with path.open("rb") as source, archive.open(info, "w") as target:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
                    count(len(chunk))
                    if sink.n_bytes >= _CHUNK_BYTES:
                        yield sink.take()
    yield sink.take()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


class _Sink(io.RawIOBase):
    """A file that cannot seek, from which the written bytes are taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.n_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        part = bytes(data)  # type: ignore[call-overload]
        self._parts.append(part)
        self.n_bytes += len(part)
        return len(part)

    def take(self) -> bytes:
        content = b"".join(self._parts)
        self._parts, self.n_bytes = [], 0
        return content
