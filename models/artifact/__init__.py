"""The saved form of a fitted pipeline: one file of arrays with a manifest, and no code."""

from models.artifact.model_file import (
    FORMAT_VERSION,
    MAX_BYTES,
    MAX_HEADER_BYTES,
    ArrayEntry,
    ArtifactInfo,
    Manifest,
    load,
    read_manifest,
    save,
)

__all__ = [
    "FORMAT_VERSION",
    "MAX_BYTES",
    "MAX_HEADER_BYTES",
    "ArrayEntry",
    "ArtifactInfo",
    "Manifest",
    "load",
    "read_manifest",
    "save",
]
