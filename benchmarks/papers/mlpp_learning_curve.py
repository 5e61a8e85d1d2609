"""MLPP, figures 4 to 6: losses on each example before the learner learns from it."""

from __future__ import annotations

import math

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.mlpp import LOSSES, NAMES, trained
from benchmarks.papers.results import table

TITLE = "MLPP, figures 4 to 6: the learning curve"

ALGORITHMS = ("mmp", "mlpp", "binary_relevance_perceptron")
SHOWN = ("is_error", "error_set_size", "margin")


def _curves(bench: Bench) -> Json:
    """Draw the curves, and return the accumulated losses by number of examples."""
    jobs = trained(bench, ALGORITHMS, split="none")
    curves = {algorithm: bench.curve(job) for algorithm, job in jobs.items()}
    every = bench.version(jobs["mlpp"])["facts"]["tested_every"]
    panels = [
        Panel(
            LOSSES[measure][0],
            [
                Line(
                    NAMES[algorithm],
                    [point["step"] for point in curves[algorithm]],
                    [LOSSES[measure][1] * point["measures"][measure] for point in curves[algorithm]],
                    place,
                )
                for place, algorithm in enumerate(ALGORITHMS)
            ],
            "documents",
            f"accumulated {LOSSES[measure][0]}",
        )
        for measure in SHOWN
    ]
    picture = bench.draw("mlpp-learning-curve", "Losses before learning, accumulated", panels, across=3)
    steps = sorted({point["step"] for point in curves["mmp"]} & {point["step"] for point in curves["mlpp"]})
    chosen = sorted(
        {min(steps, key=lambda step: abs(step - at)) for at in (200, 500, 1000, 2000, 4000, 6000)}
    )
    n_tested = -(-steps[-1] // every)
    last = _at(curves["mlpp"], steps[-1])["is_error"]
    return {
        "chart": picture,
        "tested_every": every,
        "standard_error": 100 * math.sqrt(last * (1 - last) / n_tested),
        "losses": {
            str(step): {
                algorithm: {measure: _at(curves[algorithm], step)[measure] for measure in SHOWN}
                for algorithm in ALGORITHMS
            }
            for step in chosen
        },
        "points": len(steps),
        "ahead": {
            measure: sum(
                _at(curves["mlpp"], step)[measure] < _at(curves["mmp"], step)[measure] for step in steps
            )
            for measure in SHOWN
        },
    }


RESULTS = {"curves": _curves}


def render(figures: dict[str, Json]) -> str:
    """Return the chart, and the losses at some points of the curve."""
    found = figures["curves"]
    rows = [
        [
            f"{int(step):,}",
            *(
                LOSSES[measure][2].format(LOSSES[measure][1] * losses[algorithm][measure])
                for measure in SHOWN
                for algorithm in ALGORITHMS
            ),
        ]
        for step, losses in found["losses"].items()
    ]
    head = ["documents", *(f"{LOSSES[m][0]}: {NAMES[a]}" for m in SHOWN for a in ALGORITHMS)]
    lead = ", ".join(
        f"{LOSSES[measure][0]} at {ahead} of {found['points']}" for measure, ahead in found["ahead"].items()
    )
    return f"""\
{found["chart"]}

All 6,000 documents of the RCV1 part in the order of the file, one epoch. Each loss is the mean over all documents so far; each
document is tested before the learner learns from it. Prediction with MLPP costs far more than training, so MLPP is tested only
on every {found["tested_every"]}th document. Therefore the start of its line is uneven, and its last IsErr has a standard error of {found["standard_error"]:.1f}. The
paper's curves are over 535,987 documents.

{table(head, rows)}

MLPP's line is below MMP's by {lead} points of the curve. In the paper, this is so from the start by ErrSetSize and Margin, and by IsErr after a start in which MMP is slightly better.
"""


def _at(curve: list[Json], step: int) -> dict[str, float]:
    measures: dict[str, float] = next(point["measures"] for point in curve if point["step"] == step)
    return measures
