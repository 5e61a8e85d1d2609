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


def run(bench: Bench) -> str:
    """Return the losses on the training part and the test part by epoch."""
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
        for part in ("within_folds", "out_of_folds")
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
    rows = [
        [
            str(epoch),
            *(
                LOSSES[measure][2].format(LOSSES[measure][1] * lines[algorithm, measure, part][epoch])
                for measure in SHOWN[:2]
                for algorithm in ALGORITHMS
                for part in ("within_folds", "out_of_folds")
            ),
        ]
        for epoch in shown
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
    changes = ". ".join(
        f"{NAMES[algorithm]} changes on the test part from "
        + "; ".join(
            f"{form.format(factor * line[1])} to {form.format(factor * line[max(line)])} by {name}"
            for measure in SHOWN
            for name, factor, form in [LOSSES[measure]]
            for line in [lines[algorithm, measure, "out_of_folds"]]
        )
        for algorithm in ALGORITHMS
    )
    return f"""\
{picture}

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
