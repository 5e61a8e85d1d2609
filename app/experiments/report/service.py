"""Return the report of an experiment in every format; render a final report only once and store it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog

from app.context import AppContext
from app.experiments import service
from app.experiments.report import csv, html, markdown
from app.experiments.report.build import build_report
from app.experiments.report.schemas import ExperimentReport, ReportFormat
from app.jobs.queue import FINISHED
from app.version import __version__

log = structlog.get_logger()

RENDERERS: Mapping[ReportFormat, Callable[[ExperimentReport], str]] = {
    "markdown": markdown.render,
    "csv": csv.render,
    "html": html.render,
}


def get(ctx: AppContext, experiment_id: str) -> ExperimentReport:
    """Return the report of an experiment; it is final once the experiment has ended.

    Raises:
        NotFound: the experiment does not exist.
    """
    text = _stored(
        ctx,
        experiment_id,
        "json",
        lambda: build_report(ctx, experiment_id).model_dump_json(exclude_none=True),
    )
    return ExperimentReport.model_validate_json(text)


def get_as(ctx: AppContext, experiment_id: str, form: ReportFormat) -> str:
    """Return the report of an experiment as Markdown, CSV or HTML.

    Raises:
        NotFound: the experiment does not exist.
    """
    return _stored(ctx, experiment_id, form, lambda: RENDERERS[form](get(ctx, experiment_id)))


def _stored(ctx: AppContext, experiment_id: str, form: str, render: Callable[[], str]) -> str:
    """Return the stored text of a final report, or render the report and store it if it is final."""
    with ctx.db.read() as session:
        experiment = service.get_or_404(session, experiment_id)
    if experiment.state not in FINISHED:
        return render()
    # The key has the version of the service in it because another release may render a report differently.
    key = f"experiments/{experiment_id}.report.{__version__}.{form}"
    try:
        return ctx.storage.local(key).read_bytes().decode()  # bytes, because text mode changes line ends
    except FileNotFoundError:
        text = render()
    try:
        with ctx.storage.create(key) as file:
            file.write(text.encode())
    except OSError as error:
        log.warning("report.not_stored", experiment_id=experiment_id, reason=error.strerror)
    return text
