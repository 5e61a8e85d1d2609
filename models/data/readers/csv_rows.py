"""Turns rows of text cells into records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from models.data.limits import IngestLimits
from models.data.readers.cells import build_email, join_texts, parse_flag, parse_number
from models.data.readers.options import TableOptions
from models.data.readers.row_numbers import RowNumberFinder
from models.data.readers.table import ColumnRoles
from models.data.readers.values import (
    ParsedLabels,
    parse_fold,
    parse_id,
    parse_labels,
    parse_split,
    split_words,
)
from models.data.record import Declarations, Record, RecordError, check_weight

_MAX_LISTED = 10


class RowReader:
    """Turns rows of text cells into records.

    Args:
        columns: the roles of the columns.
        names: the names of the columns, empty for a column without a name.
        options: the options of the table.
        decimal: the decimal mark of numbers.
        limits: limits on names.
    """

    def __init__(
        self,
        columns: ColumnRoles,
        names: Sequence[str],
        options: TableOptions,
        decimal: Literal[".", ","],
        limits: IngestLimits,
    ) -> None:
        self._columns = columns
        self._n_columns = len(names)
        self._n_named = max((j for j, name in enumerate(names, 1) if name), default=0)
        self._separator = options.label_separator
        self._split_words = split_words(options.split_words or {})
        self._decimal = decimal
        self._limits = limits

        places: dict[str, list[int]] = {}
        for j, name in enumerate(names):
            places.setdefault(name, []).append(j)
        self._id = None if columns.id is None else places[columns.id][0]
        self._split = None if columns.split is None else places[columns.split][0]
        self._weight = None if columns.weight is None else places[columns.weight][0]
        self._fold = None if columns.fold is None else places[columns.fold][0]
        self._texts = [j for name in columns.text for j in places[name]]
        self._email = {part: places[name][0] for part, name in columns.email.items()}
        self._features = [(places[name][0], name) for name in columns.features]
        self._labels = [] if columns.labels is None else places[columns.labels]
        self._label_columns = [(places[name][0], name) for name in columns.label_columns]
        self._unnamed = places.get("", [])
        self._unnamed_with_content: set[int] = set()
        self._row_numbers = RowNumberFinder([] if options.features else columns.features)
        self._may_be_other = not options.features
        self._n_empty_features = 0
        self._n_empty_flags = 0

    def record(self, cells: list[str], line: int) -> Record:
        """Return the record of one row.

        Raises:
            RecordError: the row has too few or too many cells, or a cell is invalid; names the column.
        """
        if len(cells) != self._n_columns:
            cells = self._fit(cells)
        if self._unnamed:
            self._unnamed_with_content.update(j for j in self._unnamed if cells[j])
        columns = self._columns
        labels, unknown = self._parse_flags(cells) if self._label_columns else self._parse_labels(cells)
        record = Record(line, labels, unknown=unknown)
        if self._id is not None:
            record.id = parse_id(cells[self._id], columns.id or "", self._limits)
        if self._split is not None:
            record.split = parse_split(cells[self._split], columns.split or "", self._split_words)
        if self._weight is not None and (cell := cells[self._weight]) and not cell.isspace():
            name = columns.weight or ""
            record.weight = check_weight(parse_number(cell, name, self._decimal), name)
        if self._fold is not None:
            record.fold = parse_fold(cells[self._fold], columns.fold or "")
        if len(self._texts) == 1:
            record.text = cells[self._texts[0]]
        elif self._texts:
            record.text = join_texts(cells[j] for j in self._texts)
        elif self._email:
            record.email = build_email({part: cells[j] for part, j in self._email.items()})
        else:
            record.features = features = {name: self._number(cells[j], name) for j, name in self._features}
            if self._row_numbers.is_watching:
                self._row_numbers.add(features)
        return record

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last row."""
        warnings = []
        if self._n_empty_features:
            warnings.append(f"empty feature cells: {self._n_empty_features:,}; they were read as 0")
        if self._n_empty_flags:
            warnings.append(
                f"empty cells in label columns: {self._n_empty_flags:,}; they were read as no; "
                "write -1 or ? if nobody knows"
            )
        if self._unnamed_with_content:
            numbers = [str(j + 1) for j in sorted(self._unnamed_with_content)]
            listed = ", ".join(numbers[:_MAX_LISTED]) + (", ..." if len(numbers) > _MAX_LISTED else "")
            warnings.append(
                f"columns without a name, which were not read: {listed}; if they are not row numbers, "
                "name them in the header row"
            )
        return Declarations(warnings=[*warnings, *self._row_numbers.warnings()])

    def _fit(self, cells: list[str]) -> list[str]:
        """Add or remove cells at the end that spreadsheets omit or add: those without a name or content."""
        if len(cells) < self._n_named or any(cells[self._n_columns :]):
            raise RecordError(
                f"the row has {len(cells)} cells, but the table has {self._n_columns} columns; "
                "check the delimiter, and cells with a delimiter that are not in quotes"
            )
        return (cells + [""] * (self._n_columns - len(cells)))[: self._n_columns]

    def _parse_labels(self, cells: list[str]) -> ParsedLabels:
        column = self._columns.labels or ""
        parsed = parse_labels(cells[self._labels[0]], column, self._separator, self._limits)
        for j in self._labels[1:]:
            more = parse_labels(cells[j], column, self._separator, self._limits)
            parsed = ParsedLabels(parsed.labels + more.labels, parsed.unknown + more.unknown)
        numbers = self._columns.label_numbers
        return parsed if numbers is None else numbers.name_all(parsed, column)

    def _parse_flags(self, cells: list[str]) -> ParsedLabels:
        labels, unknown = [], []
        for j, name in self._label_columns:
            cell = cells[j]
            if cell == "0":
                continue
            flag = parse_flag(cell, name)
            if flag:
                labels.append(name)
            elif flag is None:
                unknown.append(name)
            elif not cell or cell.isspace():
                self._n_empty_flags += 1
        return ParsedLabels(labels, unknown)

    def _number(self, cell: str, column: str) -> float:
        if not cell or cell.isspace():
            self._n_empty_features += 1
            return 0.0
        try:
            return parse_number(cell, column, self._decimal)
        except RecordError as error:
            if self._may_be_other and not any(map(str.isdigit, cell)):
                remedy = "if the column is not a feature, list it in the option ignore"
                raise RecordError(f"{error.reason}; {remedy}", column) from error
            raise
