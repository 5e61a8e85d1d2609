"""The HTML page of a report, and how a client gets it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, get_args

import pytest
from decision_rows import START, RoutedMessage, insert_decisions, insert_router, random_messages
from in_process_api import InProcessApi

from app.db import schema
from app.db.session import Database
from app.pages.rendering import percent
from app.pages.report import CONTENT_SECURITY_POLICY
from app.routing.report import html
from app.routing.report import service as reports_of
from app.routing.report.schemas import ReportBy, RouterReport
from tests.app.routing.report.test_report_values import REFERENCE

MARKUP = "<script>alert('$x$')</script> & *b*"
WINDOW = f"from={START:%Y-%m-%dT%H:%M:%SZ}&to={START + timedelta(weeks=4):%Y-%m-%dT%H:%M:%SZ}"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
GROUPS: tuple[ReportBy, ...] = get_args(get_args(ReportBy.__value__)[0])


class Page(HTMLParser):
    """What a test looks at in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = ("src", "href", "xlink:href", "action", "data")
        self.links += [value or "" for name, value in attrs if name in names]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[ReportBy, RouterReport]:
    """Reports of all kinds about the same decisions."""
    db = Database(f"sqlite:///{tmp_path_factory.mktemp('reports') / 'covey.db'}")
    schema.migrate(db.engine)
    insert_router(db, {1: REFERENCE, 2: None})
    insert_decisions(db, random_messages(200))
    found = {by: reports_of.get(db, "desk", by, START, START + timedelta(weeks=4)) for by in GROUPS}
    db.close()
    return found


@pytest.fixture(scope="module")
def pages(reports: dict[ReportBy, RouterReport]) -> dict[ReportBy, str]:
    return {by: html.render(report) for by, report in reports.items()}


@pytest.mark.parametrize("by", GROUPS)
def test_the_page_is_self_contained_and_has_no_scripts(pages: dict[ReportBy, str], by: ReportBy) -> None:
    text = pages[by]
    parsed = Page(text)
    assert not {"script", "link", "iframe", "object", "img", "form"} & {*parsed.tags}
    assert all(link.startswith("#") for link in parsed.links)
    assert "url(http" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text


def test_a_page_is_reproducible(reports: dict[ReportBy, RouterReport], pages: dict[ReportBy, str]) -> None:
    assert html.render(reports["version"]) == pages["version"]


@pytest.mark.parametrize("by", GROUPS)
def test_each_chart_has_a_description_and_a_table_with_its_values(
    reports: dict[ReportBy, RouterReport], pages: dict[ReportBy, str], by: ReportBy
) -> None:
    report, text = reports[by], pages[by]
    charts = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    # Volume, quality, calibration, shadows, and three of drift; by week one more of drift.
    assert len(charts) == 7 + (by == "week")
    for chart in charts:
        root = ET.fromstring(chart)  # noqa: S314 - trusted
        assert root.get("role") == "img"
        assert root.get("aria-label")
    words = " ".join("".join(Page(text).texts).split())
    for group in report.groups:
        assert group.name in words
        assert f"{group.messages:,}" in words
        for quality in (report.total.quality[0], group.quality[0]):
            if quality.f1 is not None:
                assert (
                    f"{percent(quality.f1.value)} {percent(quality.f1.low)} to {percent(quality.f1.high)}"
                    in words
                )
    assert words.index(report.summary) < words.index("Intervals"), "the report begins with it"
    for note in report.notes:
        assert note in words
    assert report.total.drift is not None
    assert report.total.drift.labels is not None
    assert f"{report.total.drift.labels.population_stability_index:.3f}" in words


def test_markup_in_names_is_escaped(reports: dict[ReportBy, RouterReport]) -> None:
    report = reports["department"].model_copy(deep=True)
    report.router = report.groups[0].name = MARKUP
    assert report.total.drift is not None
    assert report.total.drift.labels is not None
    assert report.total.drift.labels.bins is not None
    report.total.drift.labels.bins[0].name = MARKUP
    page = html.render(report)
    parsed = Page(page)
    assert "script" not in parsed.tags
    # Title, heading, tables of departments, and the one of drift.
    assert sum(MARKUP in text for text in parsed.texts) >= 5
    for svg in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(svg).iter()}  # noqa: S314 - trusted
        assert tags.isdisjoint({"script", "b"})


def test_an_empty_report_has_a_page(reports: dict[ReportBy, RouterReport]) -> None:
    empty = reports["week"].model_copy(deep=True)
    zero = [
        quality.model_copy(update={"messages": 0, "with_feedback": 0}) for quality in empty.total.quality[:1]
    ]
    for quality in zero:
        quality.set_accuracy = quality.precision = quality.recall = quality.f1 = None
    nothing: dict[str, Any] = {
        "messages": 0,
        "dispositions": [],
        "quality": zero,
        "estimated_set_accuracy": None,
        "calibration": None,
        "drift": None,
        "shadows": [],
    }
    empty.total = empty.total.model_copy(update=nothing)
    empty.groups = [group.model_copy(update=nothing) for group in empty.groups]
    text = html.render(empty)
    assert "<svg" not in text
    assert "Drift is unknown" in text


def test_a_browser_gets_the_page_and_other_clients_get_json(service: InProcessApi) -> None:
    insert_router(service.ctx.db, {1: REFERENCE, 2: None})
    insert_decisions(service.ctx.db, [RoutedMessage(feedback=["billing"]), *random_messages(5)])
    path = f"/v1/routers/desk/report?by=week&{WINDOW}"
    page = service.send("GET", path, headers=BROWSER)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert page.headers["vary"] == "Accept"
    assert "Report of desk" in page.text
    found = service.call("GET", path, 200)
    assert found["by"] == "week"
    assert found["from"] == "2026-03-02T00:00:00.000Z"
    assert found["total"]["messages"] == 6
    assert "null" not in json.dumps(found), "fields without a value are left out"
    assert service.send("GET", path).headers["vary"] == "Accept"
    refused = service.send("GET", path, headers={"Accept": "image/png"})
    assert refused.status_code == 406


def test_wrong_requests_are_answered_with_the_place(service: InProcessApi) -> None:
    insert_router(service.ctx.db, {1: None})
    for query, pointer in {
        "by=year": "/query/by",
        "from=yesterday": "/query/from",
        "from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z": "/query/from",
        "from=2020-01-01T00:00:00Z": "/query/from",
    }.items():
        response = service.send("GET", f"/v1/routers/desk/report?{query}")
        assert response.status_code == 422, query
        assert [error["pointer"] for error in response.json()["errors"]] == [pointer], query
    service.call("GET", "/v1/routers/nobody/report", 404)
