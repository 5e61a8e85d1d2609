"""Reads the cells of tables: numbers, the parts of an e-mail, yes and no, and the numbers of labels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from models.data.readers.label_cells import ParsedLabels
from models.data.record import RecordError, quoted
from models.errors import BadDataError
from models.mail.email import Email

_FLAGS: Final[Mapping[str, bool | None]] = {
    "": False,
    **dict.fromkeys(("1", "1.0", "+1", "true", "yes", "t", "y", "x"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "f", "n"), False),
    # Spreadsheets write booleans in the language of the user.
    **dict.fromkeys(("ja", "wahr", "oui", "vrai", "si", "sí", "verdadero", "vero"), True),
    **dict.fromkeys(("nein", "falsch", "non", "faux", "falso"), False),
    **dict.fromkeys(("-1", "-1.0", "?", "unknown")),
}
_DECIMAL_COMMA: Final = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")


def parse_flag(cell: str, column: str) -> bool | None:
    """Return whether a cell of a label column states that the label applies; None if it is unknown.

    Raises:
        RecordError: the cell is neither a yes nor a no, nor states that nobody knows.

    >>> parse_flag("1", "billing"), parse_flag(" No ", "billing"), parse_flag("?", "billing")
    (True, False, None)
    """
    try:
        return _FLAGS[cell]
    except KeyError:
        word = cell.strip().lower()
    if word in _FLAGS:
        return _FLAGS[word]
    raise RecordError(
        f"a label column must contain 1 for yes, 0 for no, or -1 if nobody knows, not {quoted(cell)}", column
    )


def parse_number(cell: str, column: str, decimal: Literal[".", ","] = ".") -> float:
    """Return the finite number in a cell.

    Raises:
        RecordError: the cell is not a finite number.

    >>> parse_number("-1,5", "height", ",")
    -1.5
    """
    text = cell
    if decimal == ",":
        # A point separates thousands in this notation, so that 1.234 would be read 1,000 times too small.
        text = "" if "." in cell else cell.replace(",", ".")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in cell:
        example = f"-1{decimal}5 or 2e-3"
        remedy = ""
        if decimal == "." and _DECIMAL_COMMA.fullmatch(cell):
            remedy = '; if it has a decimal comma, set the option decimal to ","'
        elif decimal == "," and "." in cell:
            remedy = "; write it with a comma and without separators of thousands"
        raise RecordError(f"{quoted(cell)} is not a finite number such as {example}{remedy}", column)
    return number


def build_email(parts: Mapping[str, str]) -> Email:
    """Return an e-mail from its parts, which are keyed by attribute of ``Email``."""
    return Email(
        subject=parts.get("subject", ""),
        from_=parts.get("from_", ""),
        to=parts.get("to", ""),
        text=parts.get("text", ""),
        html=parts.get("html", ""),
        list_id=parts.get("list_id", ""),
    )


def join_texts(texts: Iterable[str]) -> str:
    r"""Join texts of several columns by a blank line. Texts without content are omitted.

    >>> join_texts(["Invoice", " ", "It is wrong."])
    'Invoice\n\nIt is wrong.'
    """
    return "\n\n".join(text for text in texts if text and not text.isspace())


class LabelNumbers:
    """Maps the numbers of labels to their names.

    Args:
        names: the names in the order of the numbers.
        first: the number of the first name.

    Raises:
        BadDataError: two labels have the same name.
    """

    def __init__(self, names: Sequence[str], first: int) -> None:
        self.names = names
        self._first = first
        self._by_number = {str(number): name for number, name in enumerate(names, first)}
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise BadDataError(f"label_names contains {quoted(twice)} twice")

    def name_all(self, numbers: ParsedLabels, column: str) -> ParsedLabels:
        """Return the names of labels.

        Raises:
            RecordError: a label is not the number of a name.
        """
        try:
            labels, unknown = ([self._by_number[n.removesuffix(".0")] for n in part] for part in numbers)
        except KeyError as error:
            raise RecordError(
                f"the label {quoted(error.args[0])} is not a number from {self._first} to "
                f"{self._first + len(self.names) - 1}, for which there are names",
                column,
            ) from None
        return ParsedLabels(labels, unknown)
