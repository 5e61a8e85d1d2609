"""HTTP route of the report of a router."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from app.api.base_route import Context, ReadScope, resource, responses
from app.api.schemas import RouterName, TimeParameter
from app.pages.report import choose_format, text_response
from app.routing.report import service
from app.routing.report.schemas import ReportBy, RouterReport
from app.threads import REQUESTS

router = resource("routers")

MEDIA_TYPES: Mapping[Literal["json", "html"], str] = {"json": "application/json", "html": "text/html"}

From = Annotated[
    TimeParameter | None,
    Query(alias="from", description="Begin of the window. By default, 90 days before its end."),
]
To = Annotated[
    TimeParameter | None,
    Query(description="End of the window, which does not belong to it. By default, now."),
]


@router.get(
    "/routers/{name}/report",
    dependencies=[ReadScope],
    response_model=RouterReport,
    responses={**responses(404, 406), 200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
    response_description="The report.",
)
async def get_report(
    ctx: Context,
    request: Request,
    response: Response,
    name: RouterName,
    by: ReportBy = "department",
    begin: From = None,
    to: To = None,
) -> RouterReport | Response:
    """Get the report of a router: volume, quality, calibration, drift, and agreement of shadow versions.

    Quality and calibration are measured on messages with feedback. The report is JSON, or one self-contained
    HTML page with charts if `Accept` prefers `text/html`. A window has at most 400 days.
    """
    if choose_format(request, response, MEDIA_TYPES) == "json":
        return await REQUESTS.run(service.get, ctx.db, name, by, begin, to)
    page = await REQUESTS.run(service.get_html, ctx.db, name, by, begin, to)
    return text_response(page, MEDIA_TYPES["html"])
