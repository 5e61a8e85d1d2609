"""What one file may hold at most; the defaults of the service's settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IngestLimits:
    """Caps that keep the reading of any file, however hostile, in bounded memory and disk.

    Attributes:
        record_bytes: bytes of one record: a line, a row or a message.
        examples: examples of a data set.
        labels: distinct labels of a data set, ancestors included.
        features: distinct feature names of a data set.
        name_length: characters of a label, a feature name or an id.
        decompressed_bytes: bytes of the file after decompression, all members of a zip together.
        ratio: bytes after decompression for each byte before; looked at after the first 16 MiB.
        zip_members: members of a zip.
    """

    record_bytes: int = 16 * 2**20
    examples: int = 5_000_000
    labels: int = 100_000
    features: int = 1_000_000
    name_length: int = 512
    decompressed_bytes: int = 16 * 2**30
    ratio: int = 200
    zip_members: int = 200_000
