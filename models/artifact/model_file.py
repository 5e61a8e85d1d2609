"""The saved form of a fitted pipeline: one file of arrays with a manifest, and no code.

The file is a safetensors file (https://github.com/huggingface/safetensors): eight bytes with the length of
a JSON header, the header, and the arrays one after the other. The header's ``__metadata__`` holds the
manifest, a JSON document that says what the model is and gives the SHA-256 of every array, and the
manifest's own SHA-256. Nothing in the file depends on when or where it was written, so saving a pipeline
twice gives the same bytes; the layout follows from the manifest alone, so a file whose header is not byte
for byte what its manifest calls for is refused. Loading maps the arrays read-only from the file.

(The safetensors library reads these files, but copies the arrays, and writes metadata in no fixed order.)
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.sparse import csr_array

from models.arrays import AnyArray
from models.base import State, TrainingSummary
from models.catalog import FeaturesUnion, LearnerUnion, check_features, resolve_decision
from models.data.examples import Kind
from models.decisions import DecisionUnion
from models.errors import ArtifactError
from models.labels import LabelTree
from models.mail import MAIL_VERSION
from models.pipeline import Pipeline
from models.serialization.fsync import fsync_folder

FORMAT_VERSION = 1

MAX_HEADER_BYTES = 64 * 2**20
"""Headers above this are refused unread."""

MAX_BYTES = 8 * 2**30
"""Files above this are neither written nor read."""

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_SOFTWARE = ("covey", "numpy", "scipy", "scikit-learn")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ArrayEntry(_Part):
    """One array of the file."""

    name: str
    dtype: Literal["F64", "F32", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"]
    shape: tuple[Annotated[int, Field(ge=0)], ...] = Field(max_length=8)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def size_bytes(self) -> int:
        """What it takes up in the file."""
        return math.prod(self.shape, start=_DTYPES[self.dtype].itemsize)


class Manifest(_Part):
    """What a saved model says of itself."""

    format: Literal["covey-model"] = "covey-model"
    format_version: Literal[1] = 1
    software: dict[str, str]
    """Versions of what wrote it."""
    kind: Kind
    mail_version: int | None
    labels: list[str] = Field(min_length=1)
    label_tree: dict[str, str] | None
    features: FeaturesUnion
    learner: LearnerUnion
    decision: DecisionUnion
    seed: int
    warnings: list[str]
    facts: dict[str, Any]
    extra: dict[str, Any]
    """What the caller wanted kept with it."""
    arrays: list[ArrayEntry]


@dataclass(frozen=True)
class ArtifactInfo:
    """A file that was written.

    Attributes:
        sha256: of the whole file.
        size_bytes: its size.
    """

    sha256: str
    size_bytes: int


def save(pipeline: Pipeline, path: Path, *, extra: Mapping[str, Any] | None = None) -> ArtifactInfo:
    """Write a fitted pipeline.

    The file is written aside, forced to disk and renamed, so that ``path`` never holds half a model.

    Args:
        pipeline: a fitted pipeline.
        path: where to; replaced if it exists.
        extra: JSON values to keep with it (where it was trained, its measures).

    Raises:
        ArtifactError: the model is larger than ``MAX_BYTES``.
        NotFittedError: the pipeline is not fitted.
    """
    arrays = {name: _saved_array(name, array) for name, array in pipeline.get_state().items()}
    manifest = _manifest(pipeline, arrays, extra or {})
    header = _header(manifest)
    size = len(header) + sum(entry.size_bytes for entry in manifest.arrays)
    if size > MAX_BYTES or len(header) > MAX_HEADER_BYTES:
        raise ArtifactError(f"the model takes {size:,} bytes, more than a file may have ({MAX_BYTES:,})")
    digest = hashlib.sha256()
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(header)
            digest.update(header)
            for entry in manifest.arrays:
                content = _content(arrays[entry.name])
                file.write(content)
                digest.update(content)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)
    return ArtifactInfo(digest.hexdigest(), size)


def load(path: Path, *, verify: bool = True) -> Pipeline:
    """Read a fitted pipeline; its arrays are read-only maps of the file.

    Args:
        path: the file. It may be renamed or deleted while the pipeline lives, but not changed.
        verify: whether to check the arrays' checksums and try the model out. Without, only the manifest is
            checked: for a file whose content the caller has verified before.

    Raises:
        ArtifactError: the file is damaged, foreign, too large, of another version, or says what cannot be.
    """
    with path.open("rb") as file:
        manifest, offset = _read_header(file)
        size = offset + sum(entry.size_bytes for entry in manifest.arrays)
        content = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    state: State = {}
    for entry in manifest.arrays:
        part = content[offset : offset + entry.size_bytes]
        if verify and hashlib.sha256(part).hexdigest() != entry.sha256:
            raise ArtifactError(f"array {entry.name!r} is damaged: its checksum differs")
        try:
            state[entry.name] = np.frombuffer(part, dtype=_DTYPES[entry.dtype]).reshape(entry.shape)
        except ValueError as error:  # nothing, in a shape that is larger than any
            raise ArtifactError(f"array {entry.name!r} cannot be of the shape {entry.shape}") from error
        offset += entry.size_bytes
    return _pipeline(manifest, state, prove=verify)


def read_manifest(path: Path) -> Manifest:
    """What a saved model says of itself; reads the header only.

    Raises:
        ArtifactError: as ``load``, the arrays' content apart.
    """
    with path.open("rb") as file:
        return _read_header(file)[0]


def _manifest(pipeline: Pipeline, arrays: Mapping[str, AnyArray], extra: Mapping[str, Any]) -> Manifest:
    notes = pipeline.summary_
    return Manifest(
        software={
            "python": platform.python_version(),
            **{name: version(name) for name in _SOFTWARE if _installed(name)},
        },
        kind=pipeline.kind_,
        mail_version=pipeline.mail_version_,
        labels=pipeline.labels_,
        label_tree=pipeline.tree_.parents if pipeline.tree_ is not None else None,
        features=pipeline.features.parameters,
        learner=pipeline.learner.validated_parameters(),
        decision=pipeline.decision_,
        seed=pipeline.seed,
        warnings=notes.warnings,
        facts=notes.facts,
        extra=dict(extra),
        arrays=[
            ArrayEntry(
                name=name,
                dtype=_CODES[array.dtype],
                shape=array.shape,
                sha256=hashlib.sha256(_content(array)).hexdigest(),
            )
            # Wide numbers first, so that every array is aligned to its own width.
            for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
        ],
    )


def _installed(name: str) -> bool:
    """Whether a distribution is installed: Covey itself may run from a checkout that is not."""
    return any(distributions(name=name))


def _saved_array(name: str, array: AnyArray) -> AnyArray:
    saved = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if saved.dtype not in _CODES:
        raise TypeError(f"array {name!r} is of {array.dtype}; a saved model holds plain numbers only")
    return saved


def _content(array: AnyArray) -> memoryview:
    return array.reshape(-1).data


def _header(manifest: Manifest) -> bytes:
    """The file up to its arrays, as it follows from the manifest."""
    text = _json(manifest.model_dump(mode="json"))
    described: dict[str, Any] = {
        "__metadata__": {"manifest": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    }
    offset = 0
    for entry in manifest.arrays:
        described[entry.name] = {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "data_offsets": [offset, offset + entry.size_bytes],
        }
        offset += entry.size_bytes
    header = json.dumps(described, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _read_header(file: BinaryIO) -> tuple[Manifest, int]:
    """The manifest, and where the arrays begin; checks the whole of both, and the file's size."""
    total = os.fstat(file.fileno()).st_size
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > total - 8:
        raise ArtifactError("this is not a saved model, or it was cut short")
    if length > MAX_HEADER_BYTES or total > MAX_BYTES:
        raise ArtifactError(f"the file is too large: {total:,} bytes, a header of {length:,}")
    header = file.read(length)
    manifest = _parsed(header)
    expected = _header(manifest)
    if start + header != expected:
        raise ArtifactError("the file's header is not what its manifest calls for")
    size = len(expected) + sum(entry.size_bytes for entry in manifest.arrays)
    if size != total:
        raise ArtifactError(f"the file has {total:,} bytes where its manifest calls for {size:,}")
    return manifest, len(expected)


def _parsed(header: bytes) -> Manifest:
    try:
        metadata = json.loads(header)["__metadata__"]
        text, sha256 = str(metadata["manifest"]), metadata["sha256"]
        if hashlib.sha256(text.encode()).hexdigest() != sha256:
            raise ArtifactError("the manifest is damaged: its checksum differs")
        described = json.loads(text)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError("this is not a saved model: it has no manifest") from error
    try:
        return Manifest.model_validate(described)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        raise ArtifactError(f"the manifest cannot be read at {place}: {first['msg']}") from error


def _pipeline(manifest: Manifest, state: State, *, prove: bool) -> Pipeline:
    if manifest.mail_version not in (None, MAIL_VERSION):
        raise ArtifactError(
            f"the model reads mail by version {manifest.mail_version}, this program by {MAIL_VERSION};"
            " train it again"
        )
    if sorted(set(manifest.labels)) != manifest.labels:
        raise ArtifactError("the labels are not in order, or one is there twice")
    if prove:
        _refuse_non_numbers(state)
    try:
        pipeline = Pipeline.from_parameters(
            manifest.features, manifest.learner, manifest.decision, seed=manifest.seed
        )
        check_features(manifest.features, manifest.learner, manifest.kind)
        resolve_decision(manifest.learner, manifest.decision)
        with np.errstate(over="ignore", invalid="ignore"):
            pipeline.set_state(state)
        pipeline.kind_, pipeline.labels_ = manifest.kind, manifest.labels
        pipeline.tree_ = LabelTree(manifest.label_tree) if manifest.label_tree is not None else None
        pipeline.mail_version_, pipeline.decision_ = manifest.mail_version, manifest.decision
        pipeline.summary_, pipeline.timings_ = TrainingSummary(manifest.warnings, manifest.facts), {}
        sizes = (len(pipeline.thresholds_), pipeline.learner.n_labels_, pipeline.learner.n_features_in_)
        if sizes != (len(manifest.labels), len(manifest.labels), len(pipeline.features.names_)):
            raise ArtifactError("the arrays are not for these labels and features")
        if prove:
            _prove(pipeline, state)
    except ArtifactError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise ArtifactError(f"the arrays are not those of {manifest.learner.algorithm}: {error}") from error
    return pipeline


def _prove(pipeline: Pipeline, state: State) -> None:
    """Refuse a forgery, of which checksums tell nothing.

    Each ``set_state`` has checked types, shapes and indices. Here: no array that nothing asks for, and a
    document with every feature, which uses every array once.
    """
    unknown = state.keys() - pipeline.get_state().keys()
    if unknown:
        raise ArtifactError(f"there are arrays that nothing asks for: {', '.join(sorted(unknown))}")
    everything = csr_array(np.ones((1, pipeline.learner.n_features_in_)))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = pipeline.learner.decision_function(everything)
    if not np.isfinite(scores).all():
        raise ArtifactError("the arrays give scores that are not finite")


def _refuse_non_numbers(state: State) -> None:
    for name, array in state.items():
        flat, step = array.reshape(-1), 2**20  # a few megabytes at a time: an array may be large
        if array.dtype.kind == "f" and not all(
            np.isfinite(flat[start : start + step]).all() for start in range(0, flat.size, step)
        ):
            raise ArtifactError(f"array {name!r} holds NaN or an infinity")
