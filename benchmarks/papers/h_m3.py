"""The H-M3 paper: flat and hierarchical learners by three losses, and the learning curve of H-M3."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Literal

from threadpoolctl import threadpool_limits

from benchmarks.corpora import Json, ccat_problem, ccat_rows, ccat_tree, jsonl, path_of
from benchmarks.papers.bench import GIVEN, Bench, curves, means, test_of
from benchmarks.papers.charts import Line, Panel
from benchmarks.papers.frame import Part, Tables, table
from models import catalog
from models.base import Context
from models.measures import tree

LOSSES = ("zero_one", "symmetric_difference", "hierarchical_sibling", "hierarchical_subtree")
HEADS = ("ℓ0/1 in %", "ℓΔ", "ℓH, sibling", "ℓH, subtree")
LEVEL = 0.01

PAPER = {
    "SVM": (32.9, 0.611, 0.099),
    "H-SVM": (29.8, 0.570, 0.097),
    "H-RLS": (28.1, 0.554, 0.095),
    "H-M³-ℓΔ": (27.1, 0.575, 0.114),
    "H-M³-ℓH̃": (27.9, 0.588, 0.109),
}
"""Left half of table 1, on the CCAT family: zero-one loss in percent, the other losses per example."""

PAPER_WIPO = {
    "SVM": (87.2, 1.84, 0.0532),
    "H-SVM": (76.2, 1.74, 0.0511),
    "H-RLS": (72.1, 1.69, 0.0495),
    "H-M³-ℓΔ": (70.9, 1.67, 0.0504),
    "H-M³-ℓH̃": (65.0, 1.73, 0.0478),
}
"""Right half of table 1, on WIPO-alpha."""

LEARNERS: dict[str, Json] = {
    "SVM": {"algorithm": "svm"},
    "H-SVM": {"algorithm": "h_svm"},
    "H-RLS": {"algorithm": "h_rls"},
    "H-M³-ℓΔ": {"algorithm": "h_m3", "loss": "symmetric_difference"},
    "H-M³-ℓH̃": {"algorithm": "h_m3", "loss": "simplified_hierarchical"},
}
"""The rows of table 1."""

CONSTANT: Json = {"kernel": {"kind": "polynomial", "degree": 1}}
SCALED = {
    f"H-M³-ℓH̃, {scaling}": {**LEARNERS["H-M³-ℓH̃"], "scaling": scaling} for scaling in ("sibling", "subtree")
}
VARIANTS = {
    **SCALED,
    "H-M³-ℓΔ, constant": LEARNERS["H-M³-ℓΔ"] | CONSTANT,
    "H-M³-ℓH̃, constant": LEARNERS["H-M³-ℓH̃"] | CONSTANT,
}
"""Other possible interpretations of the paper."""

C_VALUES = (0.5, 1.0, 2.0, 4.0)
OVER_C = (
    *("SVM", "H-SVM", "H-M³-ℓΔ", "H-M³-ℓΔ, constant", "H-M³-ℓH̃", "H-M³-ℓH̃, constant"),
    *SCALED,
)
"""The learners that are measured with other values of C."""

PASSES = 30
GAP = 1e-3
CLOSE = 0.01
CURVES = {"zero_one": "ℓ0/1", "symmetric_difference": "ℓΔ", "simplified_hierarchical": "ℓH̃"}


@dataclass(frozen=True)
class Problem:
    """A data set with a label tree and its features."""

    title: str
    content: Callable[[], bytes]
    form: str
    features: Json
    tree: Callable[[], Json | None]

    def dataset(self, bench: Bench) -> str:
        """Upload the data set and return its id."""
        return bench.dataset(self.title, self.content, label_tree=self.tree(), format=self.form)

    def configuration(self, learner: Json) -> Json:
        """Return a configuration whose decision is the sign."""
        return {"features": self.features, "learner": learner, "decision": {"kind": "sign"}}


def _imclef() -> bytes:
    """Return both files in one zip. Their names determine the split."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in ("Train", "Test"):
            content = gzip.decompress(path_of(f"hmc/ImCLEF07A_{part}.arff.gz").read_bytes())
            archive.writestr(f"ImCLEF07A-{part.lower()}.arff", content)
    return packed.getvalue()


TFIDF: Json = {"kind": "text", "weighting": "tfidf", "scaling": "unit", "analyzer": {}}

CCAT = Problem("CCAT family of RCV1", lambda: jsonl(ccat_rows()), "jsonl", TFIDF, ccat_tree)
CCAT_ONLY = Problem(
    "CCAT family of RCV1, its documents only",
    lambda: jsonl(row for row in ccat_rows() if row["labels"]),
    "jsonl",
    TFIDF,
    ccat_tree,
)
IMCLEF = Problem("ImCLEF07A", _imclef, "arff", {"kind": "numeric", "scaling": "unit"}, lambda: None)


# Table 1


def _compared(
    problem: Problem, learners: dict[str, Json], paper: Mapping[str, Sequence[float]] | None, bench: Bench
) -> Json:
    """Compare learners by the losses.

    Returns:
        ``rows``: the means of the losses by learner. ``worse``: for each loss, the learners that are
        significantly worse than the best one by the paired Wald test. ``orders``: for each of the paper's
        losses, the number of pairs of the paper's learners in the paper's order, and of pairs significantly
        in the opposite order.
    """
    configurations = [{"name": name, **problem.configuration(learner)} for name, learner in learners.items()]
    report = bench.experiment(problem.dataset(bench), configurations, LOSSES)
    names, rows = list(learners), means(report, LOSSES)
    differ = {
        (comparison["measure"], frozenset((comparison["first"], comparison["second"])))
        for comparison in report["comparisons"]
        if test_of(comparison, "wald")["p_value"] <= LEVEL
    }
    result: Json = {"rows": dict(zip(names, rows, strict=True)), "worse": []}
    for loss in LOSSES:
        best = next(place for place, row in enumerate(report["rows"]) if row["test"][loss]["best"])
        result["worse"].append(
            [names[i] for i in range(len(names)) if (loss, frozenset((i, best))) in differ]
        )
    if paper is not None:
        result["orders"] = []
        for number in range(3):
            same = against = 0
            for one, other in combinations(range(len(LEARNERS)), 2):
                figures = [paper[names[place]][number] for place in (one, other)]
                agree = (figures[0] < figures[1]) == (rows[one][number] < rows[other][number])
                same += agree
                against += not agree and (LOSSES[number], frozenset((one, other))) in differ
            result["orders"].append([same, against])
    return result


def _family(bench: Bench) -> Json:
    """Compare all learners, and count the test documents of the family that H-M3 and the SVM miss."""
    names = ("H-M³-ℓH̃", "SVM")
    result = _compared(CCAT, LEARNERS if bench.quick else LEARNERS | VARIANTS, PAPER, bench)
    dataset = CCAT.dataset(bench)
    jobs = bench.train([{"dataset_id": dataset, **CCAT.configuration(LEARNERS[name])} for name in names])
    rows = (row for job in jobs for row in bench.version(job, "/evaluation")["test"]["labels"])
    return {**result, "missed": [row["fn"] for row in rows if row["label"] == "CCAT"]}


def _over_c(bench: Bench) -> Json:
    """Return the losses of the family by learner and C. The library trains these models."""
    problem, parents = ccat_problem()
    true = problem.Y_test.toarray()
    scalings: tuple[Literal["sibling"], Literal["subtree"]] = ("sibling", "subtree")
    result: Json = {name: {} for name in OVER_C}
    with threadpool_limits(1):
        for C in C_VALUES[:1] if bench.quick else C_VALUES:
            for name in OVER_C:
                parameters = {**(LEARNERS | VARIANTS)[name], "C": C}
                learner = catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(parameters))
                learner.fit(problem.X, problem.Y, context=Context(parents=parents))
                predicted = learner.decision_function(problem.X_test) > 0
                result[name][f"{C:g}"] = [
                    tree.zero_one_loss(true, predicted),
                    tree.symmetric_difference_loss(true, predicted),
                    *(tree.hierarchical_loss(true, predicted, parents, scaling) for scaling in scalings),
                ]
    return result


def _table_1_tables(figures: Json) -> Tables:
    images = figures["images"]
    images = {**images, "rows": images["rows"] | figures["images_scaled"]["rows"]}
    yield _losses(figures["family"], PAPER)
    over_c = figures["over_c"]
    values = list(over_c["SVM"])
    cells = {
        name: [f"{100 * losses[C][0]:.1f} ({losses[C][1]:.3f}, {losses[C][2]:.3f})" for C in values]
        for name, losses in over_c.items()
    }
    yield table(["", *(f"C = {C}" for C in values)], [[name, *row] for name, row in cells.items()])
    yield _losses(figures["alone"], {})
    yield _losses(images, {})


def _losses(result: Json, paper: Mapping[str, Sequence[float]]) -> str:
    best = [min(losses) for losses in zip(*result["rows"].values(), strict=True)]
    rows = []
    for name, losses in result["rows"].items():
        cells = [name]
        for number, loss in enumerate(losses):
            factor, form = (100, "{:.1f}") if number == 0 else (1, "{:.3f}")
            ours = form.format(factor * loss)
            if loss == best[number]:
                ours = f"**{ours}**"
            elif name in result["worse"][number]:
                ours += "\\*"
            figures: Sequence[float] = paper.get(name, ())
            cells.append(f"{ours} ({form.format(figures[number])})" if number < len(figures) else ours)
        rows.append(cells)
    return table(["", *HEADS], rows)


# The learning curve


def _learning_curve(bench: Bench) -> Json:
    """Draw objectives and losses by pass of H-M3 trained for the simplified hierarchical loss."""
    passes = 10 if bench.quick else PASSES
    panels: list[Panel] = []
    rows: Json = {}
    for problem in (CCAT,) if bench.quick else (CCAT, IMCLEF):
        configuration = problem.configuration({"algorithm": "h_m3", "gap": GAP, "passes": passes})
        dataset = problem.dataset(bench)
        (job,) = bench.train([{"dataset_id": dataset, "split": GIVEN, **configuration}])
        objectives = {point["step"]: point["measures"] for point in bench.curve(job)}
        report = bench.experiment(dataset, [configuration], list(CURVES))
        within, out = (curves(report, part) for part in ("within_folds", "out_of_folds"))
        steps = sorted(objectives)
        lines = [
            Line(name, {at: objectives[at][name] for at in steps}, place)
            for place, name in enumerate(("primal", "dual"))
        ]
        shares = [
            Line(f"{name}, {part}", line, place, style, factor=1 / max(out[0, loss].values()))
            for place, (loss, name) in enumerate(CURVES.items(), 2)
            for part, line, style in (("training", within[0, loss], "--"), ("test", out[0, loss], "-"))
        ]
        panels.append(Panel(problem.title, lines, "passes", "objective"))
        panels.append(Panel(problem.title, shares, "passes", "loss, of its largest on the test part"))
        gaps = {at: objectives[at]["gap"] for at in steps}
        test = out[0, "zero_one"]
        lowest = min(test.values())
        rows[problem.title] = {
            "gap": gaps[steps[-1]],
            "to_a_tenth": next((at for at, gap in gaps.items() if gap <= 0.1), None),
            "to_a_hundredth": next((at for at, gap in gaps.items() if gap <= 0.01), None),
            "close": next(at for at, value in test.items() if value <= (1 + CLOSE) * lowest),
            "lowest": lowest,
            "final": test[max(test)],
            "passes": steps[-1],
        }
    bench.draw("h-m3-learning-curve", panels)
    return {"passes": passes, "rows": rows}


def _learning_curve_tables(figures: Json) -> Tables:
    result = figures["curves"]
    head = [
        "",
        f"duality gap after at most {result['passes']} passes",
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
            *(str(row[name] or "not reached") for name in ("to_a_tenth", "to_a_hundredth", "close")),
            f"{100 * row['lowest']:.1f}",
            f"{100 * row['final']:.1f}",
        ]
        for title, row in result["rows"].items()
    ]
    yield table(head, rows)


PARTS = {
    "h_m3_table_1": Part(
        {
            "family": _family,
            "over_c": _over_c,
            "alone": partial(_compared, CCAT_ONLY, LEARNERS, None),
            "images": partial(_compared, IMCLEF, LEARNERS, PAPER_WIPO),
            "images_scaled": partial(_compared, IMCLEF, SCALED, None),
        },
        _table_1_tables,
    ),
    "h_m3_learning_curve": Part({"curves": _learning_curve}, _learning_curve_tables),
}
