"""Write predictions to a file: NDJSON or Parquet. Memory does not depend on the number of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.api.structs import to_json
from app.batch_predictions.rank_examples import FailedDocument, RankedBlock
from app.batch_predictions.schemas import ResultFormat
from app.serving.responses import predictions
from models.arrays import AnyArray

LINES_AT_ONCE = 32
"""Number of documents whose lines are encoded at once: few, so that their numbers stay in the caches."""

GROUP_ROWS = 2**16
"""Number of documents after which a row group of a Parquet file ends."""

GROUP_RANKED_LABELS = 2**20
"""Number of ranked labels after which a row group of a Parquet file ends."""


@contextmanager
def open_result(
    path: Path, form: ResultFormat, labels: Sequence[str]
) -> Iterator[NdjsonWriter | ParquetWriter]:
    """Create a file for predictions. It is complete when the block has ended without an error.

    Args:
        path: the file.
        form: its format.
        labels: labels of the version, in label order.

    Raises:
        OSError: the disk is full or unavailable; also in every call of the writer.
    """
    with path.open("xb") as file:
        if form == "ndjson":
            yield NdjsonWriter(file, labels)
        else:
            with ParquetWriter(file, labels) as writer:
                yield writer


class NdjsonWriter:
    """Writer of one JSON object per line: the id, then the fields of the response to a prediction request.

    Args:
        file: the file.
        labels: labels of the version, in label order.
    """

    def __init__(self, file: BinaryIO, labels: Sequence[str]) -> None:
        self._file = file
        self._labels = labels

    def write(self, part: RankedBlock | FailedDocument) -> None:
        """Append documents."""
        if isinstance(part, FailedDocument):
            error = {"code": part.code, "detail": part.detail}
            self._file.write(to_json({"id": part.id, "error": error}) + b"\n")
            return
        for first in range(0, len(part.ids), LINES_AT_ONCE):
            lines = slice(first, first + LINES_AT_ONCE)
            documents = predictions(self._labels, part.ranking.rows(lines))
            for id_, prediction in zip(part.ids[lines], documents, strict=True):
                self._file.write(b'{"id":%b,%b\n' % (to_json(id_), to_json(prediction)[1:]))


class ParquetWriter(AbstractContextManager["ParquetWriter"]):
    """Writer of one row per document, in row groups of limited size. Use it as a context manager.

    Args:
        file: the file.
        labels: labels of the version, in label order.
    """

    def __init__(self, file: BinaryIO, labels: Sequence[str]) -> None:
        self._labels: Any = pa.array(labels, pa.string())
        self._writer = pq.ParquetWriter(
            file,
            SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=["labels.list.element", "ranking.list.element.label"],  # type: ignore[arg-type] # a list of columns
        )
        self._group: list[pa.Table] = []
        self._n_ranked = 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._write_group()
            self._writer.close()
        except (OSError, pa.ArrowException):
            if kind is None:
                raise
            # The file is of no use any more, and the first error is the one that matters.
        finally:
            # After an error, their finalizers would try to write to the file at some later moment.
            self._writer.is_open = False
            del self._writer.writer

    def write(self, part: RankedBlock | FailedDocument) -> None:
        """Append documents."""
        if isinstance(part, FailedDocument):
            error = {"code": part.code, "detail": part.detail}
            self._group.append(pa.Table.from_pylist([{"id": part.id, "error": error}], schema=SCHEMA))
        else:
            self._group.append(self._to_table(part))
            self._n_ranked += part.ranking.order.size
        if self._n_ranked >= GROUP_RANKED_LABELS or sum(map(len, self._group)) >= GROUP_ROWS:
            self._write_group()

    def _to_table(self, part: RankedBlock) -> pa.Table:
        n, t = part.ranking.order.shape
        probabilities, of_sets = part.ranking.probabilities, part.ranking.set_probabilities
        ranked = pa.StructArray.from_arrays(
            [
                self._labels.take(pa.array(part.ranking.order.ravel())),
                pa.array(part.ranking.scores.ravel()),
                pa.nulls(n * t, pa.float64()) if probabilities is None else pa.array(probabilities.ravel()),
                pa.array(np.tile(np.arange(1, t + 1, dtype=np.int32), n)),
            ],
            fields=list(RANKED_LABEL),
        )
        label_sets = part.ranking.label_sets
        predicted = np.fromiter(chain.from_iterable(label_sets), dtype=np.int64)
        columns = [
            pa.array(part.ids, pa.string()),
            _lists(np.cumsum([0, *map(len, label_sets)]), self._labels.take(pa.array(predicted)), LABEL_SET),
            _lists(np.arange(n + 1) * t, ranked, RANKING),
            pa.nulls(n, pa.float64()) if of_sets is None else pa.array(of_sets),
            pa.nulls(n, ERROR),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _write_group(self) -> None:
        if self._group:
            self._writer.write_table(pa.concat_tables(self._group).combine_chunks(), row_group_size=2**31)
        self._group, self._n_ranked = [], 0


RANKED_LABEL = pa.struct(
    [
        pa.field("label", pa.string(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("probability", pa.float64()),
        pa.field("rank", pa.int32(), nullable=False),
    ]
)
LABEL_SET = pa.list_(pa.field("element", pa.string(), nullable=False))
RANKING = pa.list_(pa.field("element", RANKED_LABEL, nullable=False))
ERROR = pa.struct([("code", pa.string()), ("detail", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("labels", LABEL_SET),
        pa.field("ranking", RANKING),
        pa.field("set_probability", pa.float64()),
        pa.field("error", ERROR),
    ]
)
"""Columns of a Parquet file. A document has either labels and a ranking, or an error. Probabilities are null
if the version is not calibrated."""


def _lists(ends: AnyArray, items: pa.Array[Any], type_: pa.DataType) -> pa.Array[Any]:
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, type=type_)
