"""The figures of the AdaBoost.LC paper: trainings with five coverings, measured by all five errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from benchmarks.corpora import Json, jsonl, rcv1, records
from benchmarks.papers.bench import Bench, curves, means, test_of
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.frame import Part, Tables, table

COVERINGS: dict[str, Json] = {
    "ZO": {"kind": "zero_one"},
    "HM": {"kind": "hamming"},
    "TS": {"kind": "two_sets"},
    "WP": {"kind": "weighted_positive", "weight": 6},
    "WN": {"kind": "weighted_negative", "weight": 4},
}
"""The five coverings of the paper, in the order of its figures."""

MEASURES = (*(f"covering_error.{name}" for name in COVERINGS), "one_error", "coverage", "average_precision")
HEADS = (*COVERINGS, "OneErr", "Coverage", "AvgP")

LEVEL = 0.01
"""Significance level of the paper."""

PAPER = {
    "ZO": (0.567, 1.587, 0.759, 3.300, 2.407, 0.100, 4.493, 0.865),
    "HM": (0.579, 1.492, 0.757, 3.297, 2.365, 0.091, 4.378, 0.870),
    "TS": (0.574, 1.599, 0.747, 3.209, 2.356, 0.094, 4.376, 0.870),
    "WP": (0.652, 1.792, 0.857, 3.022, 2.403, 0.094, 4.177, 0.872),
    "WN": (0.610, 1.614, 0.817, 3.051, 2.314, 0.094, 4.227, 0.872),
}
"""Figure 4 for RCV1: covering errors in the order of the rows, OneErr, Coverage and AvgP."""

SHOWN = (5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Corpus:
    """A corpus, and the number of terms that each label selects."""

    title: str
    name: str = "RCV1 part"
    per_label: int = 100


CORPORA = {
    "rcv1": Corpus("RCV1 part"),
    "reuters": Corpus("Reuters-21578", "Reuters-21578"),
    "three_terms": Corpus("RCV1 part, three terms per topic", per_label=3),
    "one_term": Corpus("RCV1 part, one term per topic", per_label=1),
}


def _experiment(bench: Bench, corpus: Corpus, rounds: int) -> Json:
    """Return the report of five trainings on pivoted tf-idf of terms with high Rocchio scores (section 4)."""
    is_reuters = corpus.name == "Reuters-21578"
    features = {
        "kind": "text",
        "weighting": "pivoted",
        "analyzer": {"lowercase": True, "drop_numbers": True, "stop_words": "english"} if is_reuters else {},
        "selection": {"kind": "rocchio", "per_label": corpus.per_label},
    }
    return bench.experiment(
        bench.dataset(corpus.name, lambda: jsonl(records("reuters21578") if is_reuters else rcv1())),
        [
            {
                "name": name,
                "features": features,
                "learner": {"algorithm": "adaboost_lc", "rounds": rounds, "covering": covering},
                "decision": {"kind": "sign"},
            }
            for name, covering in COVERINGS.items()
        ],
        MEASURES[len(COVERINGS) :],
        coverings=COVERINGS,
    )


Errors = dict[tuple[str, str], dict[int, float]]
"""By covering of the training and of the error, the error by round."""


def _figure_3(corpus: Corpus, bench: Bench) -> Json:
    """Draw the chart of a corpus, and return for which coverings the diagonal is lowest.

    Returns:
        ``lowest``: for the training part and the test part, by rounds, the coverings whose own training has
        the lowest error. ``zero_one``: ZO errors of the five trainings on the training part at the end;
        ``first``: the covering with the lowest ZO error after ten rounds.
    """
    report = _experiment(bench, corpus, 20 if bench.quick else SHOWN[-1])
    names = list(COVERINGS)
    errors: dict[str, Errors] = {
        title: {
            (names[place], measure.rpartition(".")[2]): line
            for (place, measure), line in curves(report, part).items()
            if measure.startswith("covering_error.")
        }
        for title, part in (("training", "within_folds"), ("test", "out_of_folds"))
    }
    training = errors["training"]
    steps = sorted(set.intersection(*map(set, training.values())))
    shown = sorted({max(step for step in steps if step <= n) for n in SHOWN if n <= steps[-1]})
    panels = [
        Panel(
            f"{corpus.title}: {name}",
            [
                Line(f"trained with {other}", training[other, name], place)
                for place, other in enumerate(COVERINGS)
            ],
            "rounds",
            f"{name} on the training part",
        )
        for name in COVERINGS
    ]
    title = corpus.title.lower().replace(",", "").replace(" ", "-")
    bench.draw(f"adaboost-lc-figure-3-{title}", panels, across=3)
    return {
        "rounds": steps[-1],
        "lowest": {part: {str(at): _lowest(result, at) for at in shown} for part, result in errors.items()},
        "zero_one": [training[name, "ZO"][steps[-1]] for name in COVERINGS],
        "first": min(COVERINGS, key=lambda name: training[name, "ZO"][10]),
    }


def _lowest(errors: Errors, at: int) -> list[str]:
    """Return the coverings whose own training has the lowest error after ``at`` rounds."""
    return [
        name
        for name in COVERINGS
        if errors[name, name][at] <= min(errors[other, name][at] for other in COVERINGS)
    ]


def _figure_3_tables(figures: Json) -> Tables:
    parts = [(corpus, part) for corpus in figures for part in ("training", "test")]
    head = ["after rounds", *(f"{CORPORA[corpus].title}: {part}" for corpus, part in parts)]
    yield table(
        head,
        [
            [at, *(_count_of_five(figures[corpus]["lowest"][part][at]) for corpus, part in parts)]
            for at in figures["rcv1"]["lowest"]["training"]
        ],
    )


def _count_of_five(names: list[str]) -> str:
    """Return how many of the five coverings these are, and which."""
    return f"{len(names)} of {len(COVERINGS)}" + (f" ({', '.join(names)})" if names else "")


def _figure_4(corpus: Corpus, bench: Bench) -> Json:
    """Return the means by training and measure, the best of each column, and the marks of significance."""
    rounds = 20 if bench.quick else 50
    report = _experiment(bench, corpus, rounds)
    return {
        "rounds": rounds,
        "rows": dict(zip(COVERINGS, means(report, MEASURES), strict=True)),
        "best": {
            head: [
                name
                for name, row in zip(COVERINGS, report["rows"], strict=True)
                if row["test"][measure]["best"]
            ]
            for head, measure in zip(HEADS, MEASURES, strict=True)
        },
        "marks": _marks(report),
    }


def _marks(report: Json) -> dict[str, str]:
    """Return for each training covering and each other error covering, `*`, `+` or an empty string."""
    names = list(COVERINGS)
    marks = {}
    for comparison in report["comparisons"]:
        pair = (names[comparison["first"]], names[comparison["second"]])
        name = comparison["measure"].rpartition(".")[2]
        if name in pair:
            other = pair[1] if pair[0] == name else pair[0]
            worse = comparison["difference"] < 0 if pair[0] == name else comparison["difference"] > 0
            differs = test_of(comparison, "wald")["p_value"] <= LEVEL
            marks[f"{other} {name}"] = ("*" if worse else "+") if differs else ""
    return marks


def _figure_4_tables(figures: Json) -> Tables:
    for corpus, result in figures.items():
        rows = []
        for name, values in result["rows"].items():
            cells = []
            for place, (head, value) in enumerate(zip(HEADS, values, strict=True)):
                ours = f"**{value:.3f}**" if name in result["best"][head] else f"{value:.3f}"
                ours += result["marks"].get(f"{name} {head}", "").replace("*", "\\*")
                cells.append(f"{ours} ({PAPER[name][place]:.3f})" if corpus == "rcv1" else ours)
            rows.append([name, *cells])
        yield table(["trained with", *HEADS], rows)


PARTS = {
    "adaboost_lc_figure_3": Part(
        {name: partial(_figure_3, corpus) for name, corpus in CORPORA.items()}, _figure_3_tables
    ),
    "adaboost_lc_figure_4": Part(
        {name: partial(_figure_4, CORPORA[name]) for name in ("rcv1", "reuters")}, _figure_4_tables
    ),
}
