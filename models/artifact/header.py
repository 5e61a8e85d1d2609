"""The header of a saved model, which contains its manifest.

The content of the header follows from the text of the manifest alone. A file is therefore rejected unless its
header is byte for byte the one that belongs to this text, and the text is canonical JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, BinaryIO

from pydantic import ValidationError

from models.artifact.json_values import check_json
from models.artifact.manifest import Manifest
from models.errors import ArtifactError

MAX_HEADER_BYTES = 64 * 2**20
"""Maximum size of a header."""

MAX_BYTES = 8 * 2**30
"""Maximum size of a file."""


def encode_header(manifest: Manifest) -> bytes:
    """Return the content of the file before its arrays."""
    return _encode_header(_canonical_json(manifest.model_dump(mode="json")), manifest)


def _encode_header(text: str, manifest: Manifest) -> bytes:
    header: dict[str, Any] = {
        "__metadata__": {"manifest": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    }
    offset = 0
    for entry in manifest.arrays:
        header[entry.name] = {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "data_offsets": [offset, offset + entry.size_bytes],
        }
        offset += entry.size_bytes
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded


def read_header(file: BinaryIO) -> tuple[Manifest, int]:
    """Read the header of a file, and check it and the size of the file.

    Returns:
        the manifest, and the offset of the first array.

    Raises:
        ArtifactError: the file is too large, the header is damaged, or the file has the wrong size.
    """
    total = os.fstat(file.fileno()).st_size
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > total - 8:
        raise ArtifactError("the file is not a saved model, or it is truncated")
    check_size(length, total)
    content = file.read(length)
    text, manifest = _decode_manifest(content)
    expected = _encode_header(text, manifest)
    if start + content != expected:
        raise ArtifactError("the header of the file does not match its manifest")
    size = len(expected) + sum(entry.size_bytes for entry in manifest.arrays)
    if size != total:
        raise ArtifactError(f"the file has {total:,} bytes, but its manifest describes {size:,} bytes")
    return manifest, len(expected)


def check_size(header: int, total: int) -> None:
    """Check the size of a file in bytes.

    Raises:
        ArtifactError: the header or the file is too large.
    """
    if header > MAX_HEADER_BYTES or total > MAX_BYTES:
        raise ArtifactError(
            f"the model is too large: {total:,} bytes (limit {MAX_BYTES:,}) with a header of {header:,} bytes"
            f" (limit {MAX_HEADER_BYTES:,})"
        )


def _canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _decode_manifest(header: bytes) -> tuple[str, Manifest]:
    """Return the text of the manifest and the manifest."""
    try:
        metadata = json.loads(header)["__metadata__"]
        text, sha256 = str(metadata["manifest"]), metadata["sha256"]
        if hashlib.sha256(text.encode()).hexdigest() != sha256:
            raise ArtifactError("the manifest is damaged: its checksum is wrong")
        values = json.loads(text)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError("the file is not a saved model: it has no manifest") from error
    check_json(values)
    if _canonical_json(values) != text:
        raise ArtifactError("the manifest is not in its canonical form")
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "/".join(str(part) for part in first["loc"])
        raise ArtifactError(f"the manifest is invalid at {pointer}: {first['msg']}") from error
    if _canonical_json(manifest.model_dump(mode="json")) != text:
        # A default would replace a parameter that is missing, and the model would predict something else.
        raise ArtifactError("the manifest lacks fields; train the model again")
    return text, manifest
