"""COS 424, question 6: accuracy within and out of folds by rounds, compared with naive Bayes."""

from __future__ import annotations

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.cos424 import CORPORA, DATA, N_FOLDS, boosting, naive_bayes, rows_of
from benchmarks.papers.results import table

TITLE = "COS 424, question 6: accuracy by rounds"

ALPHAS = (1.0, 0.1, 0.01)
SHOWN = (1, 10, 20, 50, 100, 200, 500)


def run(bench: Bench) -> str:
    """Return a chart, and a table per corpus."""
    reports = {corpus: _report(bench, corpus) for corpus in CORPORA}
    panels = [_panel(corpus, report) for corpus, report in reports.items()]
    picture = bench.draw("cos424-curves", "Accuracy of AdaBoost.MH by rounds, and of naive Bayes", panels)
    tables = "\n\n".join(_table(bench, corpus, report) for corpus, report in reports.items())
    return f"""\
{DATA}

Multinomial naive Bayes with Laplace smoothing uses the counts of the same words. All figures are means over five folds, which
distribute each label evenly. The assignment contains no figures.

{picture}

{tables}
"""


def _report(bench: Bench, corpus: str) -> Json:
    about = CORPORA[corpus]
    return bench.experiment(
        {
            "dataset_id": bench.dataset(about.title, lambda: corpora.jsonl(rows_of(bench, corpus))),
            "split": {"kind": "folds", "folds": N_FOLDS},
            "configurations": [boosting(bench), *(naive_bayes(alpha) for alpha in ALPHAS)],
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


def _table(bench: Bench, corpus: str, report: Json) -> str:
    curve, last = _boosting(report), report["rows"][0]
    rounds = last["learner"]["rounds"]
    near = {min(curve["steps"], key=lambda step: abs(step - n)) for n in SHOWN if n <= rounds} - {rounds}
    rows = [
        [f"{step:,} rounds", f"{within:.3f}", f"{out:.3f}"]
        for step, within, out in zip(
            curve["steps"], curve["within_folds"], curve["out_of_folds"], strict=True
        )
        if step in near
    ]
    names = [f"{rounds:,} rounds", *(f"naive Bayes, α = {alpha:g}" for alpha in ALPHAS)]
    for name, row in zip(names, report["rows"], strict=True):
        train, test = row["train"]["accuracy"], row["test"]["accuracy"]
        rows.append([name, f"{train['mean']:.3f}", f"{test['mean']:.3f} ± {test['deviation']:.3f}"])
    boosted, bayes = last["test"]["accuracy"]["mean"], report["rows"][1]["test"]["accuracy"]["mean"]
    best = max(
        zip(curve["out_of_folds"], curve["steps"], strict=True), key=lambda point: (point[0], -point[1])
    )
    above = [s for s, value in zip(curve["steps"], curve["out_of_folds"], strict=True) if value > bayes]
    crossing = f"; boosting first exceeds naive Bayes (α = 1) at round {above[0]:,}" if above else ""
    return f"""\
### {CORPORA[corpus].title} ({len(rows_of(bench, corpus)):,} documents)

{table(["", "within folds", "out of folds"], rows)}

Out of folds, boosting ends {abs(boosted - bayes):.3f} {"above" if boosted > bayes else "below"} naive Bayes with α = 1.
Of the rounds in the chart, round {best[1]:,} is best with {best[0]:.3f}{crossing}."""
