"""Pages of lists: ``?limit=`` and an opaque ``?cursor=`` over a unique, indexed order."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.http.errors import Invalid

Row = TypeVar("Row")

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 500
_LONGEST_NUMBER = 18  # decimal digits that fit a column


@dataclass(frozen=True)
class Page:
    """Which part of a list is asked for.

    Attributes:
        limit: at most so many items.
        after: the position of the last item of the page before, None for the first page.
    """

    limit: int
    after: str | None

    def after_number(self) -> int:
        """The position as a number; before all others where there is none.

        Raises:
            Invalid: the cursor is another list's.
        """
        if self.after is None:
            return -1
        if not self.after.isdecimal() or len(self.after) > _LONGEST_NUMBER:
            raise _bad_cursor()
        return int(self.after)


def _bad_cursor() -> Invalid:
    message = "not a cursor of this list; take it from next_cursor, or leave it out for the first page"
    return Invalid(message, code="invalid_cursor", errors=[("/query/cursor", message)])


def _page(
    limit: Annotated[
        int, Query(ge=1, le=LARGEST_LIMIT, description="At most so many items.")
    ] = DEFAULT_LIMIT,
    cursor: Annotated[
        str | None, Query(max_length=500, description="`next_cursor` of the page before.")
    ] = None,
) -> Page:
    if cursor is None:
        return Page(limit, None)
    try:
        after = base64.urlsafe_b64decode(cursor.encode("ascii")).decode()
    except (binascii.Error, UnicodeError) as error:
        raise _bad_cursor() from error
    if "\0" in after:
        raise _bad_cursor()
    return Page(limit, after)


PageQuery = Annotated[Page, Depends(_page)]


def encode_cursor(position: str | int) -> str:
    """The cursor that names a position."""
    return base64.urlsafe_b64encode(str(position).encode()).decode("ascii")


def cut(
    rows: Sequence[Row], page: Page, position: Callable[[Row], str | int]
) -> tuple[Sequence[Row], str | None]:
    """Cut a list that was fetched one longer than the page.

    Returns:
        the page's rows, and the next page's cursor where there is one.
    """
    shown = rows[: page.limit]
    more = len(rows) > page.limit
    return shown, encode_cursor(position(shown[-1])) if more else None


def newest_first(
    session: Session, statement: Select[Row], column: InstrumentedAttribute[str], page: Page
) -> tuple[Sequence[Row], str | None]:
    """A page of rows by falling id, which is the order of creation backwards."""
    if page.after is not None:
        statement = statement.where(column < page.after)
    rows = session.scalars(statement.order_by(column.desc()).limit(page.limit + 1)).all()
    return cut(rows, page, lambda row: _value(row, column))


def by_name(
    session: Session, statement: Select[Row], column: InstrumentedAttribute[str], page: Page
) -> tuple[Sequence[Row], str | None]:
    """A page of rows by rising name."""
    if page.after is not None:
        statement = statement.where(column > page.after)
    rows = session.scalars(statement.order_by(column).limit(page.limit + 1)).all()
    return cut(rows, page, lambda row: _value(row, column))


def _value(row: Any, column: InstrumentedAttribute[str]) -> str:
    return str(getattr(row, column.key))
