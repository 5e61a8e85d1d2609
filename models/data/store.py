"""A data set as one Parquet file: written once, read a row group at a time.

Columns: ``id``, ``labels`` (list of strings), ``split`` and the document: ``text``; or ``raw``, ``subject``,
``from``, ``to``, ``text``, ``html`` of an e-mail; or ``indices`` and ``values`` of its non-zero features. A
feature's index is the order in which its name was first met; the names stand in the file's metadata, and
readers see the columns in the order of the names.
"""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Ints
from models.data.examples import Documents, Examples, FeatureRows, Kind, Split
from models.data.record import Record
from models.errors import BadDataError
from models.mail.email import Email
from models.serialization.fsync import fsync_folder

_FORMAT = 1
_METADATA = b"covey"
_GROUP_BYTES = 8 * 2**20
_GROUP_ROWS = 2**16
_EMAIL_PARTS = ("subject", "from", "to", "text", "html")

_HEAD = [pa.field("id", pa.string(), nullable=False)]
_TAIL = [
    pa.field("labels", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
    pa.field("split", pa.string()),
]
_DOCUMENT: dict[Kind, list[pa.Field[Any]]] = {
    "text": [pa.field("text", pa.string(), nullable=False)],
    "email": [pa.field("raw", pa.binary()), *(pa.field(name, pa.string()) for name in _EMAIL_PARTS)],
    "features": [
        pa.field("indices", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("values", pa.list_(pa.field("element", pa.float64(), nullable=False)), nullable=False),
    ],
}


class DatasetWriter:
    """Writes a data set beside its target and moves it there when it is whole.

    Used as a context manager: what was not committed when the block ends is deleted. A process that is
    killed may leave a file ``.NAME.*.part`` beside the target, which is never read.

    Args:
        target: the Parquet file to make; an existing one is replaced at once, by the commit.
        features: codes of the feature names met so far, shared with whoever meets them: those of a record
            are in it before the record is appended.
    """

    def __init__(self, target: Path, features: dict[str, int]) -> None:
        self._target = target
        self._features = features
        self._path: Path | None = None
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._kind: Kind = "text"
        self._group = _Group()

    def __enter__(self) -> Self:
        handle, name = tempfile.mkstemp(
            prefix=f".{self._target.name}.", suffix=".part", dir=self._target.parent
        )
        self._path = Path(name)
        self._file = os.fdopen(handle, "wb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._file is not None:
            self._file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def append(self, record: Record, id_: str, labels: Sequence[str]) -> None:
        """Add one example; all must be of one kind."""
        group = self._group
        group.ids.append(id_)
        group.labels.append(labels)
        group.splits.append(record.split)
        if record.text is not None:
            group.texts.append(record.text)
            group.n_bytes += len(record.text)
        elif record.email is not None:
            group.emails.append(record.email)
            group.n_bytes += _email_size(record.email)
        else:
            self._append_features(record.features or {})
        if len(group.ids) == 1:
            self._kind = record.kind
        if group.n_bytes >= _GROUP_BYTES or len(group.ids) >= _GROUP_ROWS:
            self._flush()

    def _append_features(self, features: Mapping[str, float]) -> None:
        group = self._group
        if 0.0 in features.values():
            features = {name: value for name, value in features.items() if value}
        group.indices.extend(map(self._features.__getitem__, features))
        group.values.extend(features.values())
        group.ends.append(len(group.indices))
        group.n_bytes += 12 * len(features)

    def _flush(self) -> None:
        schema = pa.schema([*_HEAD, *_DOCUMENT[self._kind], *_TAIL])
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._file,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=cast("Any", ["labels.list.element", "split"]),
                write_statistics=False,  # the smallest and largest text would stand in every footer
            )
        group, self._group = self._group, _Group()
        columns = [pa.array(group.ids, pa.string()), *group.document(self._kind)]
        columns += [group.label_lists(schema.field("labels").type), pa.array(group.splits, pa.string())]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=_GROUP_ROWS)

    def commit(self, *, labels: Sequence[str], parents: Mapping[str, str]) -> None:
        """Put the data set in its place, durably.

        Args:
            labels: every label of the data set, in label order.
            parents: the label tree, child to parent; empty without one.
        """
        if self._group.ids or self._writer is None:
            self._flush()
        assert self._writer is not None  # noqa: S101 - opened by the first flush
        assert self._path is not None  # noqa: S101 - a commit stands inside the block
        head = {"format": _FORMAT, "kind": self._kind, "labels": list(labels), "parents": dict(parents)}
        if self._kind == "features":
            head["features"] = list(self._features)
        self._writer.add_key_value_metadata({_METADATA.decode(): json.dumps(head, ensure_ascii=False)})
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._target)
        fsync_folder(self._target.parent)


class _Group:
    """The columns of the row group that is being filled."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self.ids: list[str] = []
        self.labels: list[Sequence[str]] = []
        self.splits: list[Split | None] = []
        self.texts: list[str] = []
        self.emails: list[Email] = []
        self.indices = array("i")
        self.values = array("d")
        self.ends = array("i", [0])

    def label_lists(self, type_: pa.DataType) -> pa.Array[Any]:
        ends = np.zeros(len(self.labels) + 1, dtype=np.int32)
        np.cumsum([len(labels) for labels in self.labels], out=ends[1:])
        names = pa.array([name for labels in self.labels for name in labels], pa.string())
        return _lists(ends, names, type_)

    def document(self, kind: Kind) -> list[pa.Array[Any]]:
        if kind == "text":
            return [pa.array(self.texts, pa.string())]
        if kind == "email":
            raws = pa.array([email.raw for email in self.emails], pa.binary())
            parts = [
                pa.array([getattr(email, attribute) for email in self.emails], pa.string())
                for attribute in ("subject", "from_", "to", "text", "html")
            ]
            return [raws, *parts]
        ends = np.frombuffer(self.ends, dtype=np.int32)
        indices = pa.array(np.frombuffer(self.indices, dtype=np.int32))
        values = pa.array(np.frombuffer(self.values, dtype=np.float64))
        types = [field.type for field in _DOCUMENT["features"]]
        return [_lists(ends, indices, types[0]), _lists(ends, values, types[1])]


def _lists(ends: AnyArray, items: pa.Array[Any], type_: pa.DataType) -> pa.Array[Any]:
    """Rows of lists from where each begins and the last ends (n + 1 int32) and all their items."""
    make = cast("Any", pa.ListArray.from_arrays)
    return cast("pa.Array[Any]", make(pa.array(ends), items, type=type_))


def _email_size(email: Email) -> int:
    return len(email.raw or b"") + len(email.subject) + len(email.text) + len(email.html)


class StoredExamples:
    """A data set on disk, as an ``ExampleSource``.

    Holds the names of labels and features; documents are read a row group at a time.

    Args:
        path: a file that :func:`models.data.ingestion.ingest.ingest` made.

    Attributes:
        path: the file.
        labels: every label of the data set, in label order, those without an example included.
        parents: the label tree, child to parent; empty without one.
        feature_names: for numeric data the names of its columns, sorted; else empty.

    Raises:
        BadDataError: not such a file, or one of a later format.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            metadata = pq.read_metadata(path)
            head = json.loads((metadata.metadata or {})[_METADATA])
        except (pa.ArrowInvalid, KeyError, ValueError) as error:
            raise BadDataError(f"{path.name} is not a stored data set") from error
        if head["format"] != _FORMAT:
            raise BadDataError(
                f"{path.name} is a data set of format {head['format']}; this release reads {_FORMAT}"
            )
        self._kind: Kind = head["kind"]
        self.labels: list[str] = head["labels"]
        self.parents: dict[str, str] = head["parents"]
        names = head.get("features", [])
        order = sorted(range(len(names)), key=names.__getitem__)
        self.feature_names: list[str] = [names[code] for code in order]
        self._column = np.empty(len(names), dtype=np.int64)
        self._column[order] = np.arange(len(names))
        self._group_rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._keep: Bools | None = None

    @property
    def kind(self) -> Kind:
        """What the documents are."""
        return self._kind

    @property
    def n_examples(self) -> int:
        """How many examples there are, or were kept by ``where``."""
        return sum(self._group_rows) if self._keep is None else int(self._keep.sum())

    def batches(self) -> Iterator[Examples]:
        """The examples in their order, one row group (8 MiB of documents or 65,536 examples) at a time."""
        with pq.ParquetFile(self.path) as file:
            start = 0
            for i, n_rows in enumerate(self._group_rows):
                keep = None if self._keep is None else self._keep[start : start + n_rows]
                start += n_rows
                if keep is None or keep.any():
                    table = file.read_row_group(i)
                    yield self._examples(table if keep is None else table.filter(pa.array(keep)))

    def label_sets(self) -> list[tuple[str, ...]]:
        """The label set of every example; reads no documents."""
        return _label_sets(self._column_of("labels"))

    def splits(self) -> list[Split | None]:
        """The split of every example, None where it has none; reads no documents."""
        return cast("list[Split | None]", self._column_of("split").to_pylist())

    def where(self, keep: Bools) -> StoredExamples:
        """Only the examples for which ``keep`` (n_examples booleans) is true.

        Raises:
            ValueError: ``keep`` has another length.
        """
        keep = np.asarray(keep, dtype=np.bool_)
        if keep.shape != (self.n_examples,):
            raise ValueError(f"keep has shape {keep.shape}; there are {self.n_examples} examples")
        part = object.__new__(StoredExamples)
        part.__dict__.update(self.__dict__)
        whole = np.ones(sum(self._group_rows), dtype=np.bool_) if self._keep is None else self._keep.copy()
        whole[np.flatnonzero(whole)] = keep
        part._keep = whole
        return part

    def positions(self) -> Ints:
        """Where each example stands in the whole data set, (n_examples,)."""
        return np.arange(self.n_examples) if self._keep is None else np.flatnonzero(self._keep)

    def page(self, start: int, size: int) -> Examples:
        """Up to ``size`` examples from number ``start`` (from 0) on; reads only their row groups."""
        keep = np.zeros(self.n_examples, dtype=np.bool_)
        keep[start : start + size] = True
        batches = list(self.where(keep).batches())
        return Examples.concatenate(batches) if batches else Examples(self._kind, [], [])

    def _column_of(self, name: str) -> pa.ChunkedArray[Any]:
        column = pq.read_table(self.path, columns=[name], use_threads=False).column(name)
        return column if self._keep is None else column.filter(pa.array(self._keep))

    def _examples(self, table: pa.Table) -> Examples:
        return Examples(
            kind=self._kind,
            documents=self._documents(table),
            labels=_label_sets(table.column("labels")),
            ids=cast("list[str]", table.column("id").to_pylist()),
            split_column=cast("list[Split | None]", table.column("split").to_pylist()),
        )

    def _documents(self, table: pa.Table) -> Documents:
        if self._kind == "text":
            return cast("list[str]", table.column("text").to_pylist())
        if self._kind == "email":
            columns = [table.column(name).to_pylist() for name in ("raw", *_EMAIL_PARTS)]
            return [Email(*cast("Any", row)) for row in zip(*columns, strict=True)]
        ends, indices = _flattened(table.column("indices"))
        _, values = _flattened(table.column("values"))
        values = values.copy()  # Arrow's memory is read-only, and sorting is in place
        matrix = csr_array((values, self._column[indices], ends), shape=(len(table), len(self.feature_names)))
        matrix.sort_indices()
        return FeatureRows(self.feature_names, matrix)


def _flattened(column: pa.ChunkedArray[Any]) -> tuple[Ints, AnyArray]:
    """A column of lists as the bounds of its rows (n + 1) and all their items."""
    lists = cast("pa.ListArray[Any]", column.combine_chunks())
    offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets - offsets[0], lists.flatten().to_numpy(zero_copy_only=False)


def _label_sets(column: pa.ChunkedArray[Any]) -> list[tuple[str, ...]]:
    sets: list[tuple[str, ...]] = []
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for chunk in column.chunks:
        sets += (shared.setdefault(labels, labels) for labels in map(tuple, cast("Any", chunk.to_pylist())))
    return sets
