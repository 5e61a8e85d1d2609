"""What an experiment has found: means over folds, curves, and tests between configurations."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import safetensors.numpy

from app.db import tables
from app.environment import Environment
from app.experiments import service
from app.experiments.schemas import (
    Comparison,
    ExperimentCreate,
    ExperimentReport,
    FailedCell,
    ReportCurve,
    ReportMeasure,
    ReportRow,
    ReportTest,
    Summary,
)
from app.jobs.ledger import FINISHED
from app.version import __version__
from models.arrays import Floats
from models.measures.directions import DIRECTIONS, Direction
from models.measures.examples import COVERING
from models.measures.significance import TestResult, holm, paired_wald, wilcoxon_signed_rank

MOST_COMPARED = 20
"""Configurations that are compared pair by pair; of more, every pair would make no reader wiser."""

FEWEST_FOLDS = 3
"""Folds that a test over folds takes at least."""


@dataclass(frozen=True)
class Cell:
    """A cell that has succeeded.

    Attributes:
        result: what it left.
        curve: its measures by step.
        examples: measures of its held-out examples, by name.
    """

    result: Mapping[str, Any]
    curve: Mapping[int, Mapping[str, float]]
    examples: Mapping[str, Floats]


def of(env: Environment, experiment_id: str) -> ExperimentReport:
    """The report of an experiment, final once it has ended."""
    text = rendered(
        env, experiment_id, "json", lambda: assemble(env, experiment_id).model_dump_json(exclude_none=True)
    )
    return ExperimentReport.model_validate_json(text)


def rendered(env: Environment, experiment_id: str, form: str, render: Callable[[], str]) -> str:
    """A form of the report; that of an experiment that has ended is made once and kept.

    Args:
        env: where.
        experiment_id: the experiment.
        form: its name.
        render: makes it.
    """
    with env.db.read() as session:
        experiment = service.found(session, experiment_id)
    if experiment.state not in FINISHED:
        return render()
    # Another release may say it in other words.
    key = f"experiments/{experiment_id}.report.{__version__}.{form}"
    try:
        return env.storage.local(key).read_bytes().decode()  # not read as text, which changes line ends
    except FileNotFoundError:
        text = render()
    with env.storage.create(key) as file:
        file.write(text.encode())
    return text


def assemble(env: Environment, experiment_id: str) -> ExperimentReport:
    """Put the report together from what has succeeded so far."""
    with env.db.read() as session:
        experiment = service.found(session, experiment_id)
        shown = service.shown(session, experiment, whole=False)
        rows = service.cell_rows(session, experiment_id)
        dataset = session.get(tables.Dataset, experiment.dataset_id)
        curves = service.curves_of(session, [job.id for _, job in rows if job.state == "succeeded"])
    request = ExperimentCreate.model_validate(experiment.request)
    cells: dict[int, dict[int, Cell]] = {}
    failures: dict[int, list[FailedCell]] = {}
    for row, job in rows:
        if job.state == "succeeded":
            assert job.result is not None, "a cell succeeds with its result"  # noqa: S101
            examples = safetensors.numpy.load_file(env.storage.local(job.result["examples"]))
            cells.setdefault(row.configuration, {})[row.fold] = Cell(
                job.result, curves.get(job.id, {}), examples
            )
        elif job.state in FINISHED:
            detail = job.error["detail"] if job.error is not None else "the cell was cancelled"
            failed = FailedCell(fold=row.fold, state=job.state, detail=detail)
            failures.setdefault(row.configuration, []).append(failed)
    columns = measures_of(request)
    report_rows = _rows(request, columns, cells, failures)
    return ExperimentReport(
        id=experiment.id,
        name=experiment.name,
        state=shown.state,
        dataset_id=experiment.dataset_id,
        dataset_name=dataset.name if dataset is not None else None,
        dataset_sha256=experiment.dataset_sha256,
        split=experiment.request["split"],
        folds=service.n_folds(request),
        seed=request.seed,
        created_at=experiment.created_at,
        finished_at=experiment.finished_at,
        measures=columns,
        rows=report_rows,
        curves=[
            curve
            for configuration, by_fold in sorted(cells.items())
            for curve in _curves(configuration, list(by_fold.values()), [column.name for column in columns])
        ],
        comparisons=_comparisons(cells, columns) if len(report_rows) <= MOST_COMPARED else [],
    )


def measures_of(request: ExperimentCreate) -> list[ReportMeasure]:
    """The columns of a report."""
    names = [*request.measures, *(f"{COVERING}{name}" for name in request.coverings)]
    return [ReportMeasure(name=name, better=_direction(name)) for name in names]


def _direction(measure: str) -> Direction:
    return "lower" if measure.startswith(COVERING) else DIRECTIONS[measure]


def _rows(
    request: ExperimentCreate,
    columns: Sequence[ReportMeasure],
    cells: Mapping[int, Mapping[int, Cell]],
    failures: Mapping[int, list[FailedCell]],
) -> list[ReportRow]:
    folds = service.n_folds(request)
    rows = []
    for i, configuration in enumerate(request.configurations or []):
        own = [cell for _, cell in sorted(cells.get(i, {}).items())]
        said = configuration.model_dump(mode="json", exclude_none=True)
        rows.append(
            ReportRow(
                configuration=i,
                name=said["name"],
                features=said["features"],
                learner=said["learner"],
                decision=said["decision"],
                complete=len(own) == folds,
                folds=sorted(cells.get(i, {})),
                failures=failures.get(i, []),
                test=_summaries(own, columns, "test"),
                train=_summaries(own, columns, "train"),
                fit_seconds=_summary(cell.result["timings"]["fit_seconds"] for cell in own),
                score_seconds=_summary(cell.result["timings"]["score_seconds"] for cell in own),
            )
        )
    for column in columns:
        _mark_best(
            [row.test[column.name] for row in rows if row.complete and column.name in row.test], column
        )
    return rows


def _summaries(cells: Sequence[Cell], columns: Sequence[ReportMeasure], part: str) -> dict[str, Summary]:
    summaries = {}
    for column in columns:
        # A measure that some fold cannot have (of rankings, where no example has a label) has no mean.
        if all(column.name in cell.result["metrics"][part] for cell in cells):
            summary = _summary(cell.result["metrics"][part][column.name] for cell in cells)
            if summary is not None:
                summaries[column.name] = summary
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


def _mark_best(summaries: Sequence[Summary], column: ReportMeasure) -> None:
    if summaries:
        choose = max if column.better == "higher" else min
        best = choose(summary.mean for summary in summaries)
        for summary in summaries:
            summary.best = summary.mean == best


def _curves(configuration: int, cells: Sequence[Cell], measures: Sequence[str]) -> list[ReportCurve]:
    """Means over folds at every step that some fold has; a fold that stopped early keeps its last value."""
    if not all(cell.curve for cell in cells):
        return []
    cells = [_in_step(cell, cells) for cell in cells]
    steps = sorted({step for cell in cells for step in cell.curve})
    steps = [step for step in steps if step >= max(min(cell.curve) for cell in cells)]
    curves = []
    for measure in measures:
        lines = []
        for part in ("train", "test"):
            name = f"{part}.{measure}"
            if not all(name in point for cell in cells for point in cell.curve.values()):
                break
            held = np.array([_held(cell.curve, steps, name) for cell in cells])
            lines.append(held.mean(axis=0).tolist())
        if len(lines) == 2:
            curves.append(
                ReportCurve(
                    configuration=configuration,
                    measure=measure,
                    unit=cells[0].result["curve_unit"],
                    steps=steps,
                    within_folds=lines[0],
                    out_of_folds=lines[1],
                )
            )
    return curves


def _in_step(cell: Cell, cells: Sequence[Cell]) -> Cell:
    """The cell with the steps that all folds take on average, where they take as many.

    Folds differ by an example or two, and so do steps that count examples.
    """
    if len({len(other.curve) for other in cells}) > 1:
        return cell
    means = np.mean([sorted(other.curve) for other in cells], axis=0).round().astype(int).tolist()
    own = [cell.curve[step] for step in sorted(cell.curve)]
    return replace(cell, curve=dict(zip(means, own, strict=True)))


def _held(curve: Mapping[int, Mapping[str, float]], steps: Sequence[int], name: str) -> list[float]:
    """The latest value at each step."""
    own = sorted(curve)
    places = np.searchsorted(own, steps, side="right") - 1
    return [curve[own[place]][name] for place in places.tolist()]


def _comparisons(
    cells: Mapping[int, Mapping[int, Cell]], columns: Sequence[ReportMeasure]
) -> list[Comparison]:
    """Every pair by every measure, the p-values of each measure and test corrected together."""
    made = []
    for column in columns:
        of_column = [
            compared
            for first, second in itertools.combinations(sorted(cells), 2)
            if (compared := _compared(cells, first, second, column.name)) is not None
        ]
        for kind in ("wald", "wilcoxon"):
            tests = [test for comparison in of_column for test in comparison.tests if test.test == kind]
            for test, corrected in zip(tests, holm([test.p_value for test in tests]), strict=True):
                test.p_corrected = corrected
        made += of_column
    return made


def _compared(
    cells: Mapping[int, Mapping[int, Cell]], first: int, second: int, measure: str
) -> Comparison | None:
    folds = sorted(set(cells[first]) & set(cells[second]))
    sides = [[cells[side][fold] for fold in folds] for side in (first, second)]
    if not folds or any(measure not in cell.result["metrics"]["test"] for side in sides for cell in side):
        return None
    means = [np.array([cell.result["metrics"]["test"][measure] for cell in side]) for side in sides]
    by_example = all(measure in cell.examples for side in sides for cell in side)
    tests: dict[str, Callable[[Floats, Floats], TestResult]]
    if by_example:
        values = [np.concatenate([cell.examples[measure] for cell in side]) for side in sides]
        defined = ~np.isnan(values[0]) & ~np.isnan(values[1])
        pairs = [side[defined] for side in values]
        tests = {"wald": paired_wald, "wilcoxon": wilcoxon_signed_rank}
    else:
        pairs = means
        tests = {"wilcoxon": wilcoxon_signed_rank} if len(folds) >= FEWEST_FOLDS else {}
    found = {kind: test(pairs[0], pairs[1]) for kind, test in tests.items()}
    return Comparison.model_validate(
        {
            "measure": measure,
            "first": first,
            "second": second,
            "over": "examples" if by_example else "folds",
            "difference": float(means[0].mean() - means[1].mean()),
            "tests": [_test(kind, result) for kind, result in found.items()],
        }
    )


def _test(kind: str, result: TestResult) -> ReportTest:
    return ReportTest.model_validate(
        {
            "test": kind,
            "pairs": result.n,
            "statistic": result.statistic if math.isfinite(result.statistic) else None,
            "p_value": result.p_value,
            "p_corrected": result.p_value,
        }
    )
