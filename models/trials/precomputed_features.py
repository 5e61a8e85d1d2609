"""Features that are fitted once on a split of a data set and then used by several trials."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from scipy.sparse import csr_array

from models import catalog
from models.arrays import AnyArray, Bools, Matrix
from models.base import State, TrainingSummary
from models.catalog import FEATURES_PARAMETERS, FeaturesConfig
from models.data.examples import ExampleSource
from models.features import TextFeatures
from models.features.columns import stack_rows
from models.features.raw_values import RawValues
from models.pipeline import FeatureMatrices, Features, TrainingSet, fit_features, read_documents
from models.serialization.array_file import write_arrays
from models.serialization.strings import pack_strings, unpack_strings


@dataclass(frozen=True)
class PrecomputedFeatures:
    """Features fitted on a training set, and the feature matrices of all parts.

    Attributes:
        parameters: parameters of the features.
        state: the fitted features.
        candidates: (r, k) which labels may use which features; None if all may.
        summary: warnings and facts about the fit.
        matrices: the training set, (g, r), with what the features are computed from.
        test: (n, r) the test part.
        test_empty: (n,) whether the features know nothing of a test example.
        seconds: duration of the computation.
    """

    parameters: FeaturesConfig
    state: State
    candidates: csr_array[Any, tuple[int, int]] | None
    summary: TrainingSummary
    matrices: FeatureMatrices
    test: Matrix
    test_empty: Bools
    seconds: float

    @classmethod
    def fit(
        cls,
        parameters: FeaturesConfig,
        training: TrainingSet,
        test: ExampleSource,
        *,
        progress: Callable[[int], None] = lambda _: None,
    ) -> PrecomputedFeatures:
        """Fit features on a training set, and transform all parts.

        Args:
            parameters: parameters of the features.
            training: the training set, from whose examples all statistics come.
            test: the test part.
            progress: called with the number of examples read so far.

        Raises:
            UnsuitableDataError: the features cannot be fitted, for example because no term is left.
        """
        start = time.perf_counter()
        features = catalog.create_features(parameters)
        matrices = fit_features(features, training, progress)
        n_read = training.source.n_examples
        parts, empty = [], [np.empty(0, dtype=np.bool_)]
        for batch in test.batches():
            documents = read_documents(batch.documents)
            parts.append(features.vectors(documents))
            empty.append(features.empty_documents(documents, parts[-1]))
            n_read += batch.n_examples
            progress(n_read)
        return cls(
            parameters,
            features.get_state(),
            features.candidates_,
            features.summary_,
            matrices,
            stack_rows(parts, matrices.training.shape[1]),
            np.concatenate(empty),
            time.perf_counter() - start,
        )

    @property
    def train_empty(self) -> Bools:
        """(g,) whether the features know nothing of a training example. They know all its numbers."""
        return self.features().says_nothing(self.matrices.training)

    def features(self) -> Features:
        """Return a new copy of the fitted features, for one pipeline."""
        features = catalog.create_features(self.parameters)
        features.set_state(self.state)
        if isinstance(features, TextFeatures):
            features.candidates_ = self.candidates
        features.summary_ = TrainingSummary(list(self.summary.warnings), dict(self.summary.facts))
        return features

    def save(self, path: Path) -> None:
        """Write the features and the matrices to a file of named arrays."""
        raw = self.matrices.raw
        assert raw is not None, "the features of folds are computed from raw values"  # noqa: S101
        arrays = {f"state.{name}": array for name, array in self.state.items()}
        arrays["raw.names"], arrays["raw.name_offsets"] = pack_strings(raw.names)
        matrices = {
            "raw": raw.values,
            "train": self.matrices.training,
            "validation": self.matrices.validation,
            "test": self.test,
            "candidates": self.candidates,
        }
        for name, matrix in matrices.items():
            if matrix is not None:
                arrays |= _arrays_of_matrix(name, matrix)
        arrays["test.empty"] = self.test_empty
        metadata = {
            "parameters": self.parameters.model_dump_json(),
            "summary": json.dumps(asdict(self.summary)),
            "seconds": json.dumps(self.seconds),
        }
        write_arrays(path, arrays, metadata)

    @classmethod
    def load(cls, path: Path) -> PrecomputedFeatures:
        """Read a file that ``save`` wrote. The result is identical to the saved features."""
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata: Mapping[str, str] = file.metadata()
            arrays: dict[str, AnyArray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = {
            name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")
        }
        names = unpack_strings(arrays["raw.names"], arrays["raw.name_offsets"])
        return cls(
            FEATURES_PARAMETERS.validate_json(metadata["parameters"]),
            state,
            _matrix_of_arrays("candidates", arrays),
            TrainingSummary(**json.loads(metadata["summary"])),
            FeatureMatrices(
                _matrix_of_arrays("train", arrays),
                RawValues(names, _matrix_of_arrays("raw", arrays)),
                _matrix_of_arrays("validation", arrays),
            ),
            _matrix_of_arrays("test", arrays),
            arrays["test.empty"],
            float(json.loads(metadata["seconds"])),
        )


def _arrays_of_matrix(name: str, matrix: Any) -> dict[str, AnyArray]:
    return {
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
    }


def _matrix_of_arrays(name: str, arrays: Mapping[str, AnyArray]) -> Any:
    if f"{name}.shape" not in arrays:
        return None
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    rows, columns = arrays[f"{name}.shape"].tolist()
    return csr_array((data, indices, indptr), shape=(rows, columns))
