"""Shared by CSV and Parquet: assigns roles to named columns, and turns rows of text cells into records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from models.data.examples import Split
from models.data.limits import IngestLimits
from models.data.readers.options import EmailColumns, TableOptions
from models.data.record import Declarations, Record, RecordError, check_name, check_split, quoted
from models.errors import BadDataError
from models.mail.email import Email

_TRUE = {"1", "true", "yes", "t", "y", "x", "1.0"}
_FALSE = {"", "0", "false", "no", "f", "n", "0.0"}
_MAX_LISTED = 20


@dataclass(frozen=True)
class ColumnRoles:
    """The role of every column.

    Attributes:
        text: the column of the text, or None.
        email: columns of the parts of an e-mail by attribute of ``Email``; may be empty.
        features: columns of numeric features.
        labels: the column of all labels, or None.
        label_columns: columns that are each a label.
        id: the column of the ids, or None.
        split: the column of the splits, or None.
        unused: columns without a role.
    """

    text: str | None
    email: Mapping[str, str]
    features: Sequence[str]
    labels: str | None
    label_columns: Sequence[str]
    id: str | None
    split: str | None
    unused: Sequence[str]

    def declarations(self) -> Declarations:
        """Return the labels and features that the header declares, with a warning about unused columns."""
        warnings = []
        if self.unused:
            warnings.append(f"unused columns: {_join_names(self.unused)}")
        return Declarations(labels=self.label_columns, features=self.features, warnings=warnings)


def assign_columns(
    names: Sequence[str],
    options: TableOptions,
    limits: IngestLimits,
    *,
    document_column: str | None = None,
    can_be_feature: Callable[[str], bool] = bool,
) -> ColumnRoles:
    """Assign a role to every column.

    Args:
        names: names of the columns.
        options: the roles that the user sets.
        limits: limits on names.
        document_column: a column that contains the whole document, or None.
        can_be_feature: whether a column can contain numbers; by default, every column with a name can.

    Raises:
        BadDataError: two columns have the same name, a column is missing, no column contains labels, or the
            options select more than one kind of document.
    """
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise BadDataError(f"two columns have the name {quoted(repeated[0])}; rename one")

    def find(name: str | None, default: str, option: str) -> str | None:
        if name is None:
            return default if default in names else None
        if name not in names:
            raise BadDataError(
                f"the option {option} names the column {quoted(name)}, which does not exist; "
                f"the columns are {_join_names(names)}"
            )
        return name

    label_columns = options.labels if isinstance(options.labels, list) else []
    labels = None if label_columns else find(_single_name(options.labels), "labels", "labels")
    id_ = find(options.id, "id", "id")
    split = find(options.split, "split", "split")
    for name in label_columns:
        find(name, name, "labels")
    if labels is None and not label_columns:
        raise BadDataError(
            "there is no column 'labels'; set the option labels to the column that contains the labels, or "
            f"to the list of label columns; the columns are {_join_names(names)}"
        )
    kinds = [option for option in ("text", "features", "email") if getattr(options, option) is not None]
    if len(kinds) > 1:
        raise BadDataError(f"the options set {' and '.join(kinds)}; set only one of them")
    email = _email_columns(options.email or EmailColumns())
    for part, name in email.items():
        find(name, name, f"email.{part.rstrip('_')}")
    text = None if options.features or options.email else find(options.text, "text", "text")
    if document_column is not None and (kinds or email):
        raise BadDataError(
            f"the column {quoted(document_column)} already contains the document; omit the option {kinds[0]}"
        )
    text = None if document_column is not None else text
    used = {document_column, labels, id_, split, text, *label_columns, *email.values()}
    features = options.features or []
    for name in features:
        find(name, name, "features")
        if name in used:
            raise BadDataError(f"the column {quoted(name)} is a feature and has another role; choose one")
    if text is None and document_column is None and not email and not features:
        features = [name for name in names if name not in used and can_be_feature(name)]
        if not features:
            raise BadDataError(
                "no column is left for the document; set the option text, features or email; "
                f"the columns are {_join_names(names)}"
            )
    for name in (*features, *label_columns):
        try:
            check_name(name, "a column name", name, limits.name_length)
        except RecordError as error:
            raise BadDataError(f"column {quoted(name)}: {error.reason}") from error
    used.update(features)
    return ColumnRoles(
        text=text,
        email=email,
        features=features,
        labels=labels,
        label_columns=label_columns,
        id=id_,
        split=split,
        unused=[name for name in names if name not in used],
    )


def _single_name(value: str | list[str] | None) -> str | None:
    return value if isinstance(value, str) else None


def _email_columns(columns: EmailColumns) -> dict[str, str]:
    return {part: name for part in EmailColumns.model_fields if (name := getattr(columns, part)) is not None}


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:_MAX_LISTED])) + (", ..." if len(names) > _MAX_LISTED else "")


class RowReader:
    """Turns rows of text cells into records.

    Args:
        columns: the roles of the columns.
        separator: separator between the labels in a cell.
        limits: limits on names.
    """

    def __init__(self, columns: ColumnRoles, separator: str, limits: IngestLimits) -> None:
        self._columns = columns
        self._separator = separator
        self._limits = limits
        self._n_missing = 0

    def record(self, cells: Mapping[str, str], line: int) -> Record:
        """Return the record of one row.

        Raises:
            RecordError: a cell is invalid; names the column.
        """
        columns = self._columns
        record = Record(line=line, labels=self._labels(cells))
        if columns.id is not None:
            record.id = check_name(cells[columns.id], "the id", columns.id, self._limits.name_length)
        if columns.split is not None:
            record.split = parse_split(cells[columns.split], columns.split)
        if columns.text is not None:
            record.text = cells[columns.text]
        elif columns.email:
            record.email = build_email({part: cells[name] for part, name in columns.email.items()})
        else:
            record.features = {name: self._number(cells[name], name) for name in columns.features}
        return record

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last row."""
        if not self._n_missing:
            return Declarations()
        return Declarations(warnings=[f"empty feature cells: {self._n_missing:,}; they were read as 0"])

    def _labels(self, cells: Mapping[str, str]) -> list[str]:
        column = self._columns.labels
        if column is not None:
            return split_labels(cells[column], self._separator, column, self._limits)
        return [name for name in self._columns.label_columns if parse_flag(cells[name], name)]

    def _number(self, cell: str, column: str) -> float:
        if not cell or cell.isspace():
            self._n_missing += 1
            return 0.0
        return parse_number(cell, column)


def split_labels(cell: str, separator: str, column: str, limits: IngestLimits) -> list[str]:
    """Split a cell into labels and remove the white space around them.

    Raises:
        RecordError: a label is invalid.
    """
    names = (part.strip() for part in cell.split(separator))
    return [check_name(name, "a label", column, limits.name_length) for name in names if name]


def build_email(parts: Mapping[str, str]) -> Email:
    """Return an e-mail from its parts, which are keyed by attribute of ``Email``."""
    return Email(
        subject=parts.get("subject", ""),
        from_=parts.get("from_", ""),
        to=parts.get("to", ""),
        text=parts.get("text", ""),
        html=parts.get("html", ""),
    )


def parse_split(cell: str, column: str) -> Split | None:
    """Return the split in a cell; None for an empty cell."""
    cell = cell.strip()
    return check_split(cell, column) if cell else None


def parse_flag(cell: str, column: str) -> bool:
    """Return whether a cell of a label column states that the label is relevant.

    Raises:
        RecordError: the cell is neither a yes nor a no.
    """
    word = cell.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise RecordError(f"a label column must contain 0 or 1, not {quoted(cell)}", column)


def parse_number(cell: str, column: str) -> float:
    """Return the finite number in a cell.

    Raises:
        RecordError: the cell is not a finite number.
    """
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in cell:
        raise RecordError(f"{quoted(cell)} is not a finite number such as -1.5 or 2e-3", column)
    return number
