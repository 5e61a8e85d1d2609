"""The MLPP paper on the RCV1 part: ranking losses, learning curves, operations, and quick voting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.corpora import Json, jsonl, rcv1
from benchmarks.papers.bench import GIVEN, Bench, curves, means, test_of
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.frame import Part, Tables, table, with_paper
from models.features import TextFeatures
from models.labels.ranking import ranking
from models.perceptrons import MLPP

LOSSES = {
    "is_error": ("IsErr × 100", 100.0, "{:.2f}"),
    "error_set_size": ("ErrSetSize", 1.0, "{:.3f}"),
    "margin": ("Margin", 1.0, "{:.3f}"),
    "average_precision": ("AvgP × 100", 100.0, "{:.2f}"),
}
"""The paper's rows by our measures: name, factor and format. AvgP has the usual direction: 100 is best."""

DRAWN = ("is_error", "error_set_size", "margin")
"""The losses of the paper's figures."""

NAMES = {"mlpp": "MLPP", "mmp": "MMP", "binary_relevance_perceptron": "BR", "naive_bayes": "NB"}

FEATURES: Json = {"kind": "text", "weighting": "tfidf", "scaling": "unit"}
"""Features of a story as a set of terms: ln(g/df), scaled to unit length."""

VOTINGS = ("max_wins", "weighted")
TOPS = (1, 3, 5, 10)

SMALL = 0.001
"""The p-value below which the exact value is not stored."""

PAPER_TABLE_2 = {
    "is_error": (29.35, 28.14, 35.87, 51.79),
    "error_set_size": (2.801, 1.920, 7.614, 6.285),
    "margin": (2.120, 1.453, 5.833, 4.513),
    "average_precision": (92.82, 93.67, 90.00, 82.26),
}
"""The paper's figures of MMP, MLPP, BR and NB."""

DIFFERENCES = {"is_error": -4.11, "error_set_size": -31.45, "margin": -31.47, "average_precision": 0.92}
"""The paper's Δ. It differs slightly from the Δ of the paper's rounded figures."""

PAPER_TABLE_4 = {
    "training": (55_896_832, 56_680_708, 174_184_241),
    "prediction": (27_647_981, 27_647_981, 1_410_047_031),
}
"""The paper's operations of BR, MMP and MLPP."""

PAPER_EXAMPLES = {"training": 535_987, "prediction": 268_427}


def scaled(measure: str, value: float) -> str:
    """Return a loss as in the paper's tables."""
    _, factor, form = LOSSES[measure]
    return form.format(factor * value)


def configuration(algorithm: str, features: Json, **learner: int | str) -> Json:
    """Return a configuration. Its decision does not affect rankings and needs no tuning."""
    decision: Json = {"kind": "top_k", "k": 1} if algorithm == "mlpp" else {"kind": "sign"}
    return {"features": features, "learner": {"algorithm": algorithm, **learner}, "decision": decision}


def _dataset(bench: Bench) -> str:
    return bench.dataset("RCV1 part", lambda: jsonl(rcv1()))


def _trained(bench: Bench, algorithms: Sequence[str], *, split: str = "given") -> dict[str, Json]:
    """Train each algorithm for one epoch, and return the jobs."""
    dataset = _dataset(bench)
    jobs = bench.train(
        [
            {"dataset_id": dataset, "split": {"kind": split}, **configuration(algorithm, FEATURES, epochs=1)}
            for algorithm in algorithms
        ]
    )
    return dict(zip(algorithms, jobs, strict=True))


def nearest(steps: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Return the steps that are nearest to some numbers."""
    return sorted({min(steps, key=lambda step: abs(step - at)) for at in wanted})


# Table II: ranking losses

TABLE_2 = ("mmp", "mlpp", "binary_relevance_perceptron", "naive_bayes")


def _losses(changed: Json, epochs: int, bench: Bench) -> Json:
    """Return the means by algorithm and measure, and the corrected p-values of MMP against MLPP."""
    features = FEATURES | changed
    epochs = min(epochs, 2) if bench.quick else epochs
    report = bench.experiment(
        _dataset(bench),
        [
            configuration(algorithm, {**features, "scaling": "none"})
            if algorithm == "naive_bayes"
            else configuration(algorithm, features, epochs=epochs)
            for algorithm in TABLE_2
        ],
        list(LOSSES),
    )
    result = {
        algorithm: dict(zip(LOSSES, row, strict=True))
        for algorithm, row in zip(TABLE_2, means(report, list(LOSSES)), strict=True)
    }
    p_values = {
        comparison["measure"]: test_of(comparison, "wilcoxon")["p_corrected"]
        for comparison in report["comparisons"]
        if {comparison["first"], comparison["second"]} == {0, 1}
    }
    return {
        "means": result,
        "change": {m: 100 * (result["mlpp"][m] / result["mmp"][m] - 1) for m in LOSSES},
        "p_values": {measure: p if p >= SMALL else None for measure, p in p_values.items()},
    }


def _table_2_tables(figures: Json) -> Tables:
    names = [NAMES[algorithm] for algorithm in TABLE_2]
    for weights, result in figures.items():
        paper = weights == "tfidf"
        rows = []
        for measure, (name, factor, form) in LOSSES.items():
            cells = [
                with_paper(
                    factor * result["means"][algorithm][measure],
                    PAPER_TABLE_2[measure] if paper else (),
                    at,
                    form,
                )
                for at, algorithm in enumerate(TABLE_2)
            ]
            change = with_paper(
                result["change"][measure], (DIFFERENCES[measure],) if paper else (), 0, "{:+.2f}"
            )
            rows.append([name, cells[0], change, *cells[1:]])
        yield table(["", names[0], "Δ [%]", *names[1:]], rows)


# Figures 4 to 6: losses on each example before the learner learns from it

FIGURES_4_TO_6 = ("mmp", "mlpp", "binary_relevance_perceptron")


def _learning_curve(bench: Bench) -> Json:
    """Draw the curves, and return the accumulated losses by number of examples."""
    jobs = _trained(bench, FIGURES_4_TO_6, split="none")
    result = {
        algorithm: {point["step"]: point["measures"] for point in bench.curve(job)}
        for algorithm, job in jobs.items()
    }
    every = bench.version(jobs["mlpp"])["facts"]["tested_every"]
    panels = [
        Panel(
            name,
            [
                Line(NAMES[algorithm], {at: each[measure] for at, each in line.items()}, place, factor=factor)
                for place, (algorithm, line) in enumerate(result.items())
            ],
            "documents",
            f"accumulated {name}",
        )
        for measure in DRAWN
        for name, factor, _ in [LOSSES[measure]]
    ]
    bench.draw("mlpp-learning-curve", panels, across=3)
    steps = sorted(set(result["mmp"]) & set(result["mlpp"]))
    last = result["mlpp"][steps[-1]]["is_error"]
    return {
        "tested_every": every,
        "standard_error": 100 * math.sqrt(last * (1 - last) / -(-steps[-1] // every)),
        "losses": {
            str(step): {a: {measure: result[a][step][measure] for measure in DRAWN} for a in FIGURES_4_TO_6}
            for step in nearest(steps, (200, 500, 1000, 2000, 4000, 6000))
        },
        "points": len(steps),
        "ahead": {
            measure: sum(result["mlpp"][step][measure] < result["mmp"][step][measure] for step in steps)
            for measure in DRAWN
        },
    }


def _learning_curve_tables(figures: Json) -> Tables:
    columns = [(measure, algorithm) for measure in DRAWN for algorithm in FIGURES_4_TO_6]
    yield table(
        ["documents", *(f"{LOSSES[measure][0]}: {NAMES[algorithm]}" for measure, algorithm in columns)],
        [
            [
                f"{int(step):,}",
                *(scaled(measure, losses[algorithm][measure]) for measure, algorithm in columns),
            ]
            for step, losses in figures["curves"]["losses"].items()
        ],
    )


# Figure 7: losses on both parts by the number of epochs

FIGURE_7 = ("mmp", "mlpp")


def _epochs(bench: Bench) -> Json:
    """Draw the curves, and return the losses on both parts by epoch."""
    epochs = 3 if bench.quick else 20
    configurations = [configuration(algorithm, FEATURES, epochs=epochs) for algorithm in FIGURE_7]
    report = bench.experiment(_dataset(bench), configurations, DRAWN)
    n = sum(row["split"] == "train" for row in rcv1())
    lines = {
        (FIGURE_7[place], measure, name): {step // n: value for step, value in line.items() if step % n == 0}
        for name, part in (("training", "within_folds"), ("test", "out_of_folds"))
        for (place, measure), line in curves(report, part).items()
    }
    panels = [
        Panel(
            LOSSES[measure][0],
            [
                Line(
                    f"{NAMES[algorithm]}, {part} part",
                    line,
                    FIGURE_7.index(algorithm),
                    "--" if part == "training" else "-",
                    LOSSES[measure][1],
                )
                for (algorithm, of, part), line in lines.items()
                if of == measure
            ],
            "epochs",
            LOSSES[measure][0],
        )
        for measure in DRAWN
    ]
    bench.draw("mlpp-epochs", panels, across=3)
    there = sorted(set.intersection(*map(set, lines.values())))
    shown = {*nearest(there, (1, 2, 3, 5, 10, 15, 20)), there[0], there[-1]}
    return {
        "losses": {
            str(epoch): {
                algorithm: {
                    measure: [lines[algorithm, measure, part][epoch] for part in ("training", "test")]
                    for measure in DRAWN
                }
                for algorithm in FIGURE_7
            }
            for epoch in sorted(shown)
        },
    }


def _epochs_tables(figures: Json) -> Tables:
    columns = [(measure, algorithm) for measure in DRAWN[:2] for algorithm in FIGURE_7]
    head = [f"{LOSSES[m][0]}: {NAMES[a]}, {part}" for m, a in columns for part in ("train", "test")]
    rows = [
        [
            epoch,
            *(
                scaled(measure, value)
                for measure, algorithm in columns
                for value in losses[algorithm][measure]
            ),
        ]
        for epoch, losses in figures["curves"]["losses"].items()
    ]
    yield table(["epochs", *head], rows)


# Table IV: perceptron operations

TABLE_4 = ("binary_relevance_perceptron", "mmp", "mlpp")


def _operations(bench: Bench) -> Json:
    """Return the operations of BR, MMP and MLPP, and the sizes of the data."""
    versions = [bench.version(job) for job in _trained(bench, TABLE_4).values()]
    facts = [version["facts"] for version in versions]
    n_test = int(versions[0]["metrics"]["test"]["n_examples"])
    sizes = [len(row["labels"]) for row in rcv1() if row["split"] == "train"]
    updates = facts[2]["perceptron_updates"]
    return {
        "operations": {
            "training": [int(fact["perceptron_operations"]) for fact in facts],
            "prediction": [int(fact["operations_per_prediction"]) * n_test for fact in facts],
        },
        "examples": {"training": int(facts[0]["examples"]), "prediction": n_test},
        "labels": int(facts[0]["labels"]),
        "labels_per_example": sum(sizes) / len(sizes),
        "updates": updates / (facts[2]["perceptron_operations"] - updates),
    }


def _operations_tables(figures: Json) -> Tables:
    result = figures["operations"]
    rows = []
    for phase, paper in PAPER_TABLE_4.items():
        pairs = list(zip(result["operations"][phase], paper, strict=True))
        n, n_paper = result["examples"][phase], PAPER_EXAMPLES[phase]
        rows.append([phase, *(f"{ours:,} ({theirs:,})" for ours, theirs in pairs)])
        rows.append(
            [
                f"{phase}, per example",
                *(f"{ours / n:,.1f} ({theirs / n_paper:,.1f})" for ours, theirs in pairs),
            ]
        )
    yield table(["", *(NAMES[algorithm] for algorithm in TABLE_4)], rows)


# Section VI-E: inner products that quick voting saves


def _quick_voting(*, calibrated: bool, bench: Bench) -> Json:
    """Return the inner products of quick voting, and how many rankings or label sets differ from full voting.

    Args:
        calibrated: whether the label set is wanted, with the artificial label; otherwise, the best labels.
        bench: the client.

    Returns:
        ``products``: mean number by voting, and by number of labels. ``largest``: largest number of a
        document by voting. ``predicted``: mean size of the label sets. ``full``: products of full voting.
        ``training``: operations of the training for each example.
    """
    texts = [row["text"] for row in rcv1() if row["split"] == "test"][: 100 if bench.quick else 1_000]
    dataset = _dataset(bench)
    requests = []
    for voting in VOTINGS:
        chosen = configuration("mlpp", FEATURES, epochs=1, voting=voting, calibrated=calibrated)
        requests.append({"dataset_id": dataset, "split": GIVEN, **chosen})
        if calibrated:
            requests[-1]["decision"] = {"kind": "sign"}
    jobs = bench.train(requests)
    result: Json = {"products": {}, "largest": {}, "predicted": {}, "differing": 0}
    for voting, job in zip(VOTINGS, jobs, strict=True):
        model = bench.model(job)
        learner, features = model.learner_, model.features_
        assert isinstance(learner, MLPP)
        assert isinstance(features, TextFeatures)
        X = features.transform(texts)
        scores = learner.decision_function(X)
        if calibrated:
            whole = scores > 0
            votes = learner.quick_top(X, 1, np.zeros(whole.shape[1]))
            result["products"][voting], largest = float(votes.products.mean()), int(votes.products.max())
            result["predicted"][voting] = float(whole.sum(axis=1).mean())
            result["differing"] += int(((votes.known > 0) != whole).any(axis=1).sum())
        else:
            order, largest, products = ranking(scores, max(TOPS)), 0, {}
            for top in TOPS:
                votes, best = learner.quick_top(X, top), order[:, :top]
                products[str(top)] = float(votes.products.mean())
                largest = max(largest, int(votes.products.max()))
                same = (votes.labels == best) & (votes.scores == np.take_along_axis(scores, best, axis=1))
                result["differing"] += int((~same.all(axis=1)).sum())
            result["products"][voting] = products
        result["largest"][voting] = largest
    facts = bench.version(jobs[0])["facts"]
    return {
        "documents": len(texts),
        "labels": int(facts["labels"]),
        **result,
        "full": facts["operations_per_prediction"],
        "training": facts["perceptron_operations"] / facts["examples"],
    }


def _quick_voting_tables(figures: Json) -> Tables:
    result, sets = figures["tops"], figures["label_sets"]
    wanted = {
        ("best label" if top == "1" else f"best {top} labels"): [
            (result["products"][voting][top], result["full"]) for voting in VOTINGS
        ]
        for top in result["products"][VOTINGS[0]]
    }
    wanted["label set (`calibrated`)"] = [(sets["products"][voting], sets["full"]) for voting in VOTINGS]
    yield table(
        ["wanted", *(f"`{voting}`" for voting in VOTINGS)],
        [[name, *(f"{n:,.0f} ({100 * n / full:.0f} %)" for n, full in row)] for name, row in wanted.items()],
    )


PARTS = {
    "mlpp_table_2": Part(
        {
            "tfidf": partial(_losses, {}, 1),
            "presence": partial(_losses, {"weighting": "binary", "scaling": "none"}, 1),
            "epochs": partial(_losses, {}, 10),
        },
        _table_2_tables,
    ),
    "mlpp_learning_curve": Part({"curves": _learning_curve}, _learning_curve_tables),
    "mlpp_epochs": Part({"curves": _epochs}, _epochs_tables),
    "mlpp_table_4": Part({"operations": _operations}, _operations_tables),
    "mlpp_quick_voting": Part(
        {
            "tops": lambda bench: _quick_voting(calibrated=False, bench=bench),
            "label_sets": lambda bench: _quick_voting(calibrated=True, bench=bench),
        },
        _quick_voting_tables,
    ),
}
