"""Turns JSON objects into records, by the fields of an example or by the fields that the user names."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from models.data.limits import IngestLimits
from models.data.readers.cells import LabelNumbers, build_email, join_texts, parse_flag
from models.data.readers.json_options import JSONLOptions
from models.data.readers.options import EmailColumns
from models.data.readers.values import (
    ParsedLabels,
    parse_fold,
    parse_id,
    parse_labels,
    parse_selected_by,
    parse_split,
    parse_weight,
    split_words,
)
from models.data.record import (
    Declarations,
    Record,
    RecordError,
    check_name,
    check_number,
    json_pointer,
    json_type,
    quoted,
)
from models.errors import BadDataError
from models.mail.email import Email

FIELDS: Final = (
    *("id", "text", "features", "email", "raw_email"),
    *("labels", "unknown_labels", "split", "weight", "fold", "selected_by"),
)
DOCUMENT_FIELDS: Final = ("text", "features", "email", "raw_email")
EMAIL_FIELDS: Final = {
    "subject": "subject",
    "from": "from_",
    "to": "to",
    "text": "text",
    "html": "html",
    "list_id": "list_id",
}
"""The attribute of ``Email`` for each field of an e-mail with a text."""

_ATTACHMENT_FIELDS: Final = {"name": "name", "content_type": "content_type"}
LABEL_FIELDS: Final = ("labels", "label", "cats")
"""Fields with the labels of an example, of which only one may have content."""

FIELD_SET: Final = frozenset(FIELDS)
_TEXT_ALIAS: Final = "data"  # doccano
_UNUSED: Final = frozenset(
    {
        *("Comments", "comments", "entities", "relations", "meta", "metadata"),  # doccano
        "annotation_approver",
        *("ents", "sents", "tokens", "spans"),  # spaCy
    }
)
"""Fields of annotation tools that say nothing about the labels of the document."""

_MISSING: Final = object()
_LARGE: Final = 2**1000  # in the range of a double; integers in JSON can be larger
_NEVER: Final = "\x1f\x1e\x1f"  # a separator that occurs in no text
_MAX_LISTED: Final = 20
_MAX_REMEMBERED: Final = 1000


class JSONField:
    """A field that an option names: a name, or the JSON pointer of a nested field.

    Attributes:
        option: the name of the option.
        text: the name or JSON pointer as the user writes it.
        name: the name of the field, without the path to it.
        pointer: the JSON pointer, for errors.
        is_found: whether an example has had the field.

    >>> JSONField("text", "/data/text").find({"data": {"text": "My invoice"}})
    'My invoice'
    """

    __slots__ = ("_keys", "is_found", "name", "option", "pointer", "text")

    def __init__(self, option: str, text: str) -> None:
        self.option = option
        self.text = text
        is_pointer = text.startswith("/")
        parts = text[1:].split("/") if is_pointer else [text]
        self._keys = [key.replace("~1", "/").replace("~0", "~") for key in parts] if is_pointer else parts
        self.name = self._keys[-1]
        self.pointer = json_pointer(*self._keys)
        self.is_found = False

    @property
    def top(self) -> str:
        """Name of the field of the example that contains this field."""
        return self._keys[0]

    def find(self, value: Mapping[str, Any]) -> Any:
        """Return the value of the field; ``_MISSING`` if the example does not have it."""
        found: Any = value
        for key in self._keys:
            if type(found) is dict:
                found = found.get(key, _MISSING)
            elif type(found) is list and key.isdecimal() and len(key) < 10 and int(key) < len(found):
                found = found[int(key)]
            else:
                return _MISSING
        if found is not _MISSING:
            self.is_found = True
        return found


class FieldReader:
    """Turns JSON objects into records.

    Without options that name fields, an object must have the fields of an example. Names that common tools
    use for the same thing are read, too, and any other field is an error. With such options, other fields are
    unused.

    Args:
        options: the fields that the user names.
        limits: limits on names.

    Raises:
        BadDataError: the options contradict each other.
    """

    def __init__(self, options: JSONLOptions, limits: IngestLimits) -> None:
        self._limits = limits
        self._separator = options.label_separator
        self._has_separator = "label_separator" in options.model_fields_set
        self._split_words = split_words(options.split_words or {})
        self._ignored = frozenset(options.ignore or ())

        def field(option: str, name: str | None) -> JSONField | None:
            return None if name is None else JSONField(option, name)

        def fields(option: str, names: Iterable[str]) -> list[JSONField]:
            return [JSONField(option, name) for name in names]

        kinds = [kind for kind in DOCUMENT_FIELDS if getattr(options, kind) is not None]
        if len(kinds) > 1:
            raise BadDataError(f"the options set {' and '.join(kinds)}; set only one of them")
        self._texts = fields("text", [options.text] if isinstance(options.text, str) else options.text or ())
        self._features = fields("features", options.features or ())
        self._email = [
            (part, JSONField(f"email.{part.rstrip('_')}", name))
            for part in EmailColumns.model_fields
            if (name := getattr(options.email or EmailColumns(), part)) is not None
        ]
        self._raw = field("raw_email", options.raw_email)
        self._has_document = bool(kinds)
        self._labels = field("labels", options.common_column)
        option = "label_columns" if options.labels is None else "labels"
        self._flags = fields(option, options.own_columns or ())
        self._id = field("id", options.id)
        self._split = field("split", options.split)
        self._weight = field("weight", options.weight)
        self._fold = field("fold", options.fold)
        single = [self._raw, self._labels, self._id, self._split, self._weight, self._fold]
        self._named = [
            *(named for named in single if named is not None),
            *(*self._texts, *self._features, *self._flags, *(named for _, named in self._email)),
        ]
        self._tops = {named.top for named in self._named}
        self._is_strict = not self._named
        self._label_numbers = (
            LabelNumbers(options.label_names, options.first_label) if options.label_names else None
        )
        if self._flags and self._label_numbers:
            raise BadDataError("the option label_names needs one field of labels; name it in labels")
        for named in (self._features, self._flags):
            self._check_names(named)
        self._has_defaults = self._is_strict and not self._ignored and self._label_numbers is None
        self._n_empty_features = self._n_empty_flags = 0
        self._unused: dict[str, None] = {}
        self._first_fields: Sequence[str] | None = None
        self._has_other_labels = False

    def declarations(self) -> Declarations:
        """Return the labels and features that the options declare."""
        return Declarations(
            labels=self._label_numbers.names if self._label_numbers else (),
            features=[feature.name for feature in self._features],
        )

    def final_declarations(self) -> Declarations:
        """Return the warnings that are known only after the last example.

        Raises:
            BadDataError: no example has a field that an option names.
        """
        for named in self._named:
            is_needed = named.option != "labels" or not self._has_other_labels
            if self._first_fields is not None and is_needed and not named.is_found:
                raise BadDataError(
                    f"the option {named.option} names the field {quoted(named.text)}, which no example has; "
                    f"the fields of the first example are {_join_names(self._first_fields)}; write a field "
                    "inside another as /outer/inner"
                )
        warnings = []
        if self._unused:
            warnings.append(f"unused fields: {_join_names(list(self._unused))}")
        if self._n_empty_features:
            warnings.append(f"features without a value: {self._n_empty_features:,}; they were read as 0")
        if self._n_empty_flags:
            warnings.append(
                f"label fields without a value: {self._n_empty_flags:,}; they were read as no; "
                "write -1 if nobody knows"
            )
        labels = [] if self._has_other_labels else [flag.name for flag in self._flags]
        return Declarations(labels=labels, warnings=warnings)

    def record(self, value: Mapping[str, Any], line: int, *, labels: ParsedLabels | None = None) -> Record:
        """Return the record of an example.

        Args:
            value: the JSON object.
            line: line number, for reports.
            labels: its labels, if they are not in a field of the object. Then no field is unknown.

        Raises:
            RecordError: a field is invalid; names it by its JSON pointer.
        """
        if (
            labels is None
            and self._has_defaults
            and (ordinary := self._ordinary_record(value, line)) is not None
        ):
            return ordinary
        if self._first_fields is None:
            self._first_fields = list(value)
        is_plain = self._is_strict and value.keys() <= FIELD_SET
        if labels is None and not is_plain:
            self._check_fields(value)
        if labels is not None:
            self._has_other_labels = True
        parsed = self._read_labels(value, is_plain=is_plain) if labels is None else labels
        record = Record(line, parsed.labels, unknown=parsed.unknown)
        if self._id is not None:
            found = self._id.find(value)
            record.id = None if found is _MISSING else parse_id(found, self._id.pointer, self._limits)
        elif "id" in value and "id" not in self._ignored:
            record.id = parse_id(value["id"], "/id", self._limits)
        if self._split is not None:
            found = self._split.find(value)
            record.split = (
                None if found is _MISSING else parse_split(found, self._split.pointer, self._split_words)
            )
        elif "split" in value and "split" not in self._ignored:
            record.split = parse_split(value["split"], "/split", self._split_words)
        if self._weight is not None:
            found = self._weight.find(value)
            record.weight = None if found is _MISSING else parse_weight(found, self._weight.pointer)
        elif self._is_strict and "weight" in value and "weight" not in self._ignored:
            record.weight = parse_weight(value["weight"], "/weight")
        if self._fold is not None:
            found = self._fold.find(value)
            record.fold = None if found is _MISSING else parse_fold(found, self._fold.pointer)
        elif "fold" in value and "fold" not in self._ignored:
            record.fold = parse_fold(value["fold"], "/fold")
        if self._is_strict and "selected_by" in value and "selected_by" not in self._ignored:
            record.selected_by = parse_selected_by(value["selected_by"], "/selected_by")
        if self._has_document:
            self._read_named_document(value, record)
        else:
            self._read_document(value, record)
        return record

    def _ordinary_record(self, value: Mapping[str, Any], line: int) -> Record | None:
        """Return the record of an example with labels, a text or features, and perhaps an id; else None.

        Most examples are so, and reading them field by field would take longer.
        """
        names = value.get("labels")
        if type(names) is not list or not self._pass_fast_label_check(names):
            return None
        id_ = value.get("id")
        if len(value) - ("id" in value) != 2:
            return None
        text, features = value.get("text"), value.get("features")
        if type(text) is str:
            record = Record(line, names, text=text)
        elif type(features) is dict and _pass_fast_check(features, self._limits):
            record = Record(line, names, features=features)
        else:
            return None
        if id_ is not None:
            record.id = parse_id(id_, "/id", self._limits)
        return record

    def _check_fields(self, value: Mapping[str, Any]) -> None:
        """Reject unknown fields, or remember them if they are unused."""
        others = value.keys() - FIELD_SET - self._tops - self._ignored
        if self._labels is None and not self._flags:
            others -= {*LABEL_FIELDS}
        if self._is_strict:
            if "text" not in value:
                others.discard(_TEXT_ALIAS)
            for name in value:
                if name in others and name not in _UNUSED:
                    raise RecordError(
                        f"unknown field; the fields of an example are {', '.join(FIELDS)}; if the examples "
                        "have other fields, name those to read in options such as text and labels, or those "
                        "to omit in the option ignore",
                        json_pointer(name),
                    )
        else:
            unread = {*DOCUMENT_FIELDS, "weight"} if self._has_document else {"weight"}
            others |= value.keys() & unread - self._tops - self._ignored
        if others and len(self._unused) < _MAX_REMEMBERED:
            self._unused.update(dict.fromkeys(name for name in value if name in others))

    def _read_labels(self, value: Mapping[str, Any], *, is_plain: bool) -> ParsedLabels:
        if self._flags:
            parsed = self._read_flags(value)
        else:
            names = value.get("labels")
            if self._labels is None and type(names) is list and self._pass_fast_label_check(names):
                parsed = ParsedLabels(names, [])
                if not is_plain:
                    self._labels_field(value)
            else:
                parsed = self._parse_label_field(value)
        if value.get("unknown_labels") is not None and "unknown_labels" not in self._ignored:
            unknown = value["unknown_labels"]
            if type(unknown) is not list:
                raise RecordError(
                    f"unknown_labels must be a list of strings, not {json_type(unknown)}", "/unknown_labels"
                )
            more = parse_labels(unknown, "/unknown_labels", self._separator, self._limits).labels
            parsed = ParsedLabels(parsed.labels, [*parsed.unknown, *more])
        return parsed

    def _parse_label_field(self, value: Mapping[str, Any]) -> ParsedLabels:
        if self._labels is None:
            pointer = json_pointer(name := self._labels_field(value))
            found = value[name]
        else:
            pointer = self._labels.pointer
            found = self._labels.find(value)
            if found is _MISSING:
                raise RecordError(
                    f"the field {quoted(self._labels.text)} is missing; "
                    "use [] for an example without a label",
                    pointer,
                )
        parsed = parse_labels(found, pointer, self._separator, self._limits)
        # In JSON, a text with a comma can also be one label, unlike the cell of a table.
        is_doubtful = type(found) is str and not self._has_separator and self._separator in found
        if is_doubtful and parsed != parse_labels(found, pointer, _NEVER, self._limits):
            raise RecordError(
                f"the labels are one string with the separator {quoted(self._separator)}; "
                "write a list of labels, or set the option label_separator",
                pointer,
            )
        return parsed if self._label_numbers is None else self._label_numbers.name_all(parsed, pointer)

    def _labels_field(self, value: Mapping[str, Any]) -> str:
        """Return the name of the field with the labels, if the user does not name it."""
        present = [name for name in LABEL_FIELDS if name in value and name not in self._ignored]
        filled = [name for name in present if value[name] not in (None, "", [], {})]
        if not present:
            raise RecordError("the field labels is missing; use [] for an example without a label", "/labels")
        if len(filled) > 1:
            raise RecordError(
                f"the example has labels in the fields {' and '.join(filled)}; "
                "set the option labels to the field to read",
                json_pointer(filled[1]),
            )
        return filled[0] if filled else present[0]

    def _read_flags(self, value: Mapping[str, Any]) -> ParsedLabels:
        labels, unknown = [], []
        for field in self._flags:
            flag = field.find(value)
            if flag is _MISSING or flag is None or flag == "":
                self._n_empty_flags += 1
                continue
            if type(flag) is list or type(flag) is dict:
                raise RecordError(f"a label field must contain 1 or 0, not {json_type(flag)}", field.pointer)
            applies = parse_flag(str(flag), field.pointer)
            if applies:
                labels.append(field.name)
            elif applies is None:
                unknown.append(field.name)
        return ParsedLabels(labels, unknown)

    def _pass_fast_label_check(self, names: list[Any]) -> bool:
        """Return whether a list consists of valid labels. Faster than checking them one by one."""
        if self._label_numbers is not None or not names:
            return self._label_numbers is None
        return (
            set(map(type, names)) == {str}
            and "".join(names).isprintable()
            and "" not in names
            and not any(map(str.isspace, names))
            and max(map(len, names)) <= self._limits.name_length
            and names[0] not in {"0", "1"}
        )

    def _read_named_document(self, value: Mapping[str, Any], record: Record) -> None:
        if self._features:
            record.features = {field.name: self._number(field, value) for field in self._features}
            return
        if self._raw is not None:
            record.email = Email(raw=_base64(self._find_all([self._raw], value)[0], self._raw.pointer))
            return
        fields = self._texts or [field for _, field in self._email]
        found = self._find_all(fields, value)
        parts = [_optional_string(part, field.pointer) for part, field in zip(found, fields, strict=True)]
        if self._texts:
            record.text = parts[0] if len(parts) == 1 else join_texts(parts)
        else:
            names = [name for name, _ in self._email]
            record.email = build_email(dict(zip(names, parts, strict=True)))

    def _find_all(self, fields: Sequence[JSONField], value: Mapping[str, Any]) -> list[Any]:
        """Return the values of fields, None for missing ones.

        Raises:
            RecordError: all of the fields are missing.
        """
        found = [field.find(value) for field in fields]
        if all(part is _MISSING for part in found):
            raise RecordError(f"the field {quoted(fields[0].text)} is missing", fields[0].pointer)
        return [None if part is _MISSING else part for part in found]

    def _number(self, field: JSONField, value: Mapping[str, Any]) -> float:
        number = field.find(value)
        if number is _MISSING or number is None:
            self._n_empty_features += 1
            return 0.0
        return float(number) if type(number) is bool else check_number(number, "a feature", field.pointer)

    def _read_document(self, value: Mapping[str, Any], record: Record) -> None:
        documents = [name for name in DOCUMENT_FIELDS if name in value and name not in self._ignored]
        if len(documents) > 1:
            documents = [name for name in documents if value[name] is not None] or documents[:1]
        if not documents and type(value.get(_TEXT_ALIAS)) is str:
            documents = [_TEXT_ALIAS]
        if len(documents) != 1:
            actual = " and ".join(documents) if documents else "none of them"
            raise RecordError(
                f"an example must have exactly one of {', '.join(DOCUMENT_FIELDS)}; this one has {actual}"
            )
        name = documents[0]
        document = value[name]
        match name:
            case "text" | "data":
                record.text = _optional_string(document, json_pointer(name))
            case "features":
                record.features = self._features_of(document)
            case "email":
                record.email = _email(document)
            case _:
                record.email = Email(raw=_base64(document, "/raw_email"))

    def _features_of(self, value: object) -> dict[str, float]:
        if type(value) is not dict:
            raise RecordError(
                f"features must be an object that maps names to numbers, not {json_type(value)}", "/features"
            )
        if _pass_fast_check(value, self._limits):
            return value
        features = {}
        for name, number in value.items():
            pointer = json_pointer("features", name)
            check_name(name, "a feature name", pointer, self._limits.name_length)
            if number is None:
                self._n_empty_features += 1
                features[name] = 0.0
            else:
                features[name] = check_number(number, "a feature", pointer)
        return features

    def _check_names(self, fields: Sequence[JSONField]) -> None:
        names: set[str] = set()
        for field in fields:
            try:
                check_name(field.name, "a name", field.pointer, self._limits.name_length)
            except RecordError as error:
                raise BadDataError(f"the option {field.option}: {error.reason}") from error
            if field.name in names:
                raise BadDataError(
                    f"the option {field.option} has two fields of the name {quoted(field.name)}"
                )
            names.add(field.name)


def _optional_string(value: object, field: str) -> str:
    if type(value) is str:
        return value
    if value is None:
        return ""
    raise RecordError(f"must be a string, not {json_type(value)}", field)


def _pass_fast_check(features: dict[str, Any], limits: IngestLimits) -> bool:
    """Return whether all features are valid. Faster than checking them one by one, which names the fault."""
    numbers = features.values()
    return (
        set(map(type, numbers)) <= {float, int}
        and max(numbers, default=0) < _LARGE
        and min(numbers, default=0) > -_LARGE
        and not any(map(math.isnan, numbers))
        and "".join(features).isprintable()
        and not any(map(str.isspace, features))
        and "" not in features
        and max(map(len, features), default=0) <= limits.name_length
    )


def _email(value: object) -> Email:
    if type(value) is not dict:
        raise RecordError(f"email must be an object, not {json_type(value)}", "/email")
    parts = dict(value)
    attachments = _attachments(parts.pop("attachments", None))
    email = build_email(_strings(parts, EMAIL_FIELDS, "an email", "/email", "attachments"))
    return replace(email, attachments=attachments) if attachments else email


def _strings(
    value: Mapping[str, Any], attributes: Mapping[str, str], owner: str, pointer: str, *others: str
) -> dict[str, str]:
    """Return the strings of an object by attribute.

    Args:
        value: the object.
        attributes: the attribute of each field.
        owner: what has the fields, for the error text.
        pointer: JSON pointer of the object.
        others: fields that are read elsewhere, for the error text.

    Raises:
        RecordError: a field is unknown, or is no string.
    """
    for name in value:
        if name not in attributes:
            raise RecordError(
                f"unknown field; the fields of {owner} are {', '.join((*attributes, *others))}",
                pointer + json_pointer(name),
            )
    return {attributes[name]: _optional_string(part, f"{pointer}/{name}") for name, part in value.items()}


def _attachments(value: object) -> tuple[tuple[str, str], ...]:
    """Return the file name and the content type of each attachment."""
    if value is None:
        return ()
    if type(value) is not list:
        raise RecordError(f"attachments must be a list, not {json_type(value)}", "/email/attachments")
    attachments = []
    for i, item in enumerate(value):
        pointer = f"/email/attachments/{i}"
        if type(item) is not dict:
            raise RecordError(f"an attachment must be an object, not {json_type(item)}", pointer)
        parts = _strings(item, _ATTACHMENT_FIELDS, "an attachment", pointer)
        attachments.append((parts.get("name", ""), parts.get("content_type", "")))
    return tuple(attachments)


def _base64(value: object, field: str) -> bytes:
    try:
        return base64.b64decode(_optional_string(value, field), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"must be base64: {error}", field) from error


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:_MAX_LISTED])) + (", ..." if len(names) > _MAX_LISTED else "")
