"""Saves a fitted pipeline."""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distributions, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from models.arrays import AnyArray
from models.artifact.header import check_size, encode_header
from models.artifact.manifest import DTYPES, ArrayEntry, Manifest, RuleEntry, TargetEntry
from models.pipeline import Pipeline
from models.serialization.fsync import fsync_folder

_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_SOFTWARE = ("covey", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class ArtifactInfo:
    """A written file.

    Attributes:
        sha256: SHA-256 of the whole file.
        size_bytes: size of the file.
    """

    sha256: str
    size_bytes: int


def save(
    pipeline: Pipeline, path: str | PathLike[str], *, extra: Mapping[str, Any] | None = None
) -> ArtifactInfo:
    """Save a fitted pipeline.

    The model is written to a temporary file, flushed to disk and renamed, so that ``path`` never contains an
    incomplete model.

    Args:
        pipeline: a fitted pipeline.
        path: the file; replaced if it exists.
        extra: JSON values to store with the model.

    Raises:
        ArtifactError: the model is too large.
        NotFittedError: the pipeline is not fitted.
        OSError: the file cannot be written.

    >>> from models.artifact import load
    >>> from tempfile import TemporaryDirectory
    >>> from models.baselines.naive_bayes import NaiveBayes
    >>> from models.features import TextFeatures
    >>> pipeline = Pipeline(TextFeatures(), NaiveBayes()).fit(["a bill", "a parcel"], [("money",), ()])
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(pipeline, Path(folder, "model"))
    ...     load(Path(folder, "model")).labels_
    ['money']
    """
    path = Path(path)
    arrays = {name: _little_endian(name, array) for name, array in pipeline.get_state().items()}
    manifest = _create_manifest(pipeline, arrays, extra or {})
    header = encode_header(manifest)
    size = len(header) + sum(entry.size_bytes for entry in manifest.arrays)
    check_size(len(header), size)
    digest = hashlib.sha256()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)
    return ArtifactInfo(digest.hexdigest(), size)


def _create_manifest(
    pipeline: Pipeline, arrays: Mapping[str, AnyArray], extra: Mapping[str, Any]
) -> Manifest:
    return Manifest(
        software={
            "python": platform.python_version(),
            **{name: version(name) for name in _SOFTWARE if _is_installed(name)},
        },
        kind=pipeline.kind_,
        mail_version=pipeline.mail_version_,
        labels=pipeline.labels_,
        target=TargetEntry.of(pipeline.target_),
        label_tree=pipeline.tree_.parents if pipeline.tree_ is not None else None,
        features=pipeline.features_.parameters,
        learner=pipeline.learner_.validated_parameters(),
        decision=pipeline.decision_,
        rule=RuleEntry(
            at_least=pipeline.rule_.at_least,
            at_most=pipeline.rule_.at_most,
            adds_ancestors=pipeline.rule_.parents is not None,
        ),
        decision_report=pipeline.decision_report_,
        reference=pipeline.reference_,
        seed=pipeline.seed,
        warnings=pipeline.summary_.warnings,
        facts=pipeline.summary_.facts,
        extra=dict(extra),
        arrays=[
            ArrayEntry(
                name=name,
                dtype=_DTYPE_NAMES[array.dtype],
                shape=array.shape,
                sha256=hashlib.sha256(_content(array)).hexdigest(),
            )
            # Descending item size aligns every array to its item size.
            for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
        ],
    )


def _is_installed(name: str) -> bool:
    """Return whether a distribution is installed. Covey can run from a checkout that is not."""
    return any(distributions(name=name))


def _little_endian(name: str, array: AnyArray) -> AnyArray:
    converted = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if converted.dtype not in _DTYPE_NAMES:
        raise TypeError(f"array {name!r} has the type {array.dtype}, which a saved model cannot contain")
    return converted


def _content(array: AnyArray) -> memoryview:
    return array.reshape(-1).data
