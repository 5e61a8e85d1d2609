"""MLPP, figure 7: losses on both parts by the number of epochs."""

from __future__ import annotations

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.mlpp import LOSSES, NAMES, RCV1_FEATURES, configuration, rcv1
from benchmarks.papers.results import table

TITLE = "MLPP, figure 7: losses by number of epochs"

ALGORITHMS = ("mmp", "mlpp")
SHOWN = ("is_error", "error_set_size", "margin")
EPOCHS = 20
N_TRAINING = 3_000
PARTS = ("within_folds", "out_of_folds")


def _curves(bench: Bench) -> Json:
    """Draw the curves, and return the losses on both parts by epoch."""
    epochs = 3 if bench.quick else EPOCHS
    report = bench.experiment(
        {
            "dataset_id": rcv1(bench),
            "split": {"kind": "given"},
            "configurations": [
                configuration(algorithm, RCV1_FEATURES, epochs=epochs) for algorithm in ALGORITHMS
            ],
            "measures": list(SHOWN),
        }
    )
    lines = {
        (ALGORITHMS[curve["configuration"]], curve["measure"], part): _by_epoch(curve, part)
        for curve in report["curves"]
        for part in PARTS
    }
    panels = [
        Panel(
            LOSSES[measure][0],
            [
                Line(
                    f"{NAMES[algorithm]}, {'training' if part == 'within_folds' else 'test'} part",
                    list(line),
                    [LOSSES[measure][1] * value for value in line.values()],
                    ALGORITHMS.index(algorithm),
                    "--" if part == "within_folds" else "-",
                )
                for (algorithm, of, part), line in lines.items()
                if of == measure
            ],
            "epochs",
            LOSSES[measure][0],
        )
        for measure in SHOWN
    ]
    picture = bench.draw("mlpp-epochs", "Losses on both parts by epochs", panels, across=3)
    there = set.intersection(*(set(line) for line in lines.values()))
    shown = sorted({min(there, key=lambda epoch: abs(epoch - at)) for at in (1, 2, 3, 5, 10, 15, EPOCHS)})
    ends = (min(there), max(there))
    return {
        "chart": picture,
        "losses": {
            str(epoch): {
                algorithm: {
                    measure: [lines[algorithm, measure, part][epoch] for part in PARTS] for measure in SHOWN
                }
                for algorithm in ALGORITHMS
            }
            for epoch in sorted({*shown, *ends})
        },
    }


RESULTS = {"curves": _curves}


def render(figures: dict[str, Json]) -> str:
    """Return the chart, and the losses on the training part and the test part by epoch."""
    found = figures["curves"]
    rows = [
        [
            epoch,
            *(
                LOSSES[measure][2].format(LOSSES[measure][1] * value)
                for measure in SHOWN[:2]
                for algorithm in ALGORITHMS
                for value in losses[algorithm][measure]
            ),
        ]
        for epoch, losses in found["losses"].items()
    ]
    head = [
        "epochs",
        *(
            f"{LOSSES[m][0]}: {NAMES[a]}, {part}"
            for m in SHOWN[:2]
            for a in ALGORITHMS
            for part in ("train", "test")
        ),
    ]
    first, *_, last = found["losses"].values()
    changes = ". ".join(
        f"{NAMES[algorithm]} changes on the test part from "
        + "; ".join(
            f"{form.format(factor * first[algorithm][measure][-1])} to "
            f"{form.format(factor * last[algorithm][measure][-1])} by {name}"
            for measure in SHOWN
            for name, factor, form in [LOSSES[measure]]
        )
        for algorithm in ALGORITHMS
    )
    return f"""\
{found["chart"]}

The RCV1 part: 3,000 training and 3,000 test documents.

{table(head, rows)}

From the first to the last epoch, {changes}.
In the paper, MMP becomes worse on the test part with each epoch and MLPP does not change, while both fit the training part
increasingly well. One epoch is sufficient with 535,987 documents, but not with 3,000. Therefore MLPP first improves with
further epochs here.
"""


def _by_epoch(curve: Json, part: str) -> dict[int, float]:
    return {
        step // N_TRAINING: value
        for step, value in zip(curve["steps"], curve[part], strict=True)
        if step % N_TRAINING == 0
    }
