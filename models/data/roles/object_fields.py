"""Assigns roles to the fields of JSON objects: those of an example, or those that the user names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from models.data.limits import IngestLimits
from models.data.options import TableOptions
from models.data.record import Declarations, RecordError, check_name, join_first, json_pointer, quoted
from models.data.roles.roles import (
    DOCUMENT_KINDS,
    EXAMPLE_FIELDS,
    ROLES,
    Absence,
    Assignment,
    Field,
    named_document,
)
from models.data.values.labels import LabelNumbers
from models.errors import BadDataError

_LABEL_FIELDS: Final = ("labels", "label", "cats")
"""Fields with the labels of an example, of which only one may have content."""

_TEXT_ALIAS: Final = "data"  # doccano
_UNUSED: Final = frozenset(
    {
        *("Comments", "comments", "entities", "relations", "meta", "metadata"),  # doccano
        "annotation_approver",
        *("ents", "sents", "tokens", "spans"),  # spaCy
    }
)
"""Fields of annotation tools that say nothing about the labels of the document."""

_MAX_LISTED: Final = 20
_MAX_REMEMBERED: Final = 1000


class ObjectFields:
    """Assigns roles to the fields of JSON objects.

    Without options that name fields, an object must have the fields of an example. Names that common tools
    use for the same thing are read, too, and any other field is an error. With such options, other fields are
    unused.

    Args:
        options: the fields that the user names: a name, or the JSON pointer of a nested field.
        limits: limits on names.

    Attributes:
        paths: the path to each nested field that an option names, by its JSON pointer, which is its key.
        label_numbers: the names of the numbers of labels, or None.
        declarations: the labels and features that the options declare.

    Raises:
        BadDataError: the options contradict each other.
    """

    def __init__(self, options: TableOptions, limits: IngestLimits) -> None:
        self.paths: dict[str, list[str]] = {}
        self._ignored = frozenset(options.ignore or ())
        self._missing: list[tuple[str, str]] = []
        self._tops: set[str] = set()
        self._first_fields: Sequence[str] | None = None
        self._unused: dict[str, None] = {}
        self._has_other_labels = False

        kind = named_document(options)
        self._raw = self._named("raw_email", getattr(options, "raw_email", None))
        self._labels = self._named("labels", options.common_column)
        named_roles = {role: self._named(role.name, getattr(options, role.name, None)) for role in ROLES}
        self._texts = self._all_named("text", options.texts)
        self._features = self._all_named("features", options.features or ())
        self._flags = self._all_named(options.flags_option, options.own_columns or ())
        self._email = {
            part: field
            for part, name in options.email_parts.items()
            for field in self._all_named(f"email.{part.rstrip('_')}", [name])
        }
        self._is_strict = not self._missing
        self._roles = [
            (role, field or Field(role.name, role.name, json_pointer(role.name)), field is not None)
            for role, field in named_roles.items()
            if field or self._is_strict or (role.by_name and not (role.is_weak and role.name in self._tops))
        ]
        self.label_numbers = (
            LabelNumbers(options.label_names, options.first_label) if options.label_names else None
        )
        if self._flags and options.label_names:
            raise BadDataError("the option label_names needs one field of labels; name it in labels")
        _check_names(self._features, "features", limits)
        _check_names(self._flags, options.flags_option, limits)
        self.declarations = Declarations(
            labels=self.label_numbers.names if self.label_numbers else (),
            features=[field.name for field in self._features],
        )
        self._has_named_document = kind is not None
        if kind == "email" and not self._email:
            raise BadDataError("the option email names no field; set at least one of its parts")
        by_default = {*(role.name for role, _, _ in self._roles), "unknown_labels"}
        if self._labels is None and not self._flags:
            by_default |= {*_LABEL_FIELDS}
        if kind is None:
            by_default |= {*DOCUMENT_KINDS}
        self._read = by_default | self._tops
        single = [self._raw, self._labels, *self._texts, *self._email.values(), *named_roles.values()]
        # Whether a field of a feature or of a flag exists does not matter: a missing one is read as 0 or no.
        self._decisive = frozenset(by_default | {_TEXT_ALIAS} | {field.key for field in single if field})

    def _named(self, option: str, name: str | None) -> Field | None:
        """Return the field that an option names, if it does."""
        if name is None:
            return None
        path = [name]
        if name.startswith("/"):
            path = [key.replace("~1", "/").replace("~0", "~") for key in name[1:].split("/")]
            self.paths[name] = path
        self._missing.append((option, name))
        self._tops.add(path[0])
        return Field(name, path[-1], json_pointer(*path))

    def _all_named(self, option: str, names: Iterable[str]) -> list[Field]:
        return [field for name in names if (field := self._named(option, name)) is not None]

    def final_declarations(self) -> Declarations:
        """Return the labels and warnings that are known only after the last object.

        Raises:
            BadDataError: no object has a field that an option names.
        """
        for option, name in self._missing if self._first_fields is not None else ():
            if option != "labels" or not self._has_other_labels:
                fields = join_first(self._first_fields or (), _MAX_LISTED)
                raise BadDataError(
                    f"the option {option} names the field {quoted(name)}, which no example has; "
                    f"the fields of the first example are {fields}; "
                    "write a field inside another as /outer/inner"
                )
        unused = join_first(list(self._unused), _MAX_LISTED)
        return Declarations(
            labels=[] if self._has_other_labels else [field.name for field in self._flags],
            warnings=[f"unused fields: {unused}"] if unused else [],
        )

    def select(self, names: Sequence[str], *, has_labels: bool) -> frozenset[str]:
        """Return those fields of an object that can have a role, and remember the others.

        Args:
            names: its fields, with the JSON pointers of nested ones.
            has_labels: whether its labels are not in a field. Then no field is unknown.

        Raises:
            RecordError: a field is unknown.
        """
        tops = [name for name in names if name not in self.paths]
        if self._first_fields is None:
            self._first_fields = tops
        self._has_other_labels |= has_labels
        if self._missing:
            present = frozenset(names)
            self._missing = [(option, name) for option, name in self._missing if name not in present]
        if not has_labels:
            self._check_others(tops)
        return self._decisive.intersection(names)

    def assign(self, present: frozenset[str], *, has_labels: bool) -> Assignment:
        """Return the roles of the fields of an object.

        Args:
            present: its fields that can have a role.
            has_labels: whether its labels are not in a field.

        Raises:
            RecordError: the labels are missing.
        """
        not_ignored = present - self._ignored
        assignment = Assignment() if has_labels else self._assign_labels(present, not_ignored)
        return replace(
            self._assign_document(assignment, present, not_ignored),
            attributes=[
                (role, field)
                for role, field, is_named in self._roles
                if field.key in (present if is_named else not_ignored)
            ],
        )

    def _check_others(self, names: Sequence[str]) -> None:
        """Reject unknown fields, or remember them if they are unused."""
        read = self._read | self._ignored
        if not self._has_named_document and "text" not in names:
            read.add(_TEXT_ALIAS)
        others = [name for name in names if name not in read]
        if self._is_strict:
            for name in others:
                if name not in _UNUSED:
                    raise RecordError(
                        f"unknown field; the fields of an example are {', '.join(EXAMPLE_FIELDS)}; if the "
                        "examples have other fields, name those to read in options such as text and labels, "
                        "or those to omit in the option ignore",
                        json_pointer(name),
                    )
        if len(self._unused) < _MAX_REMEMBERED:
            self._unused.update(dict.fromkeys(others))

    def _assign_labels(self, present: Collection[str], not_ignored: Collection[str]) -> Assignment:
        unknown = _plain_field("unknown_labels") if "unknown_labels" in not_ignored else None
        if self._flags:
            return Assignment(flags=self._flags, unknown_labels=unknown)
        if self._labels is not None:
            if self._labels.key not in present:
                raise RecordError(
                    f"the field {quoted(self._labels.key)} is missing; use [] for an example without a label",
                    self._labels.place,
                )
            return Assignment(labels=[self._labels], unknown_labels=unknown)
        fields = [_plain_field(name) for name in _LABEL_FIELDS if name in not_ignored]
        if not fields:
            raise RecordError("the field labels is missing; use [] for an example without a label", "/labels")
        return Assignment(labels=fields, unknown_labels=unknown)

    def _assign_document(
        self, assignment: Assignment, present: Collection[str], not_ignored: Collection[str]
    ) -> Assignment:
        if not self._has_named_document:
            documents = [(kind, _plain_field(kind)) for kind in DOCUMENT_KINDS if kind in not_ignored]
            if not documents and _TEXT_ALIAS in not_ignored:
                documents = [("text", _plain_field(_TEXT_ALIAS))]
            return replace(assignment, documents=documents)
        if self._features:
            return replace(assignment, features=self._features)
        texts = [field for field in self._texts if field.key in present]
        email = {part: field for part, field in self._email.items() if field.key in present}
        documents = [("raw_email", self._raw)] if self._raw and self._raw.key in present else []
        assignment = replace(
            assignment, texts=texts, joins_texts=len(self._texts) > 1, email=email, documents=documents
        )
        if texts or email or documents:
            return assignment
        first = next(field for field in (*self._texts, *self._email.values(), self._raw) if field)
        return replace(assignment, absence=Absence(f"the field {quoted(first.key)} is missing", first.place))


def _plain_field(name: str) -> Field:
    return Field(name, name, json_pointer(name))


def _check_names(fields: Sequence[Field], option: str, limits: IngestLimits) -> None:
    names: set[str] = set()
    for field in fields:
        try:
            check_name(field.name, "a name", field.place, limits.name_length)
        except RecordError as error:
            raise BadDataError(f"the option {option}: {error.reason}") from error
        if field.name in names:
            raise BadDataError(f"the option {option} has two fields of the name {quoted(field.name)}")
        names.add(field.name)
