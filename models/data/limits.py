"""Limits on the content of one file.

Settings of the service replace the numbers of examples and labels, the characters of a text, and the bytes of
the file. The defaults here equal the defaults of these settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from models.labels.tree import MAX_DEPTH


@dataclass(frozen=True)
class IngestLimits:
    """Limits that bound the memory and disk that reading takes, even for a malicious file.

    Attributes:
        record_bytes: bytes of one record: a line, a row or a message.
        examples: examples of a data set.
        labels: distinct labels of a data set, including ancestors in the label tree.
        tree_depth: levels of the label tree.
        features: distinct feature names of a data set.
        text_chars: characters of a text.
        name_length: characters of a label, a feature name or an id.
        decompressed_bytes: bytes of the file after decompression; for a zip, of all members together.
        compression_ratio: decompressed bytes for each compressed byte; checked after the first 16 MiB.
        zip_members: members of a zip.
    """

    record_bytes: int = 32 * 2**20
    examples: int = 10_000_000
    labels: int = 20_000
    tree_depth: int = MAX_DEPTH
    features: int = 5_000_000
    text_chars: int = 1_000_000
    name_length: int = 512
    decompressed_bytes: int = 32 * 2**30
    compression_ratio: int = 200
    zip_members: int = 200_000
