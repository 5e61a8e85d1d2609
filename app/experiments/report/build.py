"""Build the report of an experiment from the results of its cells."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.context import AppContext
from app.db import tables
from app.experiments import service
from app.experiments.cell_files import load_examples
from app.experiments.folds import held_out_folds
from app.experiments.measures import measures_of
from app.experiments.report.cells import CellResult
from app.experiments.report.comparisons import compare_configurations
from app.experiments.report.curves import mean_curves
from app.experiments.report.schemas import ExperimentReport, FailedCell, ReportMeasure, ReportRow, Summary
from app.experiments.schemas import ExperimentCreate
from app.jobs.events import curves_of
from app.jobs.queue import FINISHED
from models.measures.directions import direction_of

MAX_COMPARED = 20
"""The largest number of configurations that are compared in pairs; more pairs than that are unreadable."""


def build_report(ctx: AppContext, experiment_id: str) -> ExperimentReport:
    """Build the report of an experiment from the cells that have succeeded so far.

    Raises:
        NotFound: the experiment does not exist.
        FileDamaged: the held-out examples of a cell cannot be read.
    """
    with ctx.db.read() as session:
        experiment = service.get_or_404(session, experiment_id)
        shown = service.to_response(session, experiment, with_cells=False)
        rows = service.cell_rows(session, experiment_id)
        dataset = session.get(tables.Dataset, experiment.dataset_id)
        curves = curves_of(session, [job.id for _, job in rows if job.state == "succeeded"])
    request = ExperimentCreate.model_validate(experiment.request)
    results: dict[int, dict[int, CellResult]] = {}
    failures: dict[int, list[FailedCell]] = {}
    for row, job in rows:
        if job.state == "succeeded":
            assert job.result is not None, "a cell succeeds with its result"  # noqa: S101
            results.setdefault(row.configuration, {})[row.fold] = CellResult(
                job.result, curves.get(job.id, {}), load_examples(ctx, job.result["examples"])
            )
        elif job.state in FINISHED:
            detail = job.error["detail"] if job.error is not None else "the cell was cancelled"
            failed = FailedCell(fold=row.fold, state=job.state, detail=detail)
            failures.setdefault(row.configuration, []).append(failed)
    measures = report_measures(request)
    names = [measure.name for measure in measures]
    report_rows = _rows(request, measures, results, failures)
    return ExperimentReport(
        id=experiment.id,
        name=experiment.name,
        state=shown.state,
        dataset_id=experiment.dataset_id,
        dataset_name=dataset.name if dataset is not None else None,
        dataset_sha256=experiment.dataset_sha256,
        split=experiment.request["split"],
        folds=len(held_out_folds(request)),
        seed=request.seed,
        created_at=experiment.created_at,
        finished_at=experiment.finished_at,
        measures=measures,
        rows=report_rows,
        curves=[
            curve
            for configuration, by_fold in sorted(results.items())
            for curve in mean_curves(configuration, list(by_fold.values()), names)
        ],
        comparisons=compare_configurations(results, names, request.alternative)
        if len(report_rows) <= MAX_COMPARED
        else [],
    )


def report_measures(request: ExperimentCreate) -> list[ReportMeasure]:
    """Return the measures of a report: those of the request, then one for each covering."""
    return [ReportMeasure(name=name, better=direction_of(name)) for name in measures_of(request)]


def _rows(
    request: ExperimentCreate,
    measures: Sequence[ReportMeasure],
    results: Mapping[int, Mapping[int, CellResult]],
    failures: Mapping[int, list[FailedCell]],
) -> list[ReportRow]:
    expected_folds = len(held_out_folds(request))
    rows = []
    for i, configuration in enumerate(request.configurations or []):
        by_fold = results.get(i, {})
        folds = sorted(by_fold)
        cells = [by_fold[fold] for fold in folds]
        fields: dict[str, Any] = configuration.model_dump(mode="json", exclude_none=True)
        rows.append(
            ReportRow(
                configuration=i,
                name=fields["name"],
                features=fields["features"],
                learner=fields["learner"],
                decision=fields["decision"],
                complete=len(folds) == expected_folds,
                folds=folds,
                failures=failures.get(i, []),
                test=_summaries(cells, measures, "test"),
                train=_summaries(cells, measures, "train"),
                fit_seconds=_summary(cell.job_result["timings"]["fit_seconds"] for cell in cells),
                score_seconds=_summary(cell.job_result["timings"]["score_seconds"] for cell in cells),
            )
        )
    for measure in measures:
        _mark_best(
            [row.test[measure.name] for row in rows if row.complete and measure.name in row.test], measure
        )
    return rows


def _summaries(
    cells: Sequence[CellResult], measures: Sequence[ReportMeasure], part: str
) -> dict[str, Summary]:
    summaries = {}
    for measure in measures:
        # A fold may lack a measure: those of rankings are undefined if no example of the part has a label.
        if all(measure.name in cell.job_result["metrics"][part] for cell in cells):
            summary = _summary(cell.job_result["metrics"][part][measure.name] for cell in cells)
            if summary is not None:
                summaries[measure.name] = summary
    return summaries


def _summary(values: Iterable[float]) -> Summary | None:
    listed = list(values)
    if not listed:
        return None
    return Summary(
        mean=statistics.fmean(listed),
        deviation=statistics.stdev(listed) if len(listed) > 1 else None,
        values=listed,
        best=False,
    )


def _mark_best(summaries: Sequence[Summary], measure: ReportMeasure) -> None:
    if summaries:
        choose = max if measure.better == "higher" else min
        best = choose(summary.mean for summary in summaries)
        for summary in summaries:
            summary.best = summary.mean == best
