"""Experiments over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeAlias

from fastapi import Query, Request, Response

from app.errors import NotAcceptable
from app.experiments import page as pages
from app.experiments import rendering, report, service
from app.experiments.schemas import (
    Experiment,
    ExperimentCreate,
    ExperimentId,
    ExperimentPage,
    ExperimentReport,
)
from app.http import Env, ReadScope, TrainScope, headed, resource, responses
from app.idempotency import OnceHeader
from app.paging import PageQuery

router = resource("experiments")

ReportFormat: TypeAlias = Literal["json", "markdown", "csv", "html"]

MEDIA_TYPES: Mapping[ReportFormat, str] = {
    "json": "application/json",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}
RENDERERS: Mapping[str, Callable[[ExperimentReport], str]] = {
    "markdown": rendering.markdown,
    "csv": rendering.comma_separated,
    "html": pages.html,
}


@router.post(
    "/experiments",
    status_code=202,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **headed(202, "Location")},
)
def create(env: Env, once: OnceHeader, body: ExperimentCreate, response: Response) -> Experiment:
    """Try several configurations on the same splits. What cannot go together is refused at once."""
    made = service.create(env, body, once)
    response.headers["Location"] = f"/v1/experiments/{made.id}"
    return made


@router.get("/experiments", dependencies=[ReadScope])
def list(env: Env, page: PageQuery) -> ExperimentPage:  # noqa: A001 - the verb of the operation's id
    """List experiments, the newest first."""
    return service.page(env.db, page)


@router.get("/experiments/{experiment_id}", dependencies=[ReadScope], responses=responses(404))
def get(env: Env, experiment_id: ExperimentId) -> Experiment:
    """Read an experiment and how far each of its cells is."""
    return service.get(env.db, experiment_id)


@router.post(
    "/experiments/{experiment_id}/cancel",
    status_code=202,
    dependencies=[TrainScope],
    responses=responses(404),
)
def cancel(env: Env, experiment_id: ExperimentId) -> Experiment:
    """Ask an experiment to stop. Finished cells are kept, running ones stop at their next round."""
    return service.cancel(env, experiment_id)


@router.get(
    "/experiments/{experiment_id}/report",
    dependencies=[ReadScope],
    response_model=ExperimentReport,
    responses={
        **responses(404, 406),
        200: {
            "content": {
                media: {"schema": {"type": "string"}} for form, media in MEDIA_TYPES.items() if form != "json"
            }
        },
    },
)
def get_report(
    env: Env,
    request: Request,
    experiment_id: ExperimentId,
    format: Annotated[  # noqa: A002 - the parameter's name
        ReportFormat | None, Query(description="The report's form; by default what `Accept` prefers.")
    ] = None,
) -> ExperimentReport | Response:
    """Read what an experiment has found: means over folds, curves, significance.

    As JSON, Markdown, CSV, or a page of HTML with pictures that needs nothing else.
    """
    form = format or preferred(request.headers.get("accept", ""))
    found = report.of(env, experiment_id)
    if form == "json":
        return found
    headers = {"Content-Security-Policy": pages.POLICY} if form == "html" else {}
    # Caches must not give one form where another was asked for.
    headers["Vary"] = "Accept"
    text = report.rendered(env, experiment_id, form, lambda: RENDERERS[form](found))
    return Response(text, media_type=f"{MEDIA_TYPES[form]}; charset=utf-8", headers=headers)


def preferred(accept: str) -> ReportFormat:
    """The form that an `Accept` header likes best; among equals JSON, then as they are listed.

    Raises:
        NotAcceptable: it likes none of them.

    >>> preferred("text/html,application/xhtml+xml,*/*;q=0.8")
    'html'
    >>> preferred("*/*"), preferred("")
    ('json', 'json')
    """
    liked: dict[str, float] = {}
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        try:
            liked[name] = float(quality)
        except ValueError:
            continue
    if not accept.strip():
        return "json"

    def quality_of(media: str) -> float:
        kind = media.split("/", maxsplit=1)[0] + "/*"
        return next((liked[name] for name in (media, kind, "*/*") if name in liked), 0.0)

    best = max(MEDIA_TYPES, key=lambda form: quality_of(MEDIA_TYPES[form]))
    if quality_of(MEDIA_TYPES[best]) <= 0:
        raise NotAcceptable(f"a report is one of {', '.join(MEDIA_TYPES.values())}")
    return best
