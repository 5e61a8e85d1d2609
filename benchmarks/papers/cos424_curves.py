"""COS 424, question 6: accuracy within and out of folds by rounds, compared with naive Bayes."""

from __future__ import annotations

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.cos424 import CORPORA, DATA, N_FOLDS, boosting, naive_bayes, rows_of, svm
from benchmarks.papers.results import table

TITLE = "COS 424, question 6: accuracy by rounds"

ALPHAS = (1.0, 0.1, 0.01)
SHOWN = (1, 10, 20, 50, 100, 200, 500)


COSTS = (0.1, 1.0)
"""C of the SVMs."""


def _curves(bench: Bench) -> Json:
    """Draw the curves of both corpora, and return accuracies within and out of folds."""
    reports = {corpus: _report(bench, corpus) for corpus in CORPORA}
    panels = [_panel(corpus, report) for corpus, report in reports.items()]
    picture = bench.draw("cos424-curves", "Accuracy of AdaBoost.MH by rounds, and of naive Bayes", panels)
    return {
        "chart": picture,
        "corpora": {corpus: _figures(bench, corpus, report) for corpus, report in reports.items()},
    }


def _machines(bench: Bench) -> Json:
    """Return the accuracies of SVMs by corpus and C."""
    found: Json = {}
    for corpus in CORPORA:
        report = _experiment(bench, corpus, [svm(C) for C in COSTS])
        found[corpus] = {
            f"{C:g}": {part: row[part]["accuracy"] for part in ("train", "test")}
            for C, row in zip(COSTS, report["rows"], strict=True)
        }
    return found


RESULTS = {"curves": _curves, "machines": _machines}


def render(figures: dict[str, Json]) -> str:
    """Return a chart, and a table per corpus."""
    found = figures["curves"]
    tables = "\n\n".join(
        _table(corpus, about, figures.get("machines", {}).get(corpus, {}))
        for corpus, about in found["corpora"].items()
    )
    machines = (
        "The SVMs, the third learner of the assignment, are one linear SVM for each\nclass on tf-idf of unit length; "
        "the class with the highest score is predicted. "
        if "machines" in figures
        else ""
    )
    return f"""\
{DATA}

Multinomial naive Bayes with Laplace smoothing uses the counts of the same words. {machines}All figures are means over five folds, which
distribute each label evenly. The assignment contains no figures.

{found["chart"]}

{tables}
"""


def _report(bench: Bench, corpus: str) -> Json:
    return _experiment(bench, corpus, [boosting(bench), *(naive_bayes(alpha) for alpha in ALPHAS)])


def _experiment(bench: Bench, corpus: str, configurations: list[Json]) -> Json:
    about = CORPORA[corpus]
    return bench.experiment(
        {
            "dataset_id": bench.dataset(about.title, lambda: corpora.jsonl(rows_of(bench, corpus))),
            "split": {"kind": "folds", "folds": N_FOLDS},
            "configurations": configurations,
            "measures": ["accuracy"],
        }
    )


def _boosting(report: Json) -> Json:
    curve: Json = next(curve for curve in report["curves"] if curve["configuration"] == 0)
    return curve


def _panel(corpus: str, report: Json) -> Panel:
    curve, bayes = _boosting(report), report["rows"][1]
    return Panel(
        CORPORA[corpus].title,
        [
            Line("boosting, within folds", curve["steps"], curve["within_folds"], 0, "--"),
            Line("boosting, out of folds", curve["steps"], curve["out_of_folds"], 0),
        ],
        "rounds",
        "accuracy",
        levels=[
            ("naive Bayes, within folds", bayes["train"]["accuracy"]["mean"], 2),
            ("naive Bayes, out of folds", bayes["test"]["accuracy"]["mean"], 1),
        ],
    )


def _figures(bench: Bench, corpus: str, report: Json) -> Json:
    curve, last = _boosting(report), report["rows"][0]
    rounds = last["learner"]["rounds"]
    near = {min(curve["steps"], key=lambda step: abs(step - n)) for n in SHOWN if n <= rounds} - {rounds}
    points = zip(curve["steps"], curve["within_folds"], curve["out_of_folds"], strict=True)
    names = ["boosting", *(f"{alpha:g}" for alpha in ALPHAS)]
    ends = {
        name: {part: row[part]["accuracy"] for part in ("train", "test")}
        for name, row in zip(names, report["rows"], strict=True)
    }
    bayes = ends[f"{ALPHAS[0]:g}"]["test"]["mean"]
    best = max(
        zip(curve["out_of_folds"], curve["steps"], strict=True), key=lambda point: (point[0], -point[1])
    )
    above = [s for s, value in zip(curve["steps"], curve["out_of_folds"], strict=True) if value > bayes]
    return {
        "documents": len(rows_of(bench, corpus)),
        "rounds": rounds,
        "points": [[step, within, out] for step, within, out in points if step in near],
        "boosting": ends.pop("boosting"),
        "naive_bayes": ends,
        "best": {"round": best[1], "accuracy": best[0]},
        "first_above": above[0] if above else None,
        "difference": last["test"]["accuracy"]["mean"] - bayes,
    }


def _table(corpus: str, found: Json, machines: Json) -> str:
    rows = [[f"{step:,} rounds", f"{within:.3f}", f"{out:.3f}"] for step, within, out in found["points"]]
    ends = {
        f"{found['rounds']:,} rounds": found["boosting"],
        **{f"naive Bayes, α = {alpha}": row for alpha, row in found["naive_bayes"].items()},
        **{f"SVM, C = {C}": row for C, row in machines.items()},
    }
    for name, row in ends.items():
        test = row["test"]
        rows.append([name, f"{row['train']['mean']:.3f}", f"{test['mean']:.3f} ± {test['deviation']:.3f}"])
    difference, first = found["difference"], found["first_above"]
    crossing = f"; boosting first exceeds naive Bayes (α = 1) at round {first:,}" if first else ""
    return f"""\
### {CORPORA[corpus].title} ({found["documents"]:,} documents)

{table(["", "within folds", "out of folds"], rows)}

Out of folds, boosting ends {abs(difference):.3f} {"above" if difference > 0 else "below"} naive Bayes with α = 1{_against(found, machines)}.
Of the rounds in the chart, round {found["best"]["round"]:,} is best with {found["best"]["accuracy"]:.3f}{crossing}."""


def _against(found: Json, machines: Json) -> str:
    """Return how far boosting is above or below the best SVM."""
    if not machines:
        return ""
    best = max(machines, key=lambda C: float(machines[C]["test"]["mean"]))
    difference = found["boosting"]["test"]["mean"] - machines[best]["test"]["mean"]
    return f", and {abs(difference):.3f} {'above' if difference > 0 else 'below'} the SVM with C = {best}"
