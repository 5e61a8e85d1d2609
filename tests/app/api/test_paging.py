"""Pages of lists: they cover every item once, even if items are created and deleted between the requests."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.api.paging import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    Page,
    PageQuery,
    ascending,
    cut,
    encode_cursor,
    newest_first,
    positions,
)
from app.db import tables
from app.db.session import Database
from app.errors import Invalid
from app.ids import new_id

ListPage = Callable[[Session, Page], tuple[Sequence[Any], str | None]]

NAMES = ["A", "B-1", "B_1", "Z", "a", "a1", "b", "helpdesk", "helpdesk-2", "helpdesk2", "zz"]


def models_by_name(session: Session, page: Page) -> tuple[Sequence[Any], str | None]:
    rows, cursor = ascending(session, select(tables.Model), tables.Model.name, page)
    return [row.name for row in rows], cursor


def keys_newest_first(session: Session, page: Page) -> tuple[Sequence[Any], str | None]:
    rows, cursor = newest_first(session, select(tables.ApiKey), tables.ApiKey.id, page)
    return [row.id for row in rows], cursor


def create_models(db: Database, *names: str) -> None:
    with db.write() as tx:
        tx.session.add_all(tables.Model(name=name, last_version=0, created_at=tx.now) for name in names)


def create_keys(db: Database, n: int) -> list[str]:
    ids = [new_id("key") for _ in range(n)]
    with db.write() as tx:
        tx.session.add_all(
            tables.ApiKey(id=id_, name="k", secret_sha256=id_, scopes=["read"], created_at=tx.now)
            for id_ in ids
        )
    return ids


api = FastAPI()


@api.get("/")
def get_page(page: PageQuery) -> dict[str, Any]:
    """Return the requested page."""
    return {"limit": page.limit, "after": page.after}


def request(**params: str | int) -> httpx.Response:
    """Request a page with these query parameters; errors of paging are raised here."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=api)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/", params=params)

    return asyncio.run(send())


def pages(
    db: Database,
    list_page: ListPage,
    limit: int,
    between: Callable[[int], None] = lambda _n: None,
) -> list[list[str]]:
    """Request all pages; ``between`` is called with the number of pages so far."""
    result: list[list[str]] = []
    cursor: str | None = None
    while True:
        query = request(limit=limit, **({"cursor": cursor} if cursor else {})).json()
        with db.read() as session:
            items, cursor = list_page(session, Page(**query))
        result.append(list(items))
        if cursor is None:
            return result
        between(len(result))


@pytest.mark.parametrize("limit", [1, 2, 3, len(NAMES) - 1, len(NAMES), 500])
def test_pages_by_name_cover_every_row_once_in_order(database: Database, limit: int) -> None:
    create_models(database, *NAMES[::-1])
    result = pages(database, models_by_name, limit)
    assert [len(page) for page in result[:-1]] == [limit] * (len(result) - 1)
    assert len(result[-1]) >= 1, "there is no next cursor if no item follows"
    with database.read() as session:
        expected = session.scalars(select(tables.Model.name).order_by(tables.Model.name)).all()
    assert list(chain(*result)) == list(expected)
    assert sorted(expected) == sorted(NAMES)


@pytest.mark.parametrize("limit", [1, 2, 3, 9, 10, 500])
def test_pages_newest_first_cover_every_row_once_in_order(database: Database, limit: int) -> None:
    ids = create_keys(database, 10)
    assert list(chain(*pages(database, keys_newest_first, limit))) == ids[::-1]


def test_an_empty_list_is_one_page(database: Database) -> None:
    assert pages(database, models_by_name, 5) == [[]]
    assert pages(database, keys_newest_first, 5) == [[]]


def test_a_row_created_between_pages_by_name_appears_if_its_name_follows(database: Database) -> None:
    create_models(database, "b", "d", "f", "h")
    result = pages(
        database, models_by_name, 2, lambda n: create_models(database, "a", "e") if n == 1 else None
    )
    assert list(chain(*result)) == ["b", "d", "e", "f", "h"]


def test_keys_created_between_pages_newest_first_shift_no_page(database: Database) -> None:
    ids = create_keys(database, 6)

    def create_more(_n: int) -> None:
        create_keys(database, 3)

    result = pages(database, keys_newest_first, 2, create_more)
    assert list(chain(*result)) == ids[::-1]


def test_rows_deleted_between_pages_leave_the_others_once(database: Database) -> None:
    ids = create_keys(database, 8)

    def delete_around_the_cursor(n: int) -> None:
        # After page 1 (ids 7 and 6): the last item of the page, which the cursor names, and the next one.
        if n == 1:
            with database.write() as tx:
                tx.session.execute(delete(tables.ApiKey).where(tables.ApiKey.id.in_([ids[6], ids[5]])))

    result = pages(database, keys_newest_first, 2, delete_around_the_cursor)
    assert result == [[ids[7], ids[6]], [ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]


@pytest.mark.parametrize("position", ["helpdesk", "key_01J", 0, 41, "ä/ö ☃", "a" * 300])
def test_a_cursor_returns_to_its_position(position: str | int) -> None:
    cursor = encode_cursor(position)
    assert cursor.isascii()
    assert request(cursor=cursor).json()["after"] == str(position)


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("a", id="truncated base64"),
        pytest.param("!!!!", id="other characters than base64"),
        pytest.param("", id="empty"),
        pytest.param("é", id="not ASCII"),
        pytest.param(base64.urlsafe_b64encode(b"\xff").decode(), id="not UTF-8"),
        pytest.param(base64.urlsafe_b64encode(b"a\0b").decode(), id="NUL"),
    ],
)
def test_a_malformed_cursor_is_rejected(cursor: str) -> None:
    with pytest.raises(Invalid) as rejected:
        request(cursor=cursor)
    assert rejected.value.code == "invalid_cursor"
    assert [pointer for pointer, _ in rejected.value.errors] == ["/query/cursor"]


@pytest.mark.parametrize("after", ["", "x", "-1", "1.5", "1e3", " 1", "9" * 19])
def test_a_cursor_of_another_list_is_rejected_where_positions_are_numbers(after: str) -> None:
    with pytest.raises(Invalid) as rejected:
        Page(50, after).after_number()
    assert rejected.value.code == "invalid_cursor"


def test_positions_that_are_numbers() -> None:
    assert Page(50, None).after_number() == -1, "the first page starts before position 0"
    assert Page(50, "0").after_number() == 0
    assert Page(50, "9" * 18).after_number() == 10**18 - 1


def test_the_limit_has_a_default_and_bounds() -> None:
    assert request().json() == {"limit": DEFAULT_LIMIT, "after": None}
    for limit in (1, MAX_LIMIT):
        assert request(limit=limit).json()["limit"] == limit
    for bad in ("0", "-1", str(MAX_LIMIT + 1), "x", "", "1.5"):
        assert request(limit=bad).status_code == 422
    assert request(cursor="A" * 501).status_code == 422


@pytest.mark.parametrize(("n", "more"), [(0, False), (2, False), (3, False), (4, True)])
def test_cut_returns_a_cursor_only_if_a_row_follows(n: int, more: bool) -> None:
    rows, cursor = cut(list(range(n)), Page(3, None), lambda row: row)
    assert list(rows) == list(range(min(n, 3)))
    assert cursor == (encode_cursor(2) if more else None)


@pytest.mark.parametrize(("after", "expected", "next_position"), [(None, range(3), 2), ("2", range(3, 6), 5)])
def test_positions_of_a_list_that_goes_on(after: str | None, expected: range, next_position: int) -> None:
    assert positions(Page(3, after), 7) == (expected, encode_cursor(next_position))


@pytest.mark.parametrize(("after", "n"), [("5", 1), ("6", 0), ("9" * 18, 0)])
def test_the_last_positions_of_a_list_have_no_cursor(after: str, n: int) -> None:
    shown, cursor = positions(Page(3, after), 7)
    assert (len(shown), cursor) == (n, None)


def test_numbers_are_in_the_order_of_numbers(database: Database) -> None:
    create_models(database, "helpdesk")
    with database.write() as tx:
        tx.session.add_all(
            tables.AliasChange(
                model="helpdesk", alias="live", revision=revision, reason="request", changed_at=tx.now
            )
            for revision in range(1, 13)
        )
    column = tables.AliasChange.revision

    def descending(session: Session, page: Page) -> tuple[Sequence[Any], str | None]:
        rows, cursor = newest_first(session, select(tables.AliasChange), column, page)
        return [row.revision for row in rows], cursor

    def rising(session: Session, page: Page) -> tuple[Sequence[Any], str | None]:
        rows, cursor = ascending(session, select(tables.AliasChange), column, page)
        return [row.revision for row in rows], cursor

    assert list(chain(*pages(database, descending, 5))) == [*range(12, 0, -1)]
    assert list(chain(*pages(database, rising, 5))) == [*range(1, 13)]
    with database.read() as session, pytest.raises(Invalid):
        rising(session, Page(5, "live"))
