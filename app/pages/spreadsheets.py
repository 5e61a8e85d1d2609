"""Rows of CSV files that people open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Cell: TypeAlias = str | int | float | None

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""First characters of a formula."""


def to_csv(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as CSV, with texts that no spreadsheet evaluates as a formula. None is an empty cell."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(
        [escape_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return out.getvalue()


def escape_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would evaluate as a formula.

    Spreadsheets ignore white space before a formula, and some accept the wide forms of its first character.

    >>> escape_formula("=1+1"), escape_formula(" +1"), escape_formula("1+1")
    ("'=1+1", "' +1", '1+1')
    """
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text[:1].isspace() else text
