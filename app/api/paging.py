"""Pagination of lists: ``?limit=`` and an opaque ``?cursor=`` over a unique, indexed order."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.errors import Invalid

Row = TypeVar("Row")
Item = TypeVar("Item", bound=BaseModel)

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


def _bad_cursor() -> Invalid:
    message = "is not a cursor of this list; use the value of next_cursor, or leave it out for the first page"
    return Invalid(message, code="invalid_cursor", errors=[("/query/cursor", message)])


def _page(
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items.")] = DEFAULT_LIMIT,
    cursor: Annotated[
        str | None, Query(max_length=500, description="`next_cursor` of the previous page.")
    ] = None,
) -> Page:
    if cursor is None:
        return Page(limit, None)
    try:
        after = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise _bad_cursor() from error
    if not after or "\0" in after:
        raise _bad_cursor()
    return Page(limit, after)


PageQuery = Annotated[Page, Depends(_page)]


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
    session: Session, statement: Select[Row], column: InstrumentedAttribute[str], page: Page
) -> tuple[Sequence[Row], str | None]:
    """Return a page of rows by descending id, which is newest first, and the next cursor."""
    if page.after is not None:
        statement = statement.where(column < page.after)
    rows = session.scalars(statement.order_by(column.desc()).limit(page.limit + 1)).all()
    return cut(rows, page, lambda row: _value(row, column))


def by_name(
    session: Session, statement: Select[Row], column: InstrumentedAttribute[str], page: Page
) -> tuple[Sequence[Row], str | None]:
    """Return a page of rows by ascending name, and the next cursor."""
    if page.after is not None:
        statement = statement.where(column > page.after)
    rows = session.scalars(statement.order_by(column).limit(page.limit + 1)).all()
    return cut(rows, page, lambda row: _value(row, column))


def _value(row: Any, column: InstrumentedAttribute[str]) -> str:
    return str(getattr(row, column.key))
