"""The one rule by which the readers of all formats read ids, splits, weights, folds, selections and labels.

A missing value is None, NaN or an empty text: frames write it in one of these forms, depending on the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

from models.data.examples import SelectedBy, Split
from models.data.limits import IngestLimits
from models.data.readers.label_cells import (
    ParsedLabels,
    find_syntax,
    label_of_number,
    parse_cell,
    parse_value,
    whole_number,
)
from models.data.record import (
    RecordError,
    check_name,
    check_number,
    check_weight,
    json_pointer,
    json_type,
    quoted,
)

__all__ = [
    "MAX_FOLD",
    "SPLIT_WORDS",
    "ParsedLabels",
    "parse_fold",
    "parse_id",
    "parse_labels",
    "parse_selected_by",
    "parse_split",
    "parse_weight",
    "split_words",
]

MAX_FOLD: Final = 999
"""The largest number of a fold."""

SPLIT_WORDS: Final[Mapping[str, Split]] = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "development": "validation",
    "test": "test",
    "testing": "test",
}
"""The split that each word stands for."""


def parse_id(value: object, field: str, limits: IngestLimits) -> str | None:
    """Return the id of an example; None for a missing one.

    Whole numbers become texts, because a frame writes 5 as 5.0 if another id of the column is missing.

    Raises:
        RecordError: the value is a boolean, a fraction or something else, or an invalid name.

    >>> parse_id(5.0, "id", IngestLimits())
    '5'
    """
    if type(value) is str:
        return check_name(value, "the id", field, limits.name_length) if value.strip() else None
    value = _plain(value)
    if type(value) is str:
        return parse_id(value, field, limits)
    if _is_missing(value):
        return None
    number = whole_number(value)
    if number is None:
        raise RecordError(f"the id must be a string or a whole number, not {_described(value)}", field)
    return number


def parse_split(value: object, field: str, words: Mapping[str, Split] | None = None) -> Split | None:
    """Return the split of an example; None for a missing one. Case and white space do not matter.

    Args:
        value: the value.
        field: the field or column that an error names.
        words: words of the user, by the result of :func:`split_words`; they precede the default words.

    Raises:
        RecordError: the value is no word for a split.

    >>> parse_split(" Dev ", "split"), parse_split("Lernen", "split", split_words({"train": ["lernen"]}))
    ('validation', 'train')
    """
    if value == "train" and not words:
        return "train"
    value = _plain(value)
    if _is_missing(value):
        return None
    if isinstance(value, bool):
        word = str(value).lower()
    else:
        word = _folded(value) if isinstance(value, str) else whole_number(value) or ""
    split = (words or {}).get(word) or SPLIT_WORDS.get(word)
    if split is None:
        raise RecordError(
            f'the split must be "train", "validation" or "test", not {quoted(value)}; '
            "set the option split_words if the file has other words",
            field,
        )
    return split


def parse_weight(value: object, field: str) -> float | None:
    """Return the weight of an example; None for 1 and for a missing value.

    Raises:
        RecordError: the value is not a number, or outside the limits.

    >>> parse_weight(2, "/weight"), parse_weight(1, "/weight"), parse_weight(None, "/weight")
    (2.0, None, None)
    """
    value = _plain(value)
    return None if _is_missing(value) else check_weight(check_number(value, "the weight", field), field)


def parse_fold(value: object, field: str) -> int | None:
    """Return the fold of an example; None for a missing one.

    Raises:
        RecordError: the value is not a whole number from 0 to ``MAX_FOLD``.

    >>> parse_fold(3, "fold"), parse_fold(" 3.0", "fold"), parse_fold("", "fold")
    (3, 3, None)
    """
    value = _plain(value)
    if _is_missing(value):
        return None
    # A frame writes 3 as 3.0 if another fold of the column is missing.
    number = value.strip().removesuffix(".0") if type(value) is str else whole_number(value)
    if number is None or not (number.isascii() and number.isdecimal()) or len(number) > len(str(MAX_FOLD)):
        raise RecordError(
            f"the fold must be a whole number from 0 to {MAX_FOLD}, not {quoted(value)}; "
            "if the column is not a fold, list it in the option ignore",
            field,
        )
    return int(number)


def parse_selected_by(value: object, field: str) -> SelectedBy | None:
    """Return what selected an example for a review; None for a missing value.

    Raises:
        RecordError: the value is not one of ``SelectedBy``.

    >>> parse_selected_by("sample", "/selected_by"), parse_selected_by(None, "/selected_by")
    ('sample', None)
    """
    value = _plain(value)
    if _is_missing(value):
        return None
    words = get_args(SelectedBy)
    if value not in words:
        raise RecordError(f"selected_by must be one of {', '.join(words)}, not {quoted(value)}", field)
    return cast("SelectedBy", value)


def split_words(words: Mapping[Split, Iterable[str]]) -> dict[str, Split]:
    """Return the split of each word that a user lists for the splits.

    Raises:
        ValueError: two splits have the same word.
    """
    splits: dict[str, Split] = {}
    for split, names in words.items():
        for name in names:
            if splits.setdefault(_folded(name), split) != split:
                raise ValueError(f"the word {name!r} stands for two splits")
    return splits


def parse_labels(value: object, field: str, separator: str, limits: IngestLimits) -> ParsedLabels:
    """Return the labels of an example; none for a missing value.

    Args:
        value: a cell (see :func:`models.data.readers.label_cells.split_labels`), a list, an array, a whole
            number, or an object that maps labels to 1, to 0, or to -1 or null for an unknown label.
        field: the column, or the JSON pointer, that an error names.
        separator: the separator between labels in a cell.
        limits: limits on names.

    Raises:
        RecordError: the value cannot be read as labels, or a label is invalid.

    >>> parse_labels({"a": 1, "b": 0, "c": None}, "/cats", ",", IngestLimits())
    ParsedLabels(labels=['a'], unknown=['c'])
    """
    if type(value) is str:
        if len(value) <= limits.name_length and value.isprintable() and not find_syntax(value):
            # No label can be invalid. Most cells are so, and checking each label would take longer.
            labels = [name for part in value.split(separator) if (name := part.strip())]
            if len(labels) < 2 or labels[0] not in {"0", "1"}:
                return ParsedLabels(labels, [])
        parsed = parse_cell(value, separator, field)
    elif type(value) is list and _are_names(value, limits):
        return ParsedLabels(value, [])
    else:
        value = _plain(value)
        if type(value) is str:
            return parse_labels(value, field, separator, limits)
        if _is_missing(value):
            return ParsedLabels([], [])
        if isinstance(value, (list, tuple, Mapping)):
            parsed = parse_value(value, field)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            parsed = ParsedLabels([label_of_number(value, field)], [])
        else:
            raise RecordError(f"labels must be a list of strings, not {json_type(value)}", field)
    if type(value) is str and "\n" in value.strip() and any("\n" in name for name in parsed.labels):
        raise RecordError(
            "a label must not contain a line end; if each line of the cell is a label, "
            "set the option label_separator to a line end",
            field,
        )
    is_list = isinstance(value, (list, tuple)) and field.startswith("/")
    for names in parsed:
        for j, name in enumerate(names):
            check_name(name, "a label", field + json_pointer(j) if is_list else field, limits.name_length)
    return parsed


def _are_names(members: list[Any], limits: IngestLimits) -> bool:
    """Return whether members are names that need no further check. Faster than to check them one by one."""
    try:
        text = "".join(members)
    except TypeError:
        return False
    return (
        len(text) <= limits.name_length
        and text.isprintable()
        and "" not in members
        and not any(map(str.isspace, members))
        and "0" not in members
        and "1" not in members
    )


def _plain(value: object) -> Any:
    """Return a NumPy array or scalar as values of Python."""
    return cast("Any", value).tolist() if type(value).__module__ == "numpy" else value


def _is_missing(value: object) -> bool:
    if type(value) is str:
        return not value or value.isspace()
    return value is None or value != value  # noqa: PLR0124 - NaN differs from itself


def _described(value: object) -> str:
    return repr(value) if type(value) is float else json_type(value)


def _folded(word: str) -> str:
    return word.strip().casefold()
