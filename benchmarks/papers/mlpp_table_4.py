"""MLPP, table IV: costs of training and prediction in perceptron operations."""

from __future__ import annotations

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json
from benchmarks.papers.mlpp import NAMES, trained
from benchmarks.papers.results import table

TITLE = "MLPP, table IV: perceptron operations"

ALGORITHMS = ("binary_relevance_perceptron", "mmp", "mlpp")

PAPER = {
    "training": (55_896_832, 56_680_708, 174_184_241),
    "prediction": (27_647_981, 27_647_981, 1_410_047_031),
}
"""The paper's operations of BR, MMP and MLPP."""

EXAMPLES = {"training": 535_987, "prediction": 268_427}
"""The paper's numbers of documents."""


def _operations(bench: Bench) -> Json:
    """Return the operations of BR, MMP and MLPP, and the sizes of the data."""
    versions = {algorithm: bench.version(job) for algorithm, job in trained(bench, ALGORITHMS).items()}
    facts = [versions[algorithm]["facts"] for algorithm in ALGORITHMS]
    n_test = int(versions["mmp"]["metrics"]["test"]["n_examples"])
    sizes = [len(row["labels"]) for row in corpora.records("rcv1subset1.jsonl.gz") if row["split"] == "train"]
    return {
        "operations": {
            "training": [int(fact["perceptron_operations"]) for fact in facts],
            "prediction": [int(fact["operations_per_prediction"]) * n_test for fact in facts],
        },
        "examples": {"training": int(facts[0]["examples"]), "prediction": n_test},
        "labels": int(facts[0]["labels"]),
        "labels_per_example": sum(sizes) / len(sizes),
        "updates": facts[2]["perceptron_updates"]
        / (facts[2]["perceptron_operations"] - facts[2]["perceptron_updates"]),
    }


RESULTS = {"operations": _operations}


def render(figures: dict[str, Json]) -> str:
    """Return total operations, operations per example, and ratios, which do not depend on the corpus size."""
    found = figures["operations"]
    ours, n_ours, k = found["operations"], found["examples"], found["labels"]
    rows = []
    for phase, paper in PAPER.items():
        rows.append([phase, *(f"{n:,} ({p:,})" for n, p in zip(ours[phase], paper, strict=True))])
        rows.append(
            [
                f"{phase}, per example",
                *(
                    f"{n / n_ours[phase]:,.1f} ({p / EXAMPLES[phase]:,.1f})"
                    for n, p in zip(ours[phase], paper, strict=True)
                ),
            ]
        )
    ratio = {phase: ours[phase][2] / ours[phase][1] for phase in PAPER}
    paper_ratio = {phase: PAPER[phase][2] / PAPER[phase][1] for phase in PAPER}
    return f"""\
The trainings of table II. An operation is an inner product or an update (the paper's table I). We use
{n_ours["training"]:,} and {n_ours["prediction"]:,} documents and {k} labels; the paper uses {EXAMPLES["training"]:,} and
{EXAMPLES["prediction"]:,} documents and 103 labels.

{table(["", *(NAMES[algorithm] for algorithm in ALGORITHMS)], rows)}

Training with MLPP needs {ratio["training"]:.2f} times the operations of MMP (paper: {paper_ratio["training"]:.2f}), with {found["labels_per_example"]:.2f} labels per
document (paper: {PAPER_LABELS_PER_EXAMPLE}). Prediction needs {ratio["prediction"]:.1f} times the operations, which is (K − 1)/2 = {(k - 1) / 2:.1f} (paper: {paper_ratio["prediction"]:.0f}).
{100 * found["updates"]:.1f} % of MLPP's inner products in training led to an update. The paper counts {PAPER["training"][0] / EXAMPLES["training"]:.1f} and
{PAPER["training"][1] / EXAMPLES["training"]:.1f} operations per document for training BR and MMP, of which 103 are inner products.
"""


PAPER_LABELS_PER_EXAMPLE = 3.24
