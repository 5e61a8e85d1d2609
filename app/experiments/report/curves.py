"""Average the learning curves of a configuration over its folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.experiments.report.cells import CellResult
from app.experiments.report.schemas import ReportCurve


def mean_curves(
    configuration: int, cells: Sequence[CellResult], measures: Sequence[str]
) -> list[ReportCurve]:
    """Return the mean of each measure over folds, at every step that some fold has.

    A fold that stopped early keeps its last value.

    Args:
        configuration: index of the configuration.
        cells: its results, one for each fold that succeeded.
        measures: names of the measures; those that some step of some fold lacks are left out.
    """
    if not all(cell.curve for cell in cells):
        return []
    cells = [_align_steps(cell, cells) for cell in cells]
    steps = sorted({step for cell in cells for step in cell.curve})
    steps = [step for step in steps if step >= max(min(cell.curve) for cell in cells)]
    curves = []
    for measure in measures:
        train, test = (_mean_by_step(cells, steps, f"{part}.{measure}") for part in ("train", "test"))
        if train is not None and test is not None:
            curves.append(
                ReportCurve(
                    configuration=configuration,
                    measure=measure,
                    unit=cells[0].job_result["curve_unit"],
                    steps=steps,
                    within_folds=train,
                    out_of_folds=test,
                )
            )
    return curves


def _align_steps(cell: CellResult, cells: Sequence[CellResult]) -> CellResult:
    """Return the cell with its steps replaced by their means over all cells, if all have equally many steps.

    The sizes of folds differ by an example or two, and so do steps that count examples.
    """
    if len({len(other.curve) for other in cells}) > 1:
        return cell
    means = np.mean([sorted(other.curve) for other in cells], axis=0).round().astype(int).tolist()
    points = [cell.curve[step] for step in sorted(cell.curve)]
    return replace(cell, curve=dict(zip(means, points, strict=True)))


def _mean_by_step(cells: Sequence[CellResult], steps: Sequence[int], name: str) -> list[float] | None:
    """Return the mean over cells at each step, or None if some point of a curve lacks the measure."""
    if not all(name in point for cell in cells for point in cell.curve.values()):
        return None
    means: list[float] = np.mean([_latest(cell.curve, steps, name) for cell in cells], axis=0).tolist()
    return means


def _latest(curve: Mapping[int, Mapping[str, float]], steps: Sequence[int], name: str) -> list[float]:
    """Return the latest value of a measure at each step."""
    recorded = sorted(curve)
    positions = np.searchsorted(recorded, steps, side="right") - 1
    return [curve[recorded[position]][name] for position in positions.tolist()]
