"""Features that are fitted once on a split of a data set and then used by several trials."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
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
from models.labels import LabelTree
from models.labels.indicator_matrix import collect_labels, indicator_matrix, unknown_matrix
from models.pipeline import Features, read_documents
from models.serialization.array_file import write_arrays
from models.serialization.strings import pack_strings, unpack_strings


class PrecomputedFeatures:
    """Features fitted on a training part, and the feature matrices of the parts.

    Attributes:
        parameters: parameters of the features.
        raw: what the features of the training part are computed from.
        train: (g, r) the training part.
        test: (n, r) the test part.
        validation: (m, r) the validation examples; None if there are none.
        test_empty: (n,) whether the features know nothing of a test example.
        seconds: duration of the computation.
    """

    def __init__(
        self,
        parameters: FeaturesConfig,
        state: State,
        candidates: csr_array[Any, tuple[int, int]] | None,
        summary: TrainingSummary,
        raw: RawValues,
        train: Matrix,
        test: Matrix,
        validation: Matrix | None,
        test_empty: Bools,
        seconds: float,
    ) -> None:
        self.parameters = parameters
        self._state = state
        self._candidates = candidates
        self._summary = summary
        self.raw = raw
        self.train = train
        self.test = test
        self.validation = validation
        self.test_empty = test_empty
        self.seconds = seconds

    @classmethod
    def fit(
        cls,
        parameters: FeaturesConfig,
        training: ExampleSource,
        test: ExampleSource,
        *,
        tree: LabelTree | None = None,
        kept_labels: Sequence[str] = (),
        validation: ExampleSource | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> PrecomputedFeatures:
        """Fit features on the training part, and transform all parts.

        Args:
            parameters: parameters of the features.
            training: the training part, from which all statistics come.
            test: the test part.
            tree: the label tree.
            kept_labels: as for ``Pipeline.fit``.
            validation: the validation examples; None if there are none.
            progress: called with the number of examples read so far.

        Raises:
            UnsuitableDataError: the features cannot be fitted, for example because no term is left.
        """
        start = time.perf_counter()
        label_sets = training.label_sets()
        labels = collect_labels(label_sets, tree, kept=kept_labels)
        n_read = 0

        def documents(source: ExampleSource) -> Iterator[Any]:
            nonlocal n_read
            for batch in source.batches():
                yield read_documents(batch.documents)
                n_read += batch.n_examples
                progress(n_read)

        features = catalog.create_features(parameters)
        Y = indicator_matrix(label_sets, labels, tree)
        unknown = unknown_matrix(training.unknown_sets(), Y, labels, tree)
        raw = features.read(documents(training))
        train = features.fit(raw, Y, unknown)

        def transformed(source: ExampleSource) -> tuple[Matrix, Bools]:
            parts, empty = [], [np.empty(0, dtype=np.bool_)]
            for batch in documents(source):
                parts.append(features.transform(batch))
                empty.append(features.empty_documents(batch, parts[-1]))
            return stack_rows(parts, train.shape[1]), np.concatenate(empty)

        test_matrix, test_empty = transformed(test)
        return cls(
            parameters,
            features.get_state(),
            features.candidates_,
            features.summary_,
            raw,
            train,
            test_matrix,
            transformed(validation)[0] if validation is not None else None,
            test_empty,
            time.perf_counter() - start,
        )

    @property
    def train_empty(self) -> Bools:
        """(g,) whether the features know nothing of a training example. They know all its numbers."""
        return self.features().says_nothing(self.train)

    def features(self) -> Features:
        """Return a new copy of the fitted features, for one pipeline."""
        features = catalog.create_features(self.parameters)
        features.set_state(self._state)
        if isinstance(features, TextFeatures):
            features.candidates_ = self._candidates
        features.summary_ = TrainingSummary(list(self._summary.warnings), dict(self._summary.facts))
        return features

    def save(self, path: Path) -> None:
        """Write the features and the matrices to a file of named arrays."""
        arrays = {f"state.{name}": array for name, array in self._state.items()}
        names, offsets = pack_strings(self.raw.names)
        arrays["raw.names"], arrays["raw.name_offsets"] = names, offsets
        arrays |= _arrays_of_matrix("raw", self.raw.values)
        arrays |= _arrays_of_matrix("train", self.train) | _arrays_of_matrix("test", self.test)
        arrays["test.empty"] = self.test_empty
        if self.validation is not None:
            arrays |= _arrays_of_matrix("validation", self.validation)
        if self._candidates is not None:
            arrays |= _arrays_of_matrix("candidates", self._candidates)
        metadata = {
            "parameters": self.parameters.model_dump_json(),
            "summary": json.dumps(asdict(self._summary)),
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
            _matrix_of_arrays("candidates", arrays) if "candidates.shape" in arrays else None,
            TrainingSummary(**json.loads(metadata["summary"])),
            RawValues(names, _matrix_of_arrays("raw", arrays)),
            _matrix_of_arrays("train", arrays),
            _matrix_of_arrays("test", arrays),
            _matrix_of_arrays("validation", arrays) if "validation.shape" in arrays else None,
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
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    rows, columns = arrays[f"{name}.shape"].tolist()
    return csr_array((data, indices, indptr), shape=(rows, columns))
