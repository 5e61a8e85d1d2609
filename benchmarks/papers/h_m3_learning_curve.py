"""H-M3, learning curve: objectives and losses by pass."""

from __future__ import annotations

from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.h_m3 import CCAT, IMCLEF, Problem
from benchmarks.papers.results import table

TITLE = "H-M3: learning curve"

LOSSES = {"zero_one": "ℓ0/1", "symmetric_difference": "ℓΔ", "simplified_hierarchical": "ℓH̃"}

PASSES = 30
GAP = 1e-3
CLOSE = 0.01


def _curves(bench: Bench) -> Json:
    """Draw objectives and losses by pass of H-M3 trained for the simplified hierarchical loss."""
    problems = (CCAT,) if bench.quick else (CCAT, IMCLEF)
    passes = 10 if bench.quick else PASSES
    learner = {"algorithm": "h_m3", "gap": GAP, "passes": passes}
    jobs = bench.train(
        [
            {
                "dataset_id": problem.dataset(bench),
                "features": problem.features,
                "learner": learner,
                "decision": {"kind": "sign"},
            }
            for problem in problems
        ]
    )
    panels: list[Panel] = []
    rows: Json = {}
    for problem, job in zip(problems, jobs, strict=True):
        objectives = {point["step"]: point["measures"] for point in bench.curve(job)}
        report = bench.experiment(
            {
                "name": f"H-M3's learning curve on {problem.title}",
                "dataset_id": problem.dataset(bench),
                "split": {"kind": "given"},
                "configurations": [
                    {"features": problem.features, "learner": learner, "decision": {"kind": "sign"}}
                ],
                "measures": list(LOSSES),
            }
        )
        losses = {curve["measure"]: curve for curve in report["curves"]}
        panels += _panels(problem, objectives, losses)
        rows[problem.title] = _row(objectives, losses)
    picture = bench.draw("h-m3-learning-curve", "Objectives and losses of H-M3 by pass", panels)
    return {"chart": picture, "passes": passes, "rows": rows}


RESULTS = {"curves": _curves}


def render(figures: dict[str, Json]) -> str:
    """Return the chart and the passes to each gap."""
    found = figures["curves"]
    head = [
        "",
        f"duality gap after at most {found['passes']} passes",
        "passes to a gap of 10 %",
        "passes to a gap of 1 %",
        f"passes until test ℓ0/1 is within {100 * CLOSE:.0f} % of its minimum",
        "minimum test ℓ0/1 in %",
        "final test ℓ0/1 in %",
    ]
    rows = [
        [
            title,
            f"{100 * row['gap']:.2f} %",
            *(str(row[name] or "not reached") for name in ("to_a_tenth", "to_a_hundredth")),
            str(row["close"]),
            f"{100 * row['lowest']:.1f}",
            f"{100 * row['final']:.1f}",
        ]
        for title, row in found["rows"].items()
    ]
    return f"""\
{found["chart"]}

`h_m3`, trained for ℓH̃ without scaling to a relative gap of {100 * GAP:g} %. The primal objective falls irregularly, and the
dual objective rises; the optimum is between them. The other charts show the losses of a training that stops at this pass, each
relative to its largest test value. The paper shows WIPO-alpha by seconds. We show passes, because they do not depend on the
machine. All passes cost the same, except for the examples that no longer matter.

{table(head, rows)}

{_findings(found["rows"])}
"""


def _panels(problem: Problem, objectives: dict[int, Json], losses: dict[str, Json]) -> list[Panel]:
    passes = sorted(objectives)
    lines = [
        Line(name, passes, [objectives[at][name] for at in passes], place)
        for place, name in enumerate(("primal", "dual"))
    ]
    shares = []
    for place, (loss, name) in enumerate(LOSSES.items(), 2):
        curve = losses[loss]
        most = max(curve["out_of_folds"])
        for part, part_name, style in (("within_folds", "training", "--"), ("out_of_folds", "test", "-")):
            shares.append(
                Line(f"{name}, {part_name}", curve["steps"], [v / most for v in curve[part]], place, style)
            )
    return [
        Panel(problem.title, lines, "passes", "objective"),
        Panel(problem.title, shares, "passes", "loss, of its largest on the test part"),
    ]


def _row(objectives: dict[int, Json], losses: dict[str, Json]) -> Json:
    gaps = {step: measures["gap"] for step, measures in sorted(objectives.items())}
    curve = losses["zero_one"]
    test = dict(zip(curve["steps"], curve["out_of_folds"], strict=True))
    lowest = min(test.values())
    return {
        "gap": gaps[max(gaps)],
        "to_a_tenth": _first(gaps, 0.1),
        "to_a_hundredth": _first(gaps, 0.01),
        "close": next(step for step, value in test.items() if value <= (1 + CLOSE) * lowest),
        "lowest": lowest,
        "final": test[max(test)],
        "passes": max(objectives),
    }


def _first(gaps: dict[int, float], gap: float) -> int | None:
    return next((step for step, value in gaps.items() if value <= gap), None)


def _findings(rows: Json) -> str:
    findings = []
    for title, row in rows.items():
        if row["close"] == row["passes"]:
            findings.append(f"On {title}, test ℓ0/1 still falls at the end.")
        elif row["to_a_hundredth"] is None or row["close"] < row["to_a_hundredth"]:
            findings.append(f"On {title}, test ℓ0/1 also reaches its minimum before the objective does.")
        else:
            findings.append(f"On {title}, test ℓ0/1 reaches its minimum after the objective does.")
        if row["final"] > row["lowest"] * (1 + CLOSE):
            findings.append(f"Then it rises from {100 * row['lowest']:.1f} to {100 * row['final']:.1f} %.")
    return (
        "In the paper, losses reach their minimum before the objective does, so early stopping is possible, and there is no "
        f"significant overfitting. {' '.join(findings)}"
    )
