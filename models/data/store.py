"""Stores a data set as one Parquet file, which is written once and read one row group at a time.

Columns: ``id``, ``labels`` and ``unknown`` (lists of strings), ``split``, ``weight``, ``fold``,
``selected_by`` and the document: ``text``; or ``raw``, ``subject``, ``from``, ``to``, ``text``, ``html``,
``list_id`` and ``attachments`` of an e-mail; or ``indices`` and ``values`` of the non-zero features. Features
are numbered in the order in which their names first occur. The metadata of the file lists the names, and
:class:`StoredExamples` sorts the columns by name.
"""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints
from models.data.examples import Documents, Examples, FeatureRows, Kind, SelectedBy, Split
from models.data.record import Record
from models.errors import BadDataError
from models.mail.email import Email
from models.serialization.fsync import fsync_folder

_FORMAT = 1
_METADATA = b"covey"
_MAX_GROUP_BYTES = 8 * 2**20
_MAX_GROUP_ROWS = 2**16
_EMAIL_PARTS = ("subject", "from", "to", "text", "html")

_ATTACHMENTS = pa.list_(
    pa.field("element", pa.struct([pa.field("name", pa.string()), pa.field("content_type", pa.string())]))
)

_FIRST_COLUMNS = [pa.field("id", pa.string(), nullable=False)]
_NAMES = pa.list_(pa.field("element", pa.string(), nullable=False))
_LAST_COLUMNS = [
    pa.field("labels", _NAMES, nullable=False),
    pa.field("split", pa.string()),
    pa.field("unknown", _NAMES),  # null without unknown labels
    pa.field("weight", pa.float64()),  # null for 1
    pa.field("fold", pa.int16()),  # null without a fold
    pa.field("selected_by", pa.string()),  # null if no decision selected the example for a review
]
_DOCUMENT_COLUMNS: dict[Kind, list[pa.Field[Any]]] = {
    "text": [pa.field("text", pa.string(), nullable=False)],
    "email": [
        pa.field("raw", pa.binary()),
        *(pa.field(name, pa.string()) for name in _EMAIL_PARTS),
        pa.field("list_id", pa.string()),  # null without one
        pa.field("attachments", _ATTACHMENTS),  # null without attachments
    ],
    "features": [
        pa.field("indices", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("values", pa.list_(pa.field("element", pa.float64(), nullable=False)), nullable=False),
    ],
}


class DatasetWriter:
    """Writes a data set to a temporary file next to the target and renames it on commit.

    Use it as a context manager: without a commit, the end of the block deletes the temporary file. A process
    that is killed can leave a file ``.NAME.*.part`` next to the target; nothing reads it.

    Args:
        target: the Parquet file to create. The commit replaces an existing file atomically.
        features: the index of each feature name so far. The caller shares this dictionary and adds the names
            of a record before it appends the record.
    """

    def __init__(self, target: Path, features: dict[str, int]) -> None:
        self._target = target
        self._features = features
        self._path: Path | None = None
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._kind: Kind = "text"
        self._has_unknown = self._has_weights = self._has_folds = self._has_selections = False
        self._group = _RowGroup()

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
        """Append one example; all examples must be of the same kind."""
        group = self._group
        group.ids.append(id_)
        group.labels.append(labels)
        group.splits.append(record.split)
        if record.unknown:
            group.unknown[len(group.ids) - 1] = record.unknown
            self._has_unknown = True
        if record.weight is not None:
            group.weights[len(group.ids) - 1] = record.weight
            self._has_weights = True
        if record.fold is not None:
            group.folds[len(group.ids) - 1] = record.fold
            self._has_folds = True
        if record.selected_by is not None:
            group.selections[len(group.ids) - 1] = record.selected_by
            self._has_selections = True
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
        if group.n_bytes >= _MAX_GROUP_BYTES or len(group.ids) >= _MAX_GROUP_ROWS:
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
        schema = pa.schema([*_FIRST_COLUMNS, *_DOCUMENT_COLUMNS[self._kind], *_LAST_COLUMNS])
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._file,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=cast(
                    "Any", ["labels.list.element", "split", "unknown.list.element", "selected_by"]
                ),
                write_statistics=False,  # every footer would contain the smallest and largest text
            )
        group, self._group = self._group, _RowGroup()
        columns = [pa.array(group.ids, pa.string()), *group.document(self._kind)]
        columns += [group.label_lists(), pa.array(group.splits, pa.string()), group.unknown_lists()]
        columns += [group.weight_column(), group.fold_column(), group.selected_by_column()]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=_MAX_GROUP_ROWS)

    def commit(
        self,
        *,
        labels: Sequence[str],
        parents: Mapping[str, str],
        final_names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Rename the file to the target and sync it to disk.

        Args:
            labels: every label of the data set, in label order.
            parents: the label tree as child to parent; empty if there is none.
            final_names: new names of labels in the examples. No two labels have the same final name.
        """
        if self._group.ids or self._writer is None:
            self._flush()
        assert self._writer is not None  # noqa: S101 - opened by the first flush
        assert self._path is not None  # noqa: S101 - set on entering the block
        header = {"format": _FORMAT, "kind": self._kind, "labels": list(labels), "parents": dict(parents)}
        if self._has_unknown:
            header["has_unknown"] = True
        if self._has_weights:
            header["has_weights"] = True
        if self._has_folds:
            header["has_folds"] = True
        if self._has_selections:
            header["has_selections"] = True
        if final_names:
            header["final_names"] = dict(final_names)
        if self._kind == "features":
            header["features"] = list(self._features)
        self._writer.add_key_value_metadata({_METADATA.decode(): json.dumps(header, ensure_ascii=False)})
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._target)
        fsync_folder(self._target.parent)


class _RowGroup:
    """The columns of the current row group."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self.ids: list[str] = []
        self.labels: list[Sequence[str]] = []
        self.splits: list[Split | None] = []
        self.unknown: dict[int, Sequence[str]] = {}
        self.weights: dict[int, float] = {}
        self.folds: dict[int, int] = {}
        self.selections: dict[int, SelectedBy] = {}
        self.texts: list[str] = []
        self.emails: list[Email] = []
        self.indices = array("i")
        self.values = array("d")
        self.ends = array("i", [0])

    def unknown_lists(self) -> pa.Array[Any]:
        if not self.unknown:
            return pa.nulls(len(self.ids), _NAMES)
        return pa.array([self.unknown.get(i) for i in range(len(self.ids))], _NAMES)

    def weight_column(self) -> pa.Array[Any]:
        if not self.weights:
            return pa.nulls(len(self.ids), pa.float64())
        return pa.array([self.weights.get(i) for i in range(len(self.ids))], pa.float64())

    def fold_column(self) -> pa.Array[Any]:
        if not self.folds:
            return pa.nulls(len(self.ids), pa.int16())
        return pa.array([self.folds.get(i) for i in range(len(self.ids))], pa.int16())

    def selected_by_column(self) -> pa.Array[Any]:
        if not self.selections:
            return pa.nulls(len(self.ids), pa.string())
        return pa.array([self.selections.get(i) for i in range(len(self.ids))], pa.string())

    def label_lists(self) -> pa.Array[Any]:
        ends = np.zeros(len(self.labels) + 1, dtype=np.int32)
        np.cumsum([len(labels) for labels in self.labels], out=ends[1:])
        names = pa.array([name for labels in self.labels for name in labels], pa.string())
        return _lists(ends, names, _NAMES)

    def _list_ids(self) -> pa.Array[Any]:
        if not any(email.list_id for email in self.emails):
            return pa.nulls(len(self.emails), pa.string())
        return pa.array([email.list_id or None for email in self.emails], pa.string())

    def _attachments(self) -> pa.Array[Any]:
        if not any(email.attachments for email in self.emails):
            return pa.nulls(len(self.emails), _ATTACHMENTS)
        rows = [
            [{"name": name, "content_type": type_} for name, type_ in email.attachments] or None
            for email in self.emails
        ]
        return pa.array(rows, _ATTACHMENTS)

    def document(self, kind: Kind) -> list[pa.Array[Any]]:
        if kind == "text":
            return [pa.array(self.texts, pa.string())]
        if kind == "email":
            raws = pa.array([email.raw for email in self.emails], pa.binary())
            parts = [
                pa.array([getattr(email, attribute) for email in self.emails], pa.string())
                for attribute in ("subject", "from_", "to", "text", "html")
            ]
            return [raws, *parts, self._list_ids(), self._attachments()]
        ends = np.frombuffer(self.ends, dtype=np.int32)
        indices = pa.array(np.frombuffer(self.indices, dtype=np.int32))
        values = pa.array(np.frombuffer(self.values, dtype=np.float64))
        types = [field.type for field in _DOCUMENT_COLUMNS["features"]]
        return [_lists(ends, indices, types[0]), _lists(ends, values, types[1])]


def _lists(ends: AnyArray, items: pa.Array[Any], type_: pa.DataType) -> pa.Array[Any]:
    """Return a column of lists from the n + 1 offsets (int32) of the rows and all their items."""
    make = cast("Any", pa.ListArray.from_arrays)
    return cast("pa.Array[Any]", make(pa.array(ends), items, type=type_))


def _email_size(email: Email) -> int:
    return len(email.raw or b"") + len(email.subject) + len(email.text) + len(email.html)


class StoredExamples:
    """A data set on disk, as an ``ExampleSource``.

    Keeps the names of labels and features in memory, and reads documents one row group at a time.

    Args:
        path: a file that :func:`models.data.ingestion.ingest.ingest` wrote.

    Attributes:
        path: the file.
        labels: every label of the data set, in label order, including labels without an example.
        parents: the label tree as child to parent; empty if there is none.
        feature_names: sorted names of the columns of numeric data; empty for other kinds.

    Raises:
        BadDataError: the file is not a stored data set, or has another format version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            metadata = pq.read_metadata(path)
            header = json.loads((metadata.metadata or {})[_METADATA])
        except (pa.ArrowInvalid, KeyError, ValueError) as error:
            raise BadDataError(f"{path.name} is not a stored data set") from error
        if header["format"] != _FORMAT:
            raise BadDataError(
                f"{path.name} has format version {header['format']}; this release reads version {_FORMAT}"
            )
        self._kind: Kind = header["kind"]
        columns = {field.name for field in (*_FIRST_COLUMNS, *_DOCUMENT_COLUMNS[self._kind], *_LAST_COLUMNS)}
        if missing := columns.difference(metadata.schema.to_arrow_schema().names):
            names = ", ".join(sorted(missing))
            raise BadDataError(f"{path.name} lacks the columns {names}; upload the data set again")
        self.labels: list[str] = header["labels"]
        self.parents: dict[str, str] = header["parents"]
        self._has_unknown: bool = header.get("has_unknown", False)
        self._has_weights: bool = header.get("has_weights", False)
        self._has_folds: bool = header.get("has_folds", False)
        self._has_selections: bool = header.get("has_selections", False)
        self._final_names: dict[str, str] = header.get("final_names", {})
        names = header.get("features", [])
        order = sorted(range(len(names)), key=names.__getitem__)
        self.feature_names: list[str] = [names[code] for code in order]
        self._column_of_code = np.empty(len(names), dtype=np.int64)
        self._column_of_code[order] = np.arange(len(names))
        self._group_rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._keep: Bools | None = None
        self._digests: list[Ints] = []  # of the whole data set, shared with its parts

    @property
    def kind(self) -> Kind:
        """Kind of the documents."""
        return self._kind

    @property
    def n_examples(self) -> int:
        """Number of examples, after any ``where``."""
        return sum(self._group_rows) if self._keep is None else int(self._keep.sum())

    def batches(self) -> Iterator[Examples]:
        """Yield the examples in order, one row group (8 MiB of documents or 65,536 examples) at a time."""
        for table in self._tables(None):
            yield self._examples(table)

    def outlines(self) -> Iterator[Examples]:
        """Yield the same batches without their documents, which are not read."""
        for table in self._tables([field.name for field in (*_FIRST_COLUMNS, *_LAST_COLUMNS)]):
            yield self._with_documents([], table)

    def _tables(self, columns: list[str] | None) -> Iterator[pa.Table]:
        """Yield the examples of one row group after the other, with some columns or all of them."""
        with pq.ParquetFile(self.path) as file:
            start = 0
            for i, n_rows in enumerate(self._group_rows):
                keep = None if self._keep is None else self._keep[start : start + n_rows]
                start += n_rows
                if keep is None or keep.any():
                    table = file.read_row_group(i, columns)  # a column that the file lacks is no error
                    yield table if keep is None else table.filter(pa.array(keep))

    def label_sets(self) -> list[tuple[str, ...]]:
        """Return the label set of every example without reading the documents."""
        return self._label_sets(self._read_column("labels"))

    def unknown_sets(self) -> list[tuple[str, ...]]:
        """Return the unknown labels of every example without reading the documents."""
        if not self._has_unknown:
            return [()] * self.n_examples
        return self._label_sets(self._read_column("unknown"))

    def splits(self) -> list[Split | None]:
        """Return the split of every example (None if it has none) without reading the documents."""
        return cast("list[Split | None]", self._read_column("split").to_pylist())

    def example_weights(self) -> Floats | None:
        """Return the weight of every example, without reading the documents; None if all are 1."""
        if not self._has_weights:
            return None
        weights = _weights_of(self._read_column("weight"))
        return weights if (weights != 1.0).any() else None

    def document_digests(self) -> Ints:
        """Return a digest of every document, (n_examples,).

        Reads all documents. The result for a whole data set is kept, also for its parts.
        """
        if self._digests:
            return self._digests[0][self.positions()]
        columns = [field.name for field in _DOCUMENT_COLUMNS[self._kind]]
        batches = [
            Examples(self._kind, self._documents(table), [()] * len(table)).document_digests()
            for table in self._tables(columns)
        ]
        digests = np.concatenate([np.zeros(0, dtype=np.int64), *batches])
        if self._keep is None:
            self._digests.append(digests)
        return digests

    def ids(self) -> list[str]:
        """Return the id of every example without reading the documents."""
        return cast("list[str]", self._read_column("id").to_pylist())

    def folds(self) -> list[int | None]:
        """Return the fold of every example (None if it has none) without reading the documents."""
        if not self._has_folds:
            return [None] * self.n_examples
        return cast("list[int | None]", self._read_column("fold").to_pylist())

    def selections(self) -> list[SelectedBy | None]:
        """Return what selected every example for a review, without reading the documents.

        None stands for an example that no decision selected.
        """
        if not self._has_selections:
            return [None] * self.n_examples
        return cast("list[SelectedBy | None]", self._read_column("selected_by").to_pylist())

    def where(self, keep: Bools) -> StoredExamples:
        """Return only the examples for which ``keep`` (n_examples booleans) is true.

        Raises:
            ValueError: ``keep`` does not have the shape (n_examples,).
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
        """Return the index of each example in the whole data set, (n_examples,)."""
        return np.arange(self.n_examples) if self._keep is None else np.flatnonzero(self._keep)

    def page(self, start: int, size: int) -> Examples:
        """Return up to ``size`` examples from index ``start``; reads only their row groups."""
        keep = np.zeros(self.n_examples, dtype=np.bool_)
        keep[start : start + size] = True
        batches = list(self.where(keep).batches())
        return Examples.concatenate(batches) if batches else Examples(self._kind, [], [])

    def _read_column(self, name: str) -> pa.ChunkedArray[Any]:
        column = pq.read_table(self.path, columns=[name], use_threads=False).column(name)
        return column if self._keep is None else column.filter(pa.array(self._keep))

    def _examples(self, table: pa.Table) -> Examples:
        return self._with_documents(self._documents(table), table)

    def _with_documents(self, documents: Documents, table: pa.Table) -> Examples:
        return Examples(
            kind=self._kind,
            documents=documents,
            labels=self._label_sets(table.column("labels")),
            ids=cast("list[str]", table.column("id").to_pylist()),
            split_column=cast("list[Split | None]", table.column("split").to_pylist()),
            unknown=self._label_sets(table.column("unknown")) if self._has_unknown else (),
            weights=_weights_of(table.column("weight")).tolist() if self._has_weights else (),
            fold_column=cast("list[int | None]", table.column("fold").to_pylist()) if self._has_folds else (),
            selected_by_column=(
                cast("list[SelectedBy | None]", table.column("selected_by").to_pylist())
                if self._has_selections
                else ()
            ),
        )

    def _label_sets(self, column: pa.ChunkedArray[Any]) -> list[tuple[str, ...]]:
        """Return the final names in each list of a column, in label order."""
        names = self._final_names
        sets: list[tuple[str, ...]] = []
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        for chunk in column.chunks:
            for labels in map(tuple, (labels or () for labels in cast("Any", chunk.to_pylist()))):
                if labels not in shared:
                    shared[labels] = (
                        tuple(sorted(names.get(name, name) for name in labels)) if names else labels
                    )
                sets.append(shared[labels])
        return sets

    def _documents(self, table: pa.Table) -> Documents:
        if self._kind == "text":
            return cast("list[str]", table.column("text").to_pylist())
        if self._kind == "email":
            columns = [table.column(name).to_pylist() for name in ("raw", *_EMAIL_PARTS)]
            emails = [Email(*cast("Any", row)) for row in zip(*columns, strict=True)]
            return _with_lists_and_attachments(emails, table)
        ends, indices = _flatten(table.column("indices"))
        _, values = _flatten(table.column("values"))
        values = values.copy()  # Arrow memory is read-only, and sort_indices works in place
        matrix = csr_array(
            (values, self._column_of_code[indices], ends), shape=(len(table), len(self.feature_names))
        )
        matrix.sort_indices()
        return FeatureRows(self.feature_names, matrix)


def _with_lists_and_attachments(emails: list[Email], table: pa.Table) -> list[Email]:
    """Return e-mails with the mailing lists and attachments, which few have."""
    list_ids, attachments = table.column("list_id"), table.column("attachments")
    if list_ids.null_count + attachments.null_count == 2 * len(emails):
        return emails
    rows = zip(emails, cast("Any", list_ids.to_pylist()), cast("Any", attachments.to_pylist()), strict=True)
    return [
        replace(
            email,
            list_id=list_id or "",
            attachments=tuple((item["name"], item["content_type"]) for item in items or ()),
        )
        for email, list_id, items in rows
    ]


def _weights_of(column: pa.ChunkedArray[Any]) -> Floats:
    """Return the weights in a column, in which null stands for 1."""
    weights = np.asarray(column.to_numpy(), dtype=np.float64)  # with NaN for null
    return np.where(np.isnan(weights), 1.0, weights)


def _flatten(column: pa.ChunkedArray[Any]) -> tuple[Ints, AnyArray]:
    """Return the n + 1 offsets of the rows of a column of lists, and all their items."""
    lists = cast("pa.ListArray[Any]", column.combine_chunks())
    offsets = lists.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets - offsets[0], lists.flatten().to_numpy(zero_copy_only=False)
