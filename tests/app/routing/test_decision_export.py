"""All decisions that meet conditions are exported, page by page, as lines of JSON or as a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_process_api
import pytest
from contract import problem_of
from in_process_api import InProcessApi

from app.api.paging import Page
from app.context import AppContext
from app.routing import decision_export, decisions
from app.routing.decision_search import DecisionFilter
from app.routing.schemas import DecisionPage

PATH = "/v1/routers/desk/decisions"
FORMULA = "=HYPERLINK(1)"
PAGE = 4


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service with several pages of decisions, whose export reads few at a time."""
    with (
        pytest.MonkeyPatch.context() as patch,
        in_process_api.api(tmp_path_factory.mktemp("export"), migrated_sqlite, patch) as service,
    ):
        patch.setattr(decision_export, "MAX_LIMIT", PAGE)
        service.train(service.dataset())
        router = {
            "model": "m",
            "fallback": "+front@example.org",
            "keep_messages": "all",
            "review_sample": 0.5,
        }
        service.call("PUT", "/v1/routers/desk", 200, json=router)
        words = ("invoice", "refund", "price", "quokka")
        for n in range(4 * PAGE + 1):
            email = {"subject": f"{FORMULA} Grüße {n}", "from": "ann@example.org", "text": words[n % 4]}
            decision = service.call("POST", "/v1/routers/desk/messages", 200, json={"email": email})
            if n % 3:
                labels = [item["label"] for item in decision["departments"]] if n % 2 else []
                service.call(
                    "POST", f"/v1/decisions/{decision['decision_id']}/feedback", 200, json={"labels": labels}
                )
        yield service


def listed(api: InProcessApi, query: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor = ""
    while True:
        found = api.call("GET", f"{PATH}?{query}{cursor}", 200)
        items += found["items"]
        if "next_cursor" not in found:
            return items
        cursor = f"&cursor={found['next_cursor']}"


@pytest.mark.parametrize(
    "query",
    [
        *("", "order=oldest_first", "disposition=fallback", "feedback=corrected", "subject=GR%C3%9CSSE%201"),
        *("label=billing&feedback=agreed", "review=sample", "text=refund", "from=2100-01-01T00:00:00Z"),
    ],
)
def test_an_export_has_all_decisions_that_a_list_has(api: InProcessApi, query: str) -> None:
    expected = listed(api, query)
    assert (len(expected) > 1) != query.startswith("from")
    response = api.send("GET", f"{PATH}?{query}&format=ndjson")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert [json.loads(line) for line in response.text.splitlines()] == expected
    assert "Content-Length" not in response.headers


def test_a_table_has_the_main_fields_and_no_formula(api: InProcessApi) -> None:
    response = api.send("GET", PATH, headers={"Accept": "text/csv"})
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert response.headers["Content-Disposition"] == 'attachment; filename="desk-decisions.csv"'
    assert response.content.startswith(b"\xef\xbb\xbf"), "spreadsheets do not recognize UTF-8 without it"
    rows = list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline="")))
    expected = listed(api, "")
    assert [row["decision_id"] for row in rows] == [item["decision_id"] for item in expected]
    for row, item in zip(rows, expected, strict=True):
        assert row["subject"] == f"'{item['message']['subject']}"
        assert row["departments"] == ", ".join(label["label"] for label in item["departments"])
        assert row["feedback"] == ", ".join(item.get("feedback", []))
        if item["disposition"] == "fallback":
            assert row["destinations"] == "'+front@example.org"
    by_state = {state: len(listed(api, f"feedback={state}")) for state in ("none", "agreed", "corrected")}
    assert min(by_state.values()) > 1
    for state, n in by_state.items():
        assert sum(row["feedback_state"] == state for row in rows) == n


def test_an_export_has_no_pages(api: InProcessApi) -> None:
    for query in ("limit=3", "cursor=eA=="):
        response = api.send("GET", f"{PATH}?format=csv&{query}")
        problem_of(response, 422, "invalid_request", f"/query/{query.partition('=')[0]}")
    problem_of(api.send("GET", f"{PATH}?format=xlsx"), 422, "invalid_request", "/query/format")
    problem_of(api.send("GET", "/v1/routers/none/decisions?format=csv"), 404, "not_found")


def test_a_client_that_accepts_pages_too_gets_one(api: InProcessApi) -> None:
    accept = {"Accept": "application/json, application/x-ndjson, text/csv"}
    assert api.call("GET", PATH, 200, headers=accept)["items"]


def test_an_export_reads_a_page_when_the_client_has_read_the_one_before(
    api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    read = decisions.page

    def note(ctx: AppContext, name: str, conditions: DecisionFilter, page: Page) -> DecisionPage:
        found = read(ctx, name, conditions, page)
        sizes.append(len(found.items))
        return found

    monkeypatch.setattr(decisions, "page", note)

    async def run() -> None:
        parts = await decision_export.export(api.ctx, "desk", DecisionFilter(), "ndjson")
        n = 0
        async for part in parts:
            n += 1
            assert len(sizes) == n
            assert part.count(b"\n") == sizes[-1] <= PAGE

    api.run(run)
    assert len(sizes) == 5
