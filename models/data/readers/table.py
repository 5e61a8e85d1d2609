"""What CSV and Parquet have in common: rows of named cells, some of which are labels."""

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

_ON = {"1", "true", "yes", "t", "y", "x", "1.0"}
_OFF = {"", "0", "false", "no", "f", "n", "0.0"}


@dataclass(frozen=True)
class ColumnRoles:
    """The part that every column plays.

    Attributes:
        text: column of the text, or None.
        email: columns of an e-mail by attribute of ``Email``, or empty.
        features: columns of numeric features.
        labels: column of all labels, or None.
        label_columns: columns that are each a label.
        id: column of ids, or None.
        split: column of splits, or None.
        unused: columns that play none.
    """

    text: str | None
    email: Mapping[str, str]
    features: Sequence[str]
    labels: str | None
    label_columns: Sequence[str]
    id: str | None
    split: str | None
    unused: Sequence[str]

    def declared(self) -> Declarations:
        """What the head of the table says of all rows."""
        remarks = []
        if self.unused:
            remarks.append(f"columns that are not used: {_listed(self.unused)}")
        return Declarations(labels=self.label_columns, features=self.features, remarks=remarks)


def assign_columns(
    names: Sequence[str],
    options: TableOptions,
    limits: IngestLimits,
    *,
    whole: str | None = None,
    may_be_feature: Callable[[str], bool] = bool,
) -> ColumnRoles:
    """The part that every column plays.

    Args:
        names: of the columns.
        options: what the user says of them.
        limits: caps on names.
        whole: a column that is the document by itself, so that no other is looked for.
        may_be_feature: whether a column can hold numbers; any with a name can where nobody knows.

    Raises:
        BadDataError: columns of the same name or without one, a column that is not there, no column of
            labels, or more than one kind of document.
    """
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise BadDataError(f"two columns are called {quoted(repeated[0])}; rename one")

    def chosen(given: str | None, default: str, option: str) -> str | None:
        if given is None:
            return default if default in names else None
        if given not in names:
            raise BadDataError(
                f"there is no column {quoted(given)} (option {option}); the columns are {_listed(names)}"
            )
        return given

    label_columns = options.labels if isinstance(options.labels, list) else []
    labels = None if label_columns else chosen(_name(options.labels), "labels", "labels")
    id_ = chosen(options.id, "id", "id")
    split = chosen(options.split, "split", "split")
    for name in label_columns:
        chosen(name, name, "labels")
    if labels is None and not label_columns:
        raise BadDataError(
            "there is no column labels; name the column that holds them, or the columns that are labels, "
            f"in the option labels; the columns are {_listed(names)}"
        )
    given = [o for o in ("text", "features", "email") if getattr(options, o) is not None]
    if len(given) > 1:
        raise BadDataError(f"the options name {' and '.join(given)}; a document is only one of them")
    email = _email_columns(options.email or EmailColumns())
    for part, name in email.items():
        chosen(name, name, f"email.{part.rstrip('_')}")
    text = None if options.features or options.email else chosen(options.text, "text", "text")
    if whole is not None and (given or email):
        raise BadDataError(f"the column {quoted(whole)} is the document; leave {given[0]} out")
    text = None if whole is not None else text
    taken = {whole, labels, id_, split, text, *label_columns, *email.values()}
    features = options.features or []
    for name in features:
        chosen(name, name, "features")
        if name in taken:
            raise BadDataError(f"the column {quoted(name)} cannot be a feature and something else")
    if text is None and whole is None and not email and not features:
        features = [name for name in names if name not in taken and may_be_feature(name)]
        if not features:
            raise BadDataError("no column is left for the document; name it in the option text")
    for name in (*features, *label_columns):
        try:
            check_name(name, "a column name", name, limits.name_length)
        except RecordError as error:
            raise BadDataError(f"column {quoted(name)}: {error.reason}") from error
    taken.update(features)
    return ColumnRoles(
        text=text,
        email=email,
        features=features,
        labels=labels,
        label_columns=label_columns,
        id=id_,
        split=split,
        unused=[name for name in names if name not in taken],
    )


def _name(value: str | list[str] | None) -> str | None:
    return value if isinstance(value, str) else None


def _email_columns(columns: EmailColumns) -> dict[str, str]:
    return {part: name for part in EmailColumns.model_fields if (name := getattr(columns, part)) is not None}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:20])) + (", ..." if len(names) > 20 else "")


class RowReader:
    """Turns rows of text cells into records.

    Args:
        columns: the part that every column plays.
        separator: what stands between two labels of a cell.
        limits: caps on names.
    """

    def __init__(self, columns: ColumnRoles, separator: str, limits: IngestLimits) -> None:
        self._columns = columns
        self._separator = separator
        self._limits = limits
        self.n_missing = 0

    def record(self, cells: Mapping[str, str], line: int) -> Record:
        """The record of one row.

        Raises:
            RecordError: names the column.
        """
        columns = self._columns
        record = Record(line=line, labels=self.labels(cells))
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

    def labels(self, cells: Mapping[str, str]) -> list[str]:
        """The labels of one row."""
        column = self._columns.labels
        if column is not None:
            return split_labels(cells[column], self._separator, column, self._limits)
        return [name for name in self._columns.label_columns if parse_flag(cells[name], name)]

    def _number(self, cell: str, column: str) -> float:
        if not cell or cell.isspace():
            self.n_missing += 1
            return 0.0
        return parse_number(cell, column)

    def closing(self) -> Declarations:
        """What is to be said after the last row."""
        if not self.n_missing:
            return Declarations()
        return Declarations(remarks=[f"{self.n_missing:,} cells of features are empty and were read as 0"])


def split_labels(cell: str, separator: str, column: str, limits: IngestLimits) -> list[str]:
    """The labels of one cell, white space around them dropped.

    Raises:
        RecordError: one cannot be a label.
    """
    names = (part.strip() for part in cell.split(separator))
    return [check_name(name, "a label", column, limits.name_length) for name in names if name]


def build_email(parts: Mapping[str, str]) -> Email:
    """An e-mail of the parts given, by attribute."""
    return Email(
        subject=parts.get("subject", ""),
        from_=parts.get("from_", ""),
        to=parts.get("to", ""),
        text=parts.get("text", ""),
        html=parts.get("html", ""),
    )


def parse_split(cell: str, column: str) -> Split | None:
    """The split that a cell tells; none where it is empty."""
    cell = cell.strip()
    return check_split(cell, column) if cell else None


def parse_flag(cell: str, column: str) -> bool:
    """Whether a cell says that its label is relevant.

    Raises:
        RecordError: it is neither a yes nor a no.
    """
    word = cell.strip().lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    raise RecordError(f"a label column holds 0 or 1, not {quoted(cell)}", column)


def parse_number(cell: str, column: str) -> float:
    """A finite number as it is written in files of data.

    Raises:
        RecordError: anything else.
    """
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in cell:
        raise RecordError(f"{quoted(cell)} is not a finite number, such as -1.5 or 2e-3", column)
    return number
