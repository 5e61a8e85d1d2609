"""Shared by CSV and Parquet: assigns roles to named columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from models.data.limits import IngestLimits
from models.data.readers.cells import LabelNumbers
from models.data.readers.options import EmailColumns, TableOptions
from models.data.record import Declarations, RecordError, check_name, quoted
from models.errors import BadDataError

_MAX_LISTED = 20


@dataclass(frozen=True)
class ColumnRoles:
    """The role of every column.

    Attributes:
        text: the columns of the text, in their order in the text; may be empty.
        email: columns of the parts of an e-mail by attribute of ``Email``; may be empty.
        features: columns of numeric features.
        labels: the column of all labels, or None.
        label_columns: columns that are each a label.
        label_numbers: the names of the numbers in the column of all labels, or None.
        id: the column of the ids, or None.
        split: the column of the splits, or None.
        weight: the column of the weights, or None.
        fold: the column of the folds, or None.
        unused: columns without a role.
        row_numbers: the unused columns that are row numbers.
        joined: number of columns of each name that occurs more than once in the text or the labels.
    """

    text: Sequence[str]
    email: Mapping[str, str]
    features: Sequence[str]
    labels: str | None
    label_columns: Sequence[str]
    label_numbers: LabelNumbers | None
    id: str | None
    split: str | None
    weight: str | None
    fold: str | None
    unused: Sequence[str]
    row_numbers: Sequence[str]
    joined: Mapping[str, int]

    def declarations(self, ignored: Sequence[str]) -> Declarations:
        """Return the labels and features that the header declares, with warnings about unused columns.

        Args:
            ignored: unused columns about which no warning is needed.
        """
        warnings = []
        silent = {"", *ignored, *self.row_numbers}
        if unused := [name for name in self.unused if name not in silent]:
            warnings.append(f"unused columns: {_join_names(unused)}")
        if self.row_numbers:
            warnings.append(
                f"columns of row numbers: {_join_names(self.row_numbers)}; they are not read as features; "
                "if you need them, list all features in the option features"
            )
        if self.joined:
            counts = ", ".join(f"{quoted(name)} ({count} columns)" for name, count in self.joined.items())
            warnings.append(f"columns with the same name: {counts}; their cells are joined")
        names = self.label_numbers.names if self.label_numbers else ()
        return Declarations(labels=[*self.label_columns, *names], features=self.features, warnings=warnings)


def assign_columns(
    names: Sequence[str],
    options: TableOptions,
    limits: IngestLimits,
    *,
    is_row_number: Callable[[str], bool],
    can_be_feature: Callable[[str], bool] = bool,
    document_column: str | None = None,
    types: Mapping[str, str] | None = None,
) -> ColumnRoles:
    """Assign a role to every column.

    Args:
        names: names of the columns.
        options: the roles that the user sets.
        limits: limits on names.
        is_row_number: whether a column contains row numbers, which are no features by default.
        can_be_feature: whether a column can contain numbers; by default, every column with a name can.
        document_column: a column that contains the whole document, or None.
        types: names of the types of the columns; None for text cells, which can be joined.

    Raises:
        BadDataError: several columns have the same name where one is needed, a column is missing, no column
            contains labels, or the options contradict each other.
    """
    find = _Finder(names, options.ignore or ())
    label_columns, labels = [], None
    if options.own_columns is not None:
        option = "label_columns" if options.labels is None else "labels"
        label_columns = [find.named(name, option) for name in options.own_columns]
    else:
        labels = find.labels(options.common_column)
    if label_columns and options.label_names:
        raise BadDataError(
            "the option label_names needs one column of labels; rename the label columns instead"
        )
    id_ = find.named_or_default(options.id, "id")
    split = find.named_or_default(options.split, "split")
    weight = None if options.weight is None else find.named(options.weight, "weight")
    # Without the option, a column with another role is no fold, because its name alone says little.
    has_other_role = "fold" in {*(options.features or ()), *label_columns, labels, id_, split, weight}
    fold = None if options.fold is None and has_other_role else find.named_or_default(options.fold, "fold")
    kinds = [option for option in ("text", "features", "email") if getattr(options, option) is not None]
    if len(kinds) > 1:
        raise BadDataError(f"the options set {' and '.join(kinds)}; set only one of them")
    if document_column is not None and kinds:
        raise BadDataError(
            f"the column {quoted(document_column)} already contains the document; omit the option {kinds[0]}"
        )
    email = {
        part: find.named(name, f"email.{part.rstrip('_')}")
        for part, name in _email_columns(options.email or EmailColumns()).items()
    }
    features = [find.named(name, "features") for name in options.features or ()]
    texts = [options.text] if isinstance(options.text, str) else options.text or ()
    text = [find.named(name, "text") for name in texts]
    if not kinds and document_column is None and (default := find.named_or_default(None, "text")) is not None:
        text = [default]
    roles = {name for name in (document_column, labels, id_, split, weight, fold) if name is not None}
    roles.update(text, label_columns, email.values())
    for name in features:
        if name in roles:
            raise BadDataError(f"the column {quoted(name)} is a feature and has another role; choose one")
        if not can_be_feature(name):
            raise BadDataError(
                f"the column {quoted(name)} has the type {(types or {}).get(name)}, which is not a number; "
                "remove it from the option features"
            )
    row_numbers: list[str] = []
    if not text and document_column is None and not email and not features:
        others = [name for name in names if name not in roles and name not in find.ignored]
        row_numbers = [name for name in others if is_row_number(name)]
        features = [name for name in others if can_be_feature(name) and not is_row_number(name)]
        if not features:
            raise BadDataError(
                "no column is left for the document; set the option text, features or email; "
                f"the columns are {_join_names(names, types)}"
            )
    roles.update(features)
    for name in (*features, *label_columns):
        try:
            check_name(name, "a column name", name, limits.name_length)
        except RecordError as error:
            raise BadDataError(f"column {quoted(name)}: {error.reason}") from error
    if both := [name for name in roles if name in find.ignored]:
        raise BadDataError(
            f"the column {quoted(min(both))} is in the option ignore and has a role; choose one"
        )
    joinable = {labels, *(text if options.text is not None else ())} if types is None else set()
    return ColumnRoles(
        text=text,
        email=email,
        features=features,
        labels=labels,
        label_columns=label_columns,
        label_numbers=LabelNumbers(options.label_names, options.first_label) if options.label_names else None,
        id=id_,
        split=split,
        weight=weight,
        fold=fold,
        unused=[name for name in find.counts if name not in roles],
        row_numbers=row_numbers,
        joined=find.repeated(roles, joinable),
    )


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
            raise BadDataError(
                f"the option {option} names the column {quoted(name)}, which does not exist; "
                f"the columns are {_join_names(self._names)}"
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
            raise BadDataError(
                "there is no column 'labels'; set the option labels to the column that contains the labels, "
                f"or to the list of label columns; the columns are {_join_names(self._names)}"
            )
        return found

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


def _email_columns(columns: EmailColumns) -> dict[str, str]:
    return {part: name for part in EmailColumns.model_fields if (name := getattr(columns, part)) is not None}


def _join_names(names: Sequence[str], types: Mapping[str, str] | None = None) -> str:
    listed = [quoted(name) + (f" ({types[name]})" if types else "") for name in names[:_MAX_LISTED]]
    return ", ".join(listed) + (", ..." if len(names) > _MAX_LISTED else "")
