"""Assigns roles to the columns of a table, by their names or by the names in the options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from models.data.advice import Advice, Suggestion
from models.data.limits import IngestLimits
from models.data.options import TableOptions
from models.data.record import Declarations, RecordError, check_name, join_first, quoted
from models.data.roles.roles import ROLES, Assignment, DocumentKind, Field, named_document
from models.data.roles.row_numbers import is_row_number
from models.data.values.labels import LabelNumbers
from models.errors import BadDataError

_MAX_LISTED = 20


@dataclass(frozen=True)
class Table:
    """The columns of a table, as the format states them.

    Attributes:
        names: the name of each column; empty for a column without one.
        keys: the key of each column in a row.
        documents: columns that can contain whole documents, by the kind of document.
        types: names of the types by column; none for text cells, of which those of equal columns are joined.
        numbers: columns that can be features; None for all columns with a name.
        row_numbers: columns that are row numbers, which are no features by default.
        label_names: returns the names of the numbers in a column of labels, if the file states them.
    """

    names: Sequence[str]
    keys: Sequence[Hashable]
    documents: Mapping[DocumentKind, Collection[str]] = field(default_factory=dict)
    types: Mapping[str, str] | None = None
    numbers: Collection[str] | None = None
    row_numbers: Collection[str] = ()
    label_names: Callable[[str], Sequence[str] | None] = lambda _: None


@dataclass(frozen=True)
class TableColumns:
    """The roles of the columns of a table.

    Attributes:
        fields: the columns with a role.
        declarations: the labels and features that the header declares, with warnings about columns.
        label_numbers: the names of the numbers in the column of all labels, or None.
        unused: columns without a role.
    """

    fields: Assignment
    declarations: Declarations
    label_numbers: LabelNumbers | None
    unused: Sequence[str]


def assign_columns(table: Table, options: TableOptions, limits: IngestLimits) -> TableColumns:
    """Assign a role to every column.

    Args:
        table: the columns.
        options: the roles that the user sets.
        limits: limits on names.

    Raises:
        BadDataError: several columns have the same name where one is needed, a column is missing, no column
            contains labels, or the options contradict each other.
    """
    find = _Finder(table.names, options.ignore or ())
    flags = [find.named(name, options.flags_option) for name in options.own_columns or ()]
    labels = [find.named(name, "labels_in") for name in options.several_columns]
    if not labels and options.own_columns is None:
        labels = [find.labels(options.common_column)]
    if flags and options.label_names:
        raise BadDataError(
            "the option label_names needs one column of labels; rename the label columns instead"
        )
    document = _find_document(table, options, find)
    texts, email, features = _find_parts(options, find, document)
    taken = {*flags, *labels, *texts, *email.values()}
    if document is not None:
        taken.add(document[1])
    attributes = {}
    for role in ROLES:
        named = getattr(options, role.name, None)
        if named is None and (not role.by_name or (role.is_weak and role.name in {*taken, *features})):
            continue
        column = find.named_or_default(named, role.name)
        if column is not None:
            attributes[role] = column
            taken.add(column)
    for name in features:
        if name in taken:
            raise BadDataError(f"the column {quoted(name)} is a feature and has another role; choose one")
        if not _can_be_feature(table, name):
            raise BadDataError(
                f"the column {quoted(name)} has the type {(table.types or {}).get(name)}, which is not a "
                "number; remove it from the option features"
            )
    row_numbers: list[str] = []
    if not (texts or email or features or document):
        features, row_numbers = _default_features(table, {*taken, *find.ignored})
    taken.update(features)
    for name in (*features, *flags):
        try:
            check_name(name, "a column name", name, limits.name_length)
        except RecordError as error:
            raise BadDataError(f"column {quoted(name)}: {error.reason}") from error
    if both := taken & find.ignored:
        raise BadDataError(
            f"the column {quoted(min(both))} is in the option ignore and has a role; choose one"
        )
    joinable = {*labels, *(texts if options.text is not None else ())} if table.types is None else set()
    joined = find.repeated(taken, joinable)
    by_name: dict[str, list[Field]] = {}
    for name, key in zip(table.names, table.keys, strict=True):
        by_name.setdefault(name, []).append(Field(key, name, name))

    def fields(*names: str) -> list[Field]:
        return [field for name in names for field in by_name[name]]

    text_fields = fields(*texts)
    label_numbers = _label_numbers(table, options, labels)
    unused = [name for name in find.counts if name not in taken]
    return TableColumns(
        Assignment(
            attributes=[(role, by_name[name][0]) for role, name in attributes.items()],
            labels=fields(*labels),
            flags=fields(*flags),
            texts=text_fields,
            joins_texts=len(text_fields) > 1,
            email={part: by_name[name][0] for part, name in email.items()},
            features=fields(*features),
            documents=[(document[0], by_name[document[1]][0])] if document else (),
        ),
        declarations=Declarations(
            labels=[*flags, *(label_numbers.names if label_numbers else ())],
            features=features,
            warnings=_warnings([name for name in unused if name not in find.ignored], row_numbers, joined),
        ),
        label_numbers=label_numbers,
        unused=unused,
    )


def _warnings(unused: Sequence[str], row_numbers: Sequence[str], joined: Mapping[str, int]) -> list[str]:
    """Return the warnings about columns.

    Args:
        unused: columns without a role, except those that the user ignores.
        row_numbers: the unused columns that are row numbers.
        joined: number of columns of each name that occurs more than once in the text or the labels.
    """
    warnings = []
    numbers = set(row_numbers)
    if others := [name for name in unused if name and name not in numbers]:
        warnings.append(f"unused columns: {join_first(others, _MAX_LISTED)}")
    if row_numbers:
        warnings.append(
            f"columns of row numbers: {join_first(row_numbers, _MAX_LISTED)}; they are not read as features; "
            "if you need them, list all features in the option features"
        )
    if joined:
        counts = ", ".join(f"{quoted(name)} ({count} columns)" for name, count in joined.items())
        warnings.append(f"columns with the same name: {counts}; their cells are joined")
    return warnings


def _find_document(table: Table, options: TableOptions, find: _Finder) -> tuple[DocumentKind, str] | None:
    """Return the kind and the name of the column that contains whole documents, if there is one."""
    raw_email: str | None = getattr(options, "raw_email", None)
    if raw_email is not None:
        return "raw_email", find.named(raw_email, "raw_email")
    features = options.features or ()
    names = {"features": features[0]} if len(features) == 1 else {}
    for kind, columns in table.documents.items():
        name = names.get(kind, kind)
        if name in columns and name not in find.ignored:
            return kind, name
    return None


def _find_parts(
    options: TableOptions, find: _Finder, document: tuple[DocumentKind, str] | None
) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the columns of the text, of the e-mail and of the features that the user names."""
    option = named_document(options)
    features = [find.named(name, "features") for name in options.features or ()]
    if document is not None:
        kind, column = document
        is_same = option == kind and features in ([], [column])
        if option is not None and not is_same:
            raise BadDataError(
                f"the column {quoted(column)} already contains the document; omit the option {option}"
            )
        return [], {}, []
    email = {
        part: find.named(name, f"email.{part.rstrip('_')}") for part, name in options.email_parts.items()
    }
    texts = [find.named(name, "text") for name in options.texts]
    if option is None and (default := find.named_or_default(None, "text")) is not None:
        texts = [default]
    return texts, email, features


def _can_be_feature(table: Table, name: str) -> bool:
    return bool(name) if table.numbers is None else name in table.numbers


def _default_features(table: Table, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the columns without another role that are features, and those that are row numbers.

    Raises:
        BadDataError: no column can be a feature.
    """
    others = [name for name in table.names if name not in taken]
    row_numbers = [name for name in others if name in table.row_numbers or is_row_number(name)]
    numbers = set(row_numbers)
    features = [name for name in others if name not in numbers and _can_be_feature(table, name)]
    if not features:
        types = table.types
        columns = join_first(
            table.names,
            _MAX_LISTED,
            form=quoted if types is None else lambda name: f"{quoted(name)} ({types[name]})",
        )
        message = (
            "no column is left for the document; set the option text, features or email; "
            f"the columns are {columns}"
        )
        raise BadDataError(Advice(message, Suggestion("options/text", choices=table.names)))
    return features, row_numbers


def _label_numbers(table: Table, options: TableOptions, columns: Sequence[str]) -> LabelNumbers | None:
    if options.label_names:
        return LabelNumbers(options.label_names, options.first_label)
    names = table.label_names(columns[0]) if len(columns) == 1 else None
    return LabelNumbers(names, 0) if names else None


class _Finder:
    """Finds columns by name.

    Attributes:
        counts: number of columns of each name.
        ignored: columns that the user ignores.
    """

    def __init__(self, names: Sequence[str], ignored: Sequence[str]) -> None:
        self.counts = Counter(names)
        self._names = names
        self.ignored = {self.named(name, "ignore") for name in ignored}

    def named(self, name: str, option: str) -> str:
        """Return the column that an option names."""
        if name not in self.counts:
            raise self._missing(
                f"the option {option} names the column {quoted(name)}, which does not exist", option
            )
        return name

    def named_or_default(self, name: str | None, option: str) -> str | None:
        """Return the column that an option names, or else the column with the name of the option."""
        if name is not None:
            return self.named(name, option)
        return option if option in self.counts and option not in self.ignored else None

    def labels(self, name: str | None) -> str:
        """Return the column of all labels."""
        found = self.named_or_default(name, "labels") or self.named_or_default(None, "label")
        if found is None:
            raise self._missing(
                "there is no column 'labels'; set the option labels to the column that contains the labels, "
                "or to the list of label columns",
                "labels",
            )
        return found

    def _missing(self, message: str, option: str) -> BadDataError:
        """Return the error of an option that must name one of the columns."""
        text = f"{message}; the columns are {join_first(self._names, _MAX_LISTED)}"
        return BadDataError(Advice(text, Suggestion(f"options/{option}", choices=self._names)))

    def repeated(self, roles: Collection[str], joinable: Collection[str | None]) -> dict[str, int]:
        """Return how many columns have each name that occurs more than once.

        Exports repeat a column for each value of a field. They can be joined if they are the text or the
        labels; in any other role, a second column would be lost.
        """
        repeated = {name: count for name, count in self.counts.items() if count > 1 and name in roles}
        for name in repeated:
            if name not in joinable:
                raise BadDataError(
                    f"two columns have the name {quoted(name)}; rename one, or list the name in the option "
                    "ignore. To join columns of a text, set the option text"
                )
        return repeated
