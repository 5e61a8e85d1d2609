"""Pagination of lists: ``?limit=`` and an opaque ``?cursor=`` over a unique, indexed order.

``ascending`` and ``newest_first`` page through the rows of a statement by a column, ``positions`` through a
list that never changes, and ``cut`` through rows from elsewhere.
A ``ListFilter`` selects items by name and state.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

from fastapi import Depends, Query
from sqlalchemy import ColumnElement, Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.errors import Invalid

Row = TypeVar("Row")
Key: TypeAlias = InstrumentedAttribute[str] | InstrumentedAttribute[int]
"""The column of a unique order."""

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
_MAX_DIGITS = 18  # decimal digits that fit an integer column


@dataclass(frozen=True)
class Page:
    """The requested page of a list.

    Attributes:
        limit: maximum number of items.
        after: position of the last item of the previous page; None for the first page.
    """

    limit: int
    after: str | None

    def after_number(self) -> int:
        """Return the position as a number; -1 for the first page.

        Raises:
            Invalid: the cursor belongs to another list.
        """
        if self.after is None:
            return -1
        if not self.after.isdecimal() or len(self.after) > _MAX_DIGITS:
            raise _bad_cursor()
        return int(self.after)


@dataclass(frozen=True)
class ListFilter:
    """Conditions on the items of a list.

    Attributes:
        name: a text that the name contains; empty for all names.
        state: the state; None for all states.
    """

    name: str = ""
    state: str | None = None

    def apply(
        self,
        statement: Select[Row],
        name: InstrumentedAttribute[str] | InstrumentedAttribute[str | None],
        state: ColumnElement[str] | InstrumentedAttribute[str] | None = None,
    ) -> Select[Row]:
        """Add the conditions to a statement, by the columns with name and state."""
        if self.name:
            statement = statement.where(name.icontains(self.name, autoescape=True))
        if self.state is not None and state is not None:
            statement = statement.where(state == self.state)
        return statement


EVERYTHING = ListFilter()

NameFilter = Annotated[
    str,
    Query(max_length=200, description="Only items whose name contains this text, in upper or lower case."),
]


def _bad_cursor() -> Invalid:
    message = "is not a cursor of this list; use the value of next_cursor, or leave it out for the first page"
    return Invalid(message, code="invalid_cursor", errors=[("/query/cursor", message)])


def read_page(
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items.")] = DEFAULT_LIMIT,
    cursor: Annotated[
        str | None, Query(max_length=500, description="`next_cursor` of the previous page.")
    ] = None,
) -> Page:
    """Return the page with a limit and a cursor.

    Raises:
        Invalid: the cursor is not one.
    """
    if cursor is None:
        return Page(limit, None)
    try:
        after = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise _bad_cursor() from error
    if not after or "\0" in after:
        raise _bad_cursor()
    return Page(limit, after)


PageQuery = Annotated[Page, Depends(read_page)]


def encode_cursor(position: str | int) -> str:
    """Encode a position as a cursor."""
    return base64.urlsafe_b64encode(str(position).encode()).decode("ascii")


def cut(
    rows: Sequence[Row], page: Page, position: Callable[[Row], str | int]
) -> tuple[Sequence[Row], str | None]:
    """Cut rows that were fetched with one more than the page's limit.

    Returns:
        the rows of the page, and the cursor of the next page, if there is one.
    """
    shown = rows[: page.limit]
    more = len(rows) > page.limit
    return shown, encode_cursor(position(shown[-1])) if more else None


def newest_first(
    session: Session, statement: Select[Row], column: Key, page: Page
) -> tuple[Sequence[Row], str | None]:
    """Return a page of rows by a descending id or number, which is newest first, and the next cursor."""
    if page.after is not None:
        statement = statement.where(column < _after(column, page))
    return _read(session, statement.order_by(column.desc()), column, page)


def ascending(
    session: Session, statement: Select[Row], column: Key, page: Page
) -> tuple[Sequence[Row], str | None]:
    """Return a page of rows by an ascending name or number, and the next cursor."""
    if page.after is not None:
        statement = statement.where(column > _after(column, page))
    return _read(session, statement.order_by(column), column, page)


def positions(page: Page, n_items: int) -> tuple[range, str | None]:
    """Return the positions of a page in a list that never changes, from 0, and the next cursor."""
    start = page.after_number() + 1
    shown = range(start, max(start, min(start + page.limit, n_items)))
    return shown, encode_cursor(shown.stop - 1) if shown.stop < n_items else None


def _read(
    session: Session, statement: Select[Row], column: Key, page: Page
) -> tuple[Sequence[Row], str | None]:
    rows = session.scalars(statement.limit(page.limit + 1)).all()
    return cut(rows, page, lambda row: str(getattr(row, column.key)))


def _after(column: Key, page: Page) -> str | int | None:
    return page.after_number() if column.type.python_type is int else page.after
