"""The one rule by which the readers of all formats read ids, splits, weights, folds, numbers and flags."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from models.data.advice import Advice, Suggestion
from models.data.examples import SelectedBy, Split
from models.data.limits import IngestLimits
from models.data.record import (
    RecordError,
    check_name,
    check_number,
    check_weight,
    json_type,
    quoted,
)
from models.data.values.label_cells import whole_number

DecimalMark: TypeAlias = Literal[".", ","]

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

_FLAGS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("1", "1.0", "+1", "true", "yes", "t", "y", "x"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "f", "n"), False),
    # Spreadsheets write booleans in the language of the user.
    **dict.fromkeys(("ja", "wahr", "oui", "vrai", "si", "sí", "verdadero", "vero"), True),
    **dict.fromkeys(("nein", "falsch", "non", "faux", "falso"), False),
    **dict.fromkeys(("-1", "-1.0", "?", "unknown")),
}
_DECIMAL_COMMA: Final = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")


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
    value = without_numpy(value)
    if type(value) is str:
        return parse_id(value, field, limits)
    if is_missing(value):
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
    value = without_numpy(value)
    if is_missing(value):
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


def parse_weight(value: object, field: str, decimal: DecimalMark | None = None) -> float | None:
    """Return the weight of an example; None for 1 and for a missing value.

    Args:
        value: the value.
        field: the field or column that an error names.
        decimal: the decimal mark of numbers in texts; None if a text is no number.

    Raises:
        RecordError: the value is not a number, or outside the limits.

    >>> parse_weight(2, "/weight"), parse_weight(1, "/weight"), parse_weight(None, "/weight")
    (2.0, None, None)
    >>> parse_weight("2,5", "weight", ",")
    2.5
    """
    value = without_numpy(value)
    if is_missing(value):
        return None
    if type(value) is str and decimal is not None:
        return check_weight(number_of_text(value, field, decimal), field)
    return check_weight(check_number(value, "the weight", field), field)


def parse_fold(value: object, field: str) -> int | None:
    """Return the fold of an example; None for a missing one.

    Raises:
        RecordError: the value is not a whole number from 0 to ``MAX_FOLD``.

    >>> parse_fold(3, "fold"), parse_fold(" 3.0", "fold"), parse_fold("", "fold")
    (3, 3, None)
    """
    value = without_numpy(value)
    if is_missing(value):
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
    value = without_numpy(value)
    if is_missing(value):
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


def parse_number(value: object, field: str, decimal: DecimalMark | None = None) -> float | None:
    """Return the value of a feature; None for a missing one.

    Args:
        value: the value.
        field: the field or column that an error names.
        decimal: the decimal mark of numbers in texts; None if a text is no number.

    Raises:
        RecordError: the value is not a finite number.

    >>> parse_number(True, "height"), parse_number("-1,5", "height", ","), parse_number(" ", "height", ",")
    (1.0, -1.5, None)
    """
    if type(value) is str and decimal is not None:
        return number_of_text(value, field, decimal) if value and not value.isspace() else None
    if value is None:
        return None
    return float(value) if type(value) is bool else check_number(value, "a feature", field)


def parse_numbers(values: Collection[Any], decimal: DecimalMark | None = None) -> list[float] | None:
    """Return the values of several features at once, which is faster than one by one.

    Args:
        values: the values.
        decimal: the decimal mark of numbers in texts; None if a text is no number.

    Returns:
        None if a value is missing or perhaps invalid. Then :func:`parse_number` tells which.

    >>> parse_numbers(["-1.5", " 2 "], "."), parse_numbers(["-1.5", ""], "."), parse_numbers(["2"])
    ([-1.5, 2.0], None, None)
    """
    types = set(map(type, values))
    if decimal == ".":
        if types != {str} or "_" in "".join(values):
            return None
    elif not types <= {float, int}:
        return None
    try:
        numbers = list(map(float, values))
        return numbers if math.isfinite(sum(numbers)) else None
    except (ValueError, OverflowError):
        return None


def number_of_text(text: str, field: str, decimal: DecimalMark = ".") -> float:
    """Return the finite number in a text.

    Raises:
        RecordError: the text is not a finite number.

    >>> number_of_text("-1,5", "height", ",")
    -1.5
    """
    written = text
    if decimal == ",":
        # A point separates thousands in this notation, so that 1.234 would be read 1,000 times too small.
        written = "" if "." in text else text.replace(",", ".")
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        example = f"-1{decimal}5 or 2e-3"
        error = f"{quoted(text)} is not a finite number such as {example}"
        if decimal == "." and _DECIMAL_COMMA.fullmatch(text):
            error = Advice(
                f'{error}; if it has a decimal comma, set the option decimal to ","',
                Suggestion("options/decimal", ","),
            )
        elif decimal == "," and "." in text:
            error += "; write it with a comma and without separators of thousands"
        raise RecordError(error, field)
    return number


def parse_flag(value: object, field: str) -> bool | None:
    """Return whether a label column states that the label applies; None if it is unknown.

    Raises:
        RecordError: the value is neither a yes nor a no, nor states that it is unknown.

    >>> parse_flag(1.0, "billing"), parse_flag(" No ", "billing"), parse_flag("?", "billing")
    (True, False, None)
    """
    if type(value) is str and value in _FLAGS:
        return _FLAGS[value]
    if isinstance(value, (int, float)):
        value = str(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _FLAGS:
        raise RecordError(
            f"a label column must contain 1 for yes, 0 for no, or -1 if it is not known, not {quoted(value)}",
            field,
        )
    return _FLAGS[word]


def without_numpy(value: object) -> Any:
    """Return a NumPy array or scalar as values of Python."""
    return cast("Any", value).tolist() if type(value).__module__ == "numpy" else value


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN or an empty text."""
    if type(value) is str:
        return not value or value.isspace()
    return value is None or value != value  # noqa: PLR0124 - NaN differs from itself


def _described(value: object) -> str:
    return repr(value) if type(value) is float else json_type(value)


def _folded(word: str) -> str:
    return word.strip().casefold()
