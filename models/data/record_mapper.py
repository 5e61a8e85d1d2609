"""Turns the rows of a file into records: the one place that reads the fields of an example, for all formats.

A reader of a format with named fields yields rows, and a ``RecordMapper`` reads them. Which field has which
role is decided once for rows with the same fields (``roles``), and what a value means by the rules for all
formats (``values``). To add a field of examples, see ``roles.roles.ROLES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from models.data.advice import Advice, Suggestion
from models.data.limits import IngestLimits
from models.data.options import TableOptions
from models.data.record import Declarations, Record, RecordError, json_type, quoted
from models.data.roles.object_fields import ObjectFields
from models.data.roles.roles import (
    DOCUMENT_KINDS,
    EXAMPLE_FIELDS,
    Assignment,
    DocumentKind,
    Field,
    Parser,
    ValueRules,
)
from models.data.roles.row_numbers import RowNumberFinder
from models.data.roles.table_columns import Table, assign_columns
from models.data.values.documents import (
    join_texts,
    parse_email,
    parse_features,
    parse_raw_email,
    parse_text,
)
from models.data.values.labels import ParsedLabels, parse_labels
from models.data.values.scalars import (
    DecimalMark,
    is_missing,
    parse_flag,
    parse_number,
    parse_numbers,
    split_words,
)
from models.mail.email import Email

__all__ = ["EXAMPLE_FIELDS", "RecordMapper", "Table", "ValueSyntax"]

Row: TypeAlias = "Mapping[str, Any] | Sequence[Any]"
"""The values of a row by their keys: the names of fields, or the positions of columns."""

_NO_SEPARATOR: Final = "\x1f\x1e\x1f"  # occurs in no text
_MAX_KNOWN_LABELS: Final = 20_000
_MAX_PLANS: Final = 100
_MAX_PLAN_CHARS: Final = 10_000


@dataclass(frozen=True)
class ValueSyntax:
    """How a format writes values.

    Attributes:
        empty_features: what a warning calls features without a value.
        empty_flags: what a warning calls label columns without a value.
        unknown: how to write that it is not known whether a label applies.
        no: the usual value of a label column whose label does not apply.
        decimal: the decimal mark of numbers in texts; None if a text is no number.
        has_lists: whether labels are usually lists, so that a text with a separator can be one label.
    """

    empty_features: str
    empty_flags: str
    unknown: str = "-1"
    no: Any = 0
    decimal: DecimalMark | None = None
    has_lists: bool = False


class _Plan(NamedTuple):
    """How rows with the same fields are read.

    Attributes:
        labels: returns the labels of a row.
        attributes: the attribute, key, place and parser of each field with a single role.
        document: sets the document of a record.
    """

    labels: Callable[[Any], ParsedLabels]
    attributes: Sequence[tuple[str, Any, str, Parser]]
    document: Callable[[Any, Record], None]


class RecordMapper:
    """Turns rows into records.

    Args:
        options: the fields that the user names.
        limits: limits on names.
        syntax: how the format writes values.
        table: the columns, if all rows have the same; None for objects, of which each can have other fields.

    Attributes:
        declarations: the labels and features that the options and the names of columns declare.
        paths: the path to each nested field that an option names, by the key that its value has in a row.
        unused: the columns of the table that are not read.

    Raises:
        BadDataError: the options contradict each other or the columns.
    """

    def __init__(
        self, options: TableOptions, limits: IngestLimits, syntax: ValueSyntax, table: Table | None = None
    ) -> None:
        self._rules = ValueRules(limits, split_words(options.split_words or {}), syntax.decimal)
        self._syntax = syntax
        self._separator = options.label_separator
        self._can_be_one_label = syntax.has_lists and "label_separator" not in options.model_fields_set
        self._has_default_features = options.features is None
        self._known_labels: set[str] = set()
        self._n_empty_features = self._n_empty_flags = 0
        self._plans: dict[tuple[bool, tuple[str, ...]], _Plan] = {}
        self._plans_of_roles: dict[tuple[bool, frozenset[str]], _Plan] = {}
        self._is_table = table is not None
        self._table_plan: _Plan | None = None
        self._finish: Callable[[], Declarations] = Declarations
        self.paths: Mapping[str, Sequence[str]] = {}
        self.unused: Sequence[str] = ()
        self._row_numbers = RowNumberFinder([])
        if table is None:
            self._objects = objects = ObjectFields(options, limits)
            self.declarations, self._label_numbers = objects.declarations, objects.label_numbers
            self.paths = objects.paths
            self._finish = objects.final_declarations
        else:
            columns = assign_columns(table, options, limits)
            self.declarations, self._label_numbers = columns.declarations, columns.label_numbers
            self.unused = columns.unused
            self._table_plan = self._make_plan(columns.fields)
            if self._has_default_features:
                self._row_numbers = RowNumberFinder(self.declarations.features)

    def final_declarations(self) -> Declarations:
        """Return what is known only after the last row.

        Raises:
            BadDataError: no object has a field that an option names.
        """
        syntax = self._syntax
        declared = self._finish()
        warnings = [*declared.warnings]
        if self._n_empty_features:
            warnings.append(f"{syntax.empty_features}: {self._n_empty_features:,}; they were read as 0")
        if self._n_empty_flags:
            warnings.append(
                f"{syntax.empty_flags}: {self._n_empty_flags:,}; they were read as no; "
                f"write {syntax.unknown} if it is not known"
            )
        return replace(declared, warnings=[*warnings, *self._row_numbers.warnings()])

    def record(self, row: Row, line: int, labels: ParsedLabels | None = None) -> Record:
        """Return the record of a row.

        Args:
            row: the values by their keys.
            line: line number, for reports.
            labels: the labels, if they are not in a field.

        Raises:
            RecordError: a field is invalid; names it.
        """
        read_labels, attributes, read_document = self._table_plan or self._object_plan(
            row, has_labels=labels is not None
        )
        applicable, unknown = read_labels(row) if labels is None else labels
        record = Record(line, applicable, unknown=unknown)
        for attribute, key, place, parse in attributes:
            setattr(record, attribute, parse(row[key], place))
        read_document(row, record)
        return record

    def _object_plan(self, row: Row, *, has_labels: bool) -> _Plan:
        names = tuple(row)
        plan = self._plans.get((has_labels, names))
        if plan is None:
            # Objects differ mostly in fields without a role, or in features, so that they share a plan.
            present = self._objects.select(names, has_labels=has_labels)
            plan = self._plans_of_roles.get((has_labels, present))
            if plan is None:
                plan = self._make_plan(self._objects.assign(present, has_labels=has_labels))
                if len(self._plans_of_roles) < _MAX_PLANS:
                    self._plans_of_roles[has_labels, present] = plan
            if len(self._plans) < _MAX_PLANS and sum(map(len, names)) <= _MAX_PLAN_CHARS:
                self._plans[has_labels, names] = plan
        return plan

    def _make_plan(self, fields: Assignment) -> _Plan:
        labels = self._flags(fields.flags) if fields.flags else self._labels(fields.labels)
        if fields.unknown_labels is not None:
            labels = self._with_unknown(labels, fields.unknown_labels)
        return _Plan(
            labels,
            [
                (role.name, field.key, field.place, role.parser(self._rules))
                for role, field in fields.attributes
            ],
            self._document(fields),
        )

    def _values_of(self, fields: Sequence[Field]) -> Callable[[Any], Sequence[Any]]:
        """Return the function that returns the values of fields, None for those that an object lacks."""
        keys = [field.key for field in fields]
        if not self._is_table:
            return lambda row: [*map(row.get, keys)]
        return itemgetter(*keys) if len(keys) > 1 else lambda row: [row[keys[0]]]

    def _labels(self, fields: Sequence[Field]) -> Callable[[Any], ParsedLabels]:
        """Return the function that reads the fields of all labels."""
        parse = self._parse_labels
        if len(fields) == 1:
            key, _, place = fields[0]
            return lambda row: parse(row[key], place)
        if not self._is_table and len({field.name for field in fields}) > 1:

            def read_one(row: Any) -> ParsedLabels:
                filled = [field for field in fields if row[field.key] not in (None, "", [], {})]
                if len(filled) > 1:
                    names = " and ".join(field.name for field in filled)
                    raise RecordError(
                        f"the example has labels in the fields {names}; "
                        "set the option labels to the field to read",
                        filled[1].place,
                    )
                key, _, place = filled[0] if filled else fields[0]
                return parse(row[key], place)

            return read_one

        def read_all(row: Any) -> ParsedLabels:
            labels, unknown = [], []
            for key, _, place in fields:
                parsed = parse(row[key], place)
                labels += parsed.labels
                unknown += parsed.unknown
            return ParsedLabels(labels, unknown)

        return read_all

    def _parse_labels(self, value: Any, place: str) -> ParsedLabels:
        is_list = type(value) is list
        if is_list and self._are_known(value):
            return ParsedLabels(value, [])
        parsed = parse_labels(value, place, self._separator, self._rules.limits)
        if self._can_be_one_label and type(value) is str and self._separator in value:
            self._check_separator(value, parsed, place)
        if self._label_numbers is not None:
            return self._label_numbers.name_all(parsed, place)
        if is_list and parsed.labels is value and len(self._known_labels) < _MAX_KNOWN_LABELS:
            self._known_labels.update(parsed.labels)
        return parsed

    def _check_separator(self, value: str, parsed: ParsedLabels, place: str) -> None:
        """Reject a text that can be one label or several ones."""
        if parsed != parse_labels(value, place, _NO_SEPARATOR, self._rules.limits):
            raise RecordError(
                f"the labels are one string with the separator {quoted(self._separator)}; "
                "write a list of labels, or set the option label_separator",
                place,
            )

    def _are_known(self, members: list[Any]) -> bool:
        """Return whether all members are labels that have been checked. Most are."""
        try:
            return self._known_labels.issuperset(members)
        except TypeError:  # a member is a list or an object
            return False

    def _flags(self, fields: Sequence[Field]) -> Callable[[Any], ParsedLabels]:
        """Return the function that reads the fields that are each a label."""
        is_table, no = self._is_table, self._syntax.no
        keys = [field.key for field in fields]
        # Most values are no, so that the loop does as little as possible for them.
        places = list(zip(keys if is_table else range(len(keys)), fields, strict=True))

        def read(row: Any) -> ParsedLabels:
            labels: list[str] = []
            unknown: list[str] = []
            values = row if is_table else [*map(row.get, keys)]
            for place, field in places:
                value = values[place]
                if value == no:
                    continue
                if is_missing(value):
                    self._n_empty_flags += 1
                    continue
                applies = parse_flag(value, field.place)
                if applies:
                    labels.append(field.name)
                elif applies is None:
                    unknown.append(field.name)
            return ParsedLabels(labels, unknown)

        return read

    def _with_unknown(
        self, read: Callable[[Any], ParsedLabels], field: Field
    ) -> Callable[[Any], ParsedLabels]:
        """Return the function that also reads a list of unknown labels."""

        def read_both(row: Any) -> ParsedLabels:
            labels, unknown = read(row)
            value = row[field.key]
            if value is not None:
                if type(value) is not list:
                    raise RecordError(
                        f"unknown_labels must be a list of strings, not {json_type(value)}", field.place
                    )
                more = parse_labels(value, field.place, self._separator, self._rules.limits)
                unknown = [*unknown, *more.labels]
            return ParsedLabels(labels, unknown)

        return read_both

    def _document(self, fields: Assignment) -> Callable[[Any, Record], None]:
        """Return the function that reads the document."""
        if fields.features:
            return self._features(fields.features)
        if fields.texts:
            return _text(fields.texts, joins=fields.joins_texts)
        if fields.email:
            return _email(fields.email)
        documents = [(self._whole(kind, field), field) for kind, field in fields.documents]
        if len(documents) == 1:
            return documents[0][0]

        def read_one(row: Any, record: Record) -> None:
            filled = [item for item in documents if row[item[1].key] is not None] or documents[:1]
            if len(filled) != 1:
                if fields.absence is not None:
                    raise RecordError(*fields.absence)
                names = " and ".join(field.name for _, field in filled) or "none of them"
                raise RecordError(
                    f"an example must have exactly one of {', '.join(DOCUMENT_KINDS)}; this one has {names}"
                )
            filled[0][0](row, record)

        return read_one

    def _whole(self, kind: DocumentKind, field: Field) -> Callable[[Any, Record], None]:
        """Return the function that reads a document from one field."""
        key, _, place = field

        def read_features(row: Any, record: Record) -> None:
            record.features, n_missing = parse_features(row[key], place, self._rules.limits)
            self._n_empty_features += n_missing

        def read_email(row: Any, record: Record) -> None:
            parse = parse_email if kind == "email" else parse_raw_email
            record.email = parse(row[key], place)

        if kind == "text":
            return _text([field], joins=False)
        return read_features if kind == "features" else read_email

    def _features(self, fields: Sequence[Field]) -> Callable[[Any, Record], None]:
        """Return the function that reads a feature from each field."""
        values_of, decimal = self._values_of(fields), self._syntax.decimal
        names = [field.name for field in fields]

        def read(row: Any, record: Record) -> None:
            values = values_of(row)
            numbers = parse_numbers(values, decimal)
            if numbers is None:
                places = [field.place for field in fields]
                numbers = list(map(self._number, values, places))
            record.features = features = dict(zip(names, numbers, strict=True))
            if self._row_numbers.is_watching:
                self._row_numbers.add(features)

        return read

    def _number(self, value: Any, place: str) -> float:
        try:
            number = parse_number(value, place, self._syntax.decimal)
        except RecordError as error:
            if self._has_default_features and type(value) is str and not any(map(str.isdigit, value)):
                hint = "if it is the text, set the option text; if it is not a feature, list it in ignore"
                suggestion = Suggestion("options/text", choices=list(self.declarations.features))
                raise RecordError(Advice(f"{error.reason}; {hint}", suggestion), place) from error
            raise
        self._n_empty_features += number is None
        return 0.0 if number is None else number


def _text(fields: Sequence[Field], *, joins: bool) -> Callable[[Any, Record], None]:
    """Return the function that reads the text from its fields."""
    key, _, place = fields[0]

    def read_one(row: Any, record: Record) -> None:
        value = row[key]
        record.text = value if type(value) is str else parse_text(value, place)

    def read_all(row: Any, record: Record) -> None:
        record.text = join_texts([parse_text(row[key], place) for key, _, place in fields])

    return read_all if joins else read_one


def _email(fields: Mapping[str, Field]) -> Callable[[Any, Record], None]:
    """Return the function that reads an e-mail from the fields of its parts."""

    def read(row: Any, record: Record) -> None:
        parts: dict[str, Any] = {
            part: parse_text(row[key], place) for part, (key, _, place) in fields.items()
        }
        record.email = Email(**parts)

    return read
