"""Creates decompression bombs without ever holding their decompressed content in memory."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
import zlib

import zstandard

MIB = 2**20
GIB = 2**30


def gzip_zeros(n_bytes: int) -> bytes:
    """Return a gzip stream of zeros: one compressed member, repeated."""
    return gzip.compress(bytes(64 * MIB), 9) * (n_bytes // (64 * MIB))


def gzip_twice(content: bytes) -> bytes:
    """Return a gzip stream inside a gzip stream."""
    return gzip.compress(content)


def zstd_zeros(n_bytes: int) -> bytes:
    """Return a zstd stream of zeros: one compressed frame, repeated."""
    return zstandard.compress(bytes(64 * MIB)) * (n_bytes // (64 * MIB))


def one_line(n_bytes: int) -> bytes:
    """Return one JSON line as gzip that stays below the compression ratio limit.

    About 6 KiB of each mebibyte cannot be compressed.
    """
    rng = random.Random(0)  # noqa: S311 - test data
    noise = bytes(
        rng.choice(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") for _ in range(9000)
    )
    part = gzip.compress(noise + b"a" * (MIB - len(noise)), 9)
    assert 64 < MIB / len(part) < 200
    begin, end = gzip.compress(b'{"labels": ["x"], "text": "'), gzip.compress(b'"}\n')
    return begin + part * (n_bytes // MIB) + end


def zip_of_zeros(n_bytes: int) -> bytes:
    """Return a zip with one member of zeros. Its directory states the true size modulo 2³²."""
    block = bytes(64 * MIB)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    repeated = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    times = n_bytes // len(block) - 1
    return _build_zip(b"a/1.eml", first + repeated * times + packer.flush(), n_bytes % 2**32, 1)


def overlapping_zip(members: int, n_bytes: int) -> bytes:
    """Return a zip whose members all share the same compressed bytes, which expand to ``n_bytes`` each."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return _build_zip(b"a/1.eml", packer.compress(bytes(n_bytes)) + packer.flush(), n_bytes, members)


def nested_zip(levels: int) -> bytes:
    """Return a zip that is nested in other zips."""
    content = b"Subject: deep inside\n\nx"
    for _ in range(levels):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/inner.eml", content)
        content = out.getvalue()
    return content


def _build_zip(name: bytes, packed: bytes, size: int, members: int) -> bytes:
    crc = zlib.crc32(bytes(size)) if size < 2**28 else 0
    sizes = crc.to_bytes(4, "little") + len(packed).to_bytes(4, "little") + size.to_bytes(4, "little")
    common = (20).to_bytes(2, "little") + b"\0\0\x08\0\0\0\x21\0" + sizes + len(name).to_bytes(2, "little")
    local = b"PK\x03\x04" + common + b"\0\0" + name
    entry = b"PK\x01\x02\x14\0" + common + bytes(16) + name
    directory = entry * members
    count = (members % 2**16).to_bytes(2, "little")
    start = (len(local) + len(packed)).to_bytes(4, "little")
    end = b"PK\x05\x06\0\0\0\0" + count * 2 + len(directory).to_bytes(4, "little") + start + b"\0\0"
    return local + packed + directory + end
