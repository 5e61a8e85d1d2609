"""Loads saved models, which may be damaged or forged."""

from __future__ import annotations

import hashlib
import mmap
from os import PathLike
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Floats
from models.artifact.header import read_header
from models.artifact.manifest import DTYPES, Manifest
from models.base import State, TrainingSummary
from models.catalog import check_features, resolve_decision
from models.decisions import LabelSetRule
from models.errors import ArtifactError
from models.features import NumericFeatures
from models.features.documents import restore_columns
from models.labels import LabelTree
from models.mail import MAIL_VERSION
from models.pipeline import Pipeline


def load(path: str | PathLike[str], *, verify: bool = True) -> Pipeline:
    """Load a fitted pipeline. Its arrays are read-only memory maps of the file.

    Args:
        path: the file. While the pipeline is in use, the file may be renamed or deleted, but not changed.
        verify: whether to check the checksums of the arrays and to compute a prediction. If false, only the
            manifest is checked; use this for a file that has been verified before.

    Raises:
        ArtifactError: the file is damaged, inconsistent, too large, not a saved model, or of another version.

    >>> from models.artifact import save
    >>> from tempfile import TemporaryDirectory
    >>> from models.baselines.naive_bayes import NaiveBayes
    >>> from models.features import TextFeatures
    >>> pipeline = Pipeline(TextFeatures(), NaiveBayes()).fit(["a bill", "a parcel"], [("money",), ()])
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(pipeline, Path(folder, "model"))
    ...     load(Path(folder, "model")).labels_
    ['money']
    """
    with Path(path).open("rb") as file:
        manifest, offset = read_header(file)
        size = offset + sum(entry.size_bytes for entry in manifest.arrays)
        content = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    state: State = {}
    for entry in manifest.arrays:
        part = content[offset : offset + entry.size_bytes]
        if verify and hashlib.sha256(part).hexdigest() != entry.sha256:
            raise ArtifactError(f"array {entry.name!r} is damaged: its checksum is wrong")
        try:
            state[entry.name] = np.frombuffer(part, dtype=DTYPES[entry.dtype]).reshape(entry.shape)
        except ValueError as error:  # an empty array whose other dimensions are too large
            raise ArtifactError(f"array {entry.name!r} has the invalid shape {entry.shape}") from error
        offset += entry.size_bytes
    return _restore(manifest, state, verify=verify)


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a saved model, without its arrays.

    Raises:
        ArtifactError: the header is invalid or the file has the wrong size.
    """
    with path.open("rb") as file:
        return read_header(file)[0]


def _restore(manifest: Manifest, state: State, *, verify: bool) -> Pipeline:
    if manifest.mail_version not in (None, MAIL_VERSION):
        raise ArtifactError(
            f"the model uses version {manifest.mail_version} of the mail parser, but this program has version"
            f" {MAIL_VERSION}; train it again"
        )
    if sorted(set(manifest.labels)) != manifest.labels:
        raise ArtifactError("the labels are unsorted or repeated")
    if verify:
        _check_finite(state)
    try:
        pipeline = Pipeline.from_parameters(
            manifest.features, manifest.learner, manifest.decision, seed=manifest.seed
        )
        check_features(manifest.features, manifest.learner, manifest.kind)
        resolve_decision(manifest.learner, manifest.decision)
        with np.errstate(over="ignore", invalid="ignore"):
            pipeline.set_state(state)
        pipeline.kind_, pipeline.labels_ = manifest.kind, manifest.labels
        pipeline.target_ = manifest.target.target(manifest.labels)
        pipeline.classes_ = pipeline.target_.classes_among(manifest.labels)
        pipeline.tree_ = LabelTree(manifest.label_tree) if manifest.label_tree is not None else None
        pipeline.mail_version_, pipeline.decision_ = manifest.mail_version, manifest.decision
        pipeline.decision_report_ = manifest.decision_report
        pipeline.reference_ = manifest.reference
        pipeline.summary_, pipeline.timings_ = TrainingSummary(manifest.warnings, manifest.facts), {}
        sizes = (len(pipeline.thresholds_), pipeline.learner_.n_labels_, pipeline.learner_.n_features_in_)
        if sizes != (len(manifest.labels), len(manifest.labels), len(pipeline.features_.names_)):
            raise ArtifactError("the sizes of the arrays do not match the labels and features")
        if isinstance(pipeline.features_, NumericFeatures):
            restore_columns(pipeline, pipeline.features_.base_names_)
        pipeline.rule_ = _restore_rule(manifest, pipeline.tree_, pipeline.thresholds_)
        if verify:
            _check_usable(pipeline, state)
    except ArtifactError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise ArtifactError(f"the arrays are not valid for {manifest.learner.algorithm}: {error}") from error
    return pipeline


def _restore_rule(manifest: Manifest, tree: LabelTree | None, thresholds: Floats) -> LabelSetRule:
    stored = manifest.rule
    parents = None
    if stored.adds_ancestors:
        if tree is None:
            raise ArtifactError("the decision adds ancestors of labels, but the model has no label tree")
        parents = tree.parent_indices(manifest.labels)
    return LabelSetRule(thresholds, stored.at_least, stored.at_most, parents)


def _check_usable(pipeline: Pipeline, state: State) -> None:
    """Detect forged arrays, which have correct checksums.

    ``set_state`` has checked types, shapes and indices. This function checks that every array is used, and
    that the scores of an example with all features, which depend on every array, are finite.

    Raises:
        ArtifactError: a check fails.
    """
    unknown = state.keys() - pipeline.get_state().keys()
    if unknown:
        raise ArtifactError(f"the model does not use these arrays: {', '.join(sorted(unknown))}")
    all_features = csr_array(np.ones((1, pipeline.learner_.n_features_in_)))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = pipeline.learner_.decision_function(all_features)
    if not np.isfinite(scores).all():
        raise ArtifactError("the scores of the model are not finite")


def _check_finite(state: State) -> None:
    for name, array in state.items():
        flat, step = array.reshape(-1), 2**20  # small parts, because an array may be large
        if array.dtype.kind == "f" and not all(
            np.isfinite(flat[start : start + step]).all() for start in range(0, flat.size, step)
        ):
            raise ArtifactError(f"array {name!r} contains NaN or infinity")
