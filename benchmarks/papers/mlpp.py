"""Shared code of the MLPP parts: losses, learners, and the RCV1 part."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers import corpora
from benchmarks.papers.bench import Bench, Json

LOSSES = {
    "is_error": ("IsErr × 100", 100.0, "{:.2f}"),
    "error_set_size": ("ErrSetSize", 1.0, "{:.3f}"),
    "margin": ("Margin", 1.0, "{:.3f}"),
    "average_precision": ("AvgP × 100", 100.0, "{:.2f}"),
}
"""The paper's rows by our measures: name, factor and format. AvgP has the usual direction: 100 is best."""

NAMES = {"mlpp": "MLPP", "mmp": "MMP", "binary_relevance_perceptron": "BR", "naive_bayes": "NB"}

RCV1_FEATURES: Json = {"kind": "text", "weighting": "tfidf", "scaling": "unit"}
"""Features of a story as a set of terms: ln(g/df), scaled to unit length."""


def rcv1(bench: Bench) -> str:
    """Upload the RCV1 part and return its id."""
    return bench.dataset("RCV1 part", corpora.rcv1)


def configuration(algorithm: str, features: Json, **learner: int | str) -> Json:
    """Return a configuration. Its decision does not affect rankings and needs no tuning."""
    decision: Json = {"kind": "top_k", "k": 1} if algorithm == "mlpp" else {"kind": "sign"}
    return {"features": features, "learner": {"algorithm": algorithm, **learner}, "decision": decision}


def trained(bench: Bench, algorithms: Sequence[str], *, split: str = "given") -> dict[str, Json]:
    """Train each algorithm for one epoch on the RCV1 part, and return the jobs."""
    requests = [
        {
            "dataset_id": rcv1(bench),
            "split": {"kind": split},
            **configuration(algorithm, RCV1_FEATURES, epochs=1),
        }
        for algorithm in algorithms
    ]
    return dict(zip(algorithms, bench.train(requests), strict=True))
