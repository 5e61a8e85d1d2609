"""Turns what is written in one cell, or one value of a list or object, into names of labels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from models.data.record import RecordError, json_pointer, json_type, quoted
from models.data.values.label_syntax import read_syntax

find_syntax: Final = re.compile(r"""["'\[\](){}<|&;]""").search
"""Returns a match if a cell contains a mark that a list, a tag, an object or a quoted label has."""
_SYNTAX_CHARS: Final = frozenset("\"'[](){}<>&")

_NAME_FIELDS: Final = ("choices", "choice", "labels", "label", "name")
"""Fields of an annotation tool's object that contain one label or a list of labels."""
_SPAN_FIELDS: Final = ("start", "end", "start_offset", "end_offset", "startOffset", "x", "points")
_SCORE_FIELDS: Final = ("score", "confidence", "probability")
_YES: Final = frozenset({"1", "true", "yes"})
_NO: Final = frozenset({"0", "false", "no"})
_UNKNOWN: Final = frozenset({"-1", "", "null", "none", "nan"})


class ParsedLabels(NamedTuple):
    """The labels of an example.

    Attributes:
        labels: labels that apply.
        unknown: labels of which it is not known whether they apply.
    """

    labels: list[str]
    unknown: list[str]


def split_labels(cell: str, separator: str, field: str | None = None) -> list[str]:
    r"""Return the labels that are written in one cell, in their order.

    These rules apply in this order; white space around labels is removed:

    1. A cell in brackets is a list: ``["a", "b"]``, ``['a', 'b']``, ``[a, b]``, ``['a' 'b']`` as NumPy
       prints it, ``('a', 'b')``, ``{'a', 'b'}`` and ``array([...])``. Members that are not in quotes are
       separated by the separator. ``(other)`` and ``[EXT] Sales`` are labels, because the first has no
       separator inside, and the second has text after the bracket.
    2. An object has its labels in ``choices``, ``choice``, ``labels``, ``label`` or ``name``, or maps labels
       to 1 or 0. A list of objects has the labels of all its objects.
    3. ``<python><pandas>``, ``|python|pandas|`` and ``;#a;#b;#`` are tags. A single ``<word>`` is a tag if it
       consists of the characters of tags and does not stand for a missing value, such as ``<none>``.
    4. Otherwise the separator separates the labels. A label in quotes can contain it:
       ``"Sales, EMEA",Billing``. Quotes that do not enclose a whole label are part of it.

    A separator with a bracket or a quote in it switches these rules off.

    Args:
        cell: the text of the cell.
        separator: the separator between labels.
        field: the column, header or pointer that an error names.

    Raises:
        RecordError: a list is not complete or is inside another list, a quote is not closed, or a member is
            no label.

    >>> split_labels("['a', 'b']", ","), split_labels("[EXT] Sales, C#", ",")
    (['a', 'b'], ['[EXT] Sales', 'C#'])
    >>> split_labels('{"choices": ["a", "b"]}', ","), split_labels("<python><pandas>", ",")
    (['a', 'b'], ['python', 'pandas'])
    """
    return parse_cell(cell, separator, field).labels


def parse_cell(cell: str, separator: str, field: str | None) -> ParsedLabels:
    """Return the labels that apply and the unknown labels of a cell, see :func:`split_labels`.

    Raises:
        RecordError: the cell cannot be read as labels.
    """
    if find_syntax(cell) and _SYNTAX_CHARS.isdisjoint(separator) and (text := cell.strip()):
        try:
            value = read_syntax(text, separator)
        except RecordError as error:
            raise RecordError(error.reason, field) from error
        if value is not None:
            return parse_value(value, field)
    labels = [name for part in cell.split(separator) if (name := part.strip())]
    if len(labels) > 1:
        _reject_indicators(labels, field)
    return ParsedLabels(labels, [])


def parse_value(value: Iterable[Any] | Mapping[Any, Any], field: str | None) -> ParsedLabels:
    """Return the labels of a list or an object, see :func:`split_labels`.

    Raises:
        RecordError: a member cannot be read as a label.
    """
    if isinstance(value, Mapping):
        return _labels_of_object(value, field)
    labels: list[str] = []
    unknown: list[str] = []
    for j, member in enumerate(value):
        if type(member) is str:
            labels.append(member)
        elif isinstance(member, Mapping):
            found = _labels_of_object(member, field)
            labels += found.labels
            unknown += found.unknown
        else:
            labels.append(label_of_number(member, _member_field(field, j)))
    _reject_indicators(labels, field)
    return ParsedLabels(labels, unknown)


def label_of_number(value: object, field: str | None) -> str:
    """Return the label of a whole number, in decimal digits.

    Raises:
        RecordError: the value is anything else.

    >>> label_of_number(5.0, None)
    '5'
    """
    number = whole_number(value)
    if number is not None:
        return number
    if type(value) is float and not math.isnan(value):
        raise RecordError(f"a label must be a string or a whole number, not {value!r}", field)
    what = "a missing value" if value is None or type(value) is float else json_type(value)
    raise RecordError(f"a label must be a string or a whole number, not {what}", field)


def whole_number(value: object) -> str | None:
    """Return the decimal digits of a whole number; None for other values and for imprecise numbers."""
    if type(value) is int:
        return str(value)
    if type(value) is float and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return None


def _member_field(field: str | None, number: int) -> str | None:
    return field + json_pointer(number) if field is not None and field.startswith("/") else field


def _labels_of_object(value: Mapping[Any, Any], field: str | None) -> ParsedLabels:
    names = [name for name in _NAME_FIELDS if name in value]
    found = value[names[0]] if len(names) == 1 else None
    if not isinstance(found, (str, list)) or _is_flag(found):
        return _labels_of_flags(value, field)
    for fields, what in (
        (_SPAN_FIELDS, "so that its labels apply only to a part of the document; export labels of documents"),
        (_SCORE_FIELDS, "so that its label may not apply; export only the labels that apply"),
    ):
        if other := next((name for name in fields if name in value), None):
            raise RecordError(f"the object has the field {quoted(other)}, {what}", field)
    return ParsedLabels([found], []) if isinstance(found, str) else parse_value(found, field)


def _is_flag(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in _YES | _NO | _UNKNOWN


def _labels_of_flags(flags: Mapping[Any, Any], field: str | None) -> ParsedLabels:
    """Return the labels of an object that maps each label to whether it applies."""
    labels: list[str] = []
    unknown: list[str] = []
    for name, flag in flags.items():
        if type(name) is not str:
            raise RecordError(f"a label must be a string, not {json_type(name)}", field)
        if type(flag) is float and not math.isnan(flag) and not flag.is_integer():
            raise RecordError(
                f"the value of the label {quoted(name)} is {flag!r}, which is a score; "
                "replace each score by 1 if the label applies, and by 0 if it does not",
                field,
            )
        word = _flag_word(flag)
        if word in _YES:
            labels.append(name)
        elif word in _UNKNOWN:
            unknown.append(name)
        elif word not in _NO:
            raise RecordError(
                f"an object must map labels to 1 or 0, or have its labels in one of the fields "
                f"{', '.join(_NAME_FIELDS)}; the value of {quoted(name)} is {quoted(flag)}",
                field,
            )
    return ParsedLabels(labels, unknown)


def _flag_word(flag: object) -> str:
    if flag is None:
        return ""
    if type(flag) is float:
        return f"{flag:g}"
    return str(flag).strip().lower() if isinstance(flag, (str, int)) else "?"


def _reject_indicators(labels: list[str], field: str | None) -> None:
    """Reject 0 and 1 for each label in place of names: as labels, they would be only "0" and "1"."""
    if len(labels) > 1 and labels[0] in {"0", "1"}:
        distinct = set(labels)
        if distinct <= {"0", "1"} and len(distinct) < len(labels):
            raise RecordError(
                f"the {len(labels):,} values are 0 and 1 instead of names of labels; write the names of the "
                "labels that apply, or write one column for each label",
                field,
            )
