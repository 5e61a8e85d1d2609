"""Saved models: one file with the arrays of a fitted pipeline and a manifest, without code.

The file is a safetensors file (https://github.com/huggingface/safetensors). It consists of the length of a
JSON header in eight bytes, the header, and the arrays. The ``__metadata__`` of the header contains the
manifest and its SHA-256. The manifest is a JSON document that describes the model and lists the SHA-256 of
every array. The content does not depend on the time or place of writing, so saving a pipeline twice produces
identical files.

This package does not use the safetensors library, because the library copies the arrays and writes metadata
in no fixed order. The library can read the files, however.
"""

from models.artifact.header import MAX_BYTES, MAX_HEADER_BYTES
from models.artifact.loading import load, read_manifest
from models.artifact.manifest import FORMAT_VERSION, ArrayEntry, Manifest
from models.artifact.saving import ArtifactInfo, save
from models.artifact.verification import check_saved

__all__ = [
    "FORMAT_VERSION",
    "MAX_BYTES",
    "MAX_HEADER_BYTES",
    "ArrayEntry",
    "ArtifactInfo",
    "Manifest",
    "check_saved",
    "load",
    "read_manifest",
    "save",
]
