"""Reads a whole file into memory, with the checks of an ingestion and without a store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from models.data.examples import Documents, Examples, FeatureRows
from models.data.files.input_file import open_input_file
from models.data.ingestion.label_changes import LabelChanges
from models.data.ingestion.processing import process_file
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.readers.registry import FORMATS
from models.data.record import Record
from models.errors import ParameterError
from models.labels import LabelTree


def read_examples(
    path: str | Path,
    format: str | None = None,  # noqa: A002 - the name in the HTTP API
    *,
    tree: LabelTree | None = None,
    options: dict[str, Any] | FormatOptionsBase | None = None,
    limits: IngestLimits | None = None,
    max_bad_records: int = 0,
    changes: LabelChanges | None = None,
) -> Examples:
    r"""Read the labelled examples of a file into memory.

    The service reads uploads with the same readers and the same checks.

    Args:
        path: the file, compressed or not.
        format: ``jsonl``, ``csv``, ``svmlight``, ``arff``, ``fasttext``, ``parquet``, ``mbox`` or
            ``eml_zip``; None detects the format from the content.
        tree: the label tree; every label set also gets the ancestors of its labels.
        options: options of the format, for example ``{"labels": "departments"}``; they need ``format``. None
            means the defaults.
        limits: limits on the content; None means the defaults.
        max_bad_records: number of bad records to skip; one more rejects the file.
        changes: labels to rename, remove or merge; None keeps them as they are.

    Raises:
        BadDataError: the file cannot be used; lists the first 20 bad records.
        ParameterError: the format is unknown, or an option is invalid or belongs to another format.
        MissingExtraError: the format needs a library that is not installed.
        OSError: the file cannot be read.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "mail.jsonl")
    ...     _ = path.write_text('{"text": "a bill", "labels": ["billing"]}\n{"text": "hi", "labels": []}')
    ...     examples = read_examples(path)
    >>> examples.documents, examples.labels
    (['a bill', 'hi'], [('billing',), ()])
    """
    limits = limits or IngestLimits()
    sink = _Sink()
    with Path(path).open("rb") as stream:
        file = open_input_file(stream, Path(tempfile.gettempdir()), limits, None)
        processed = process_file(
            file,
            format,
            sink,
            sink.features,
            tree,
            _options(format, options),
            limits,
            max_bad_records,
            changes,
        )
    return sink.examples(dict(processed.final_names))


def _options(
    name: str | None, options: dict[str, Any] | FormatOptionsBase | None
) -> FormatOptionsBase | None:
    if not isinstance(options, dict):
        return options
    if name not in FORMATS:
        raise ParameterError(f"options need a format; set format to one of {', '.join(FORMATS)}", "/format")
    try:
        return FORMATS[name].options.model_validate({"format": name, **options})
    except ValueError as error:
        raise ParameterError(f"an option of the format {name} is invalid: {error}", "/options") from error


@dataclass
class _Sink:
    """Collects the examples of a file."""

    records: list[Record] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)
    features: dict[str, int] = field(default_factory=dict)

    def append(self, record: Record, id_: str, labels: list[str], /) -> None:
        """Receive one example."""
        self.records.append(record)
        self.ids.append(id_)
        self.labels.append(tuple(labels))

    def examples(self, final_names: dict[str, str]) -> Examples:
        """Return all examples; ``final_names`` replaces spellings of labels."""

        def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(sorted({final_names.get(name, name) for name in names})) if final_names else names

        records = self.records
        return Examples(
            kind=records[0].kind,
            documents=self._documents(),
            labels=[renamed(names) for names in self.labels],
            ids=self.ids,
            split_column=[record.split for record in records],
            unknown=(
                [renamed(tuple(record.unknown)) for record in records]
                if any(record.unknown for record in records)
                else ()
            ),
            weights=(
                [1.0 if record.weight is None else record.weight for record in records]
                if any(record.weight is not None for record in records)
                else ()
            ),
            fold_column=(
                [record.fold for record in records]
                if any(record.fold is not None for record in records)
                else ()
            ),
            selected_by_column=(
                [record.selected_by for record in records]
                if any(record.selected_by is not None for record in records)
                else ()
            ),
        )

    def _documents(self) -> Documents:
        records = self.records
        if records[0].text is not None:
            return [cast("str", record.text) for record in records]
        if records[0].email is not None:
            return [record.email for record in records if record.email is not None]
        names = sorted(self.features)
        column = {name: j for j, name in enumerate(names)}
        rows = [
            sorted((column[name], value) for name, value in (record.features or {}).items() if value)
            for record in records
        ]
        indptr = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        indices = np.array([j for row in rows for j, _ in row], dtype=np.int64)
        values = np.array([value for row in rows for _, value in row], dtype=np.float64)
        return FeatureRows(names, csr_array((values, indices, indptr), shape=(len(rows), len(names))))
