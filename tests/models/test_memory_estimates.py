"""Every learner estimates the memory of a training before it starts, and the estimate is honest."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.exceptions import ConvergenceWarning

from models import catalog
from models.arrays import Labels, Matrix
from models.base import Context, Step
from models.base.learner import Learner
from models.base.memory import ProblemSize
from models.base.validation import as_training_matrices
from models.catalog import ENTRIES, resolve_decision
from models.data.examples import Examples, FeatureRows
from models.errors import MemoryLimitError
from models.pipeline import Pipeline
from models.pipeline.memory import check_training, estimate

SHAPES = {  # examples, features, labels, features of an example
    "many features and labels": (300, 4_000, 150, 20),
    "many examples and labels": (1_500, 300, 100, 20),
    "many values": (2_000, 3_000, 5, 100),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in sorted(ENTRIES)},
    "adaboost_mh": ("adaboost_mh", {"rounds": 3, "stump": "presence"}),
    "mp_boost": ("mp_boost", {"rounds": 3, "stump": "presence"}),
    "adaboost_mh thresholds": ("adaboost_mh", {"rounds": 2, "stump": "threshold"}),
    "mp_boost thresholds": ("mp_boost", {"rounds": 2, "stump": "threshold"}),
    "adaboost_mh bins": ("adaboost_mh", {"rounds": 2, "stump": "threshold", "bins": 64}),
    "mp_boost bins": ("mp_boost", {"rounds": 2, "stump": "threshold", "bins": 64}),
    "adaboost_lc": ("adaboost_lc", {"rounds": 3}),
    "adaboost_lc sequential": ("adaboost_lc", {"rounds": 3, "template": "sequential"}),
    "svm float32": ("svm", {"precision": "float32"}),
    "h_m3": ("h_m3", {"passes": 1}),
    "h_m3 polynomial": ("h_m3", {"passes": 1, "kernel": "polynomial"}),
}
SLOW = {"adaboost_mh thresholds", "mp_boost thresholds"}
MAX_LABELS = {"mlpp": 60}
LIBLINEAR = {"svm", "h_svm"}


def problem(g: int, r: int, k: int, per_example: int) -> tuple[Matrix, Labels, Context]:
    rng = np.random.default_rng(0)
    X: Any = random_array((g, r), density=per_example / r, random_state=rng, format="csr")
    X.data = np.abs(X.data) + 0.1
    Y: Any = random_array((g, k), density=min(1, 2 / k), random_state=rng, format="csr")
    matrix, labels = as_training_matrices(X, (Y != 0).astype(np.int8))
    parents = np.array([-1, *((j - 1) // 4 for j in range(1, k))])
    return matrix, labels, Context(parents=parents)


@pytest.mark.parametrize("algorithm", sorted(ENTRIES))
def test_every_learner_has_an_estimate_that_grows_with_every_dimension(algorithm: str) -> None:
    assert ENTRIES[algorithm].learner.estimate_bytes is not Learner.estimate_bytes
    learner = ENTRIES[algorithm].learner()
    base = {"examples": 10_000, "features": 10_000, "labels": 100, "entries": 500_000}

    def bytes_of(**changes: int) -> int:
        fields = {**base, **changes}
        g, r, k, entries = (fields[name] for name in ("examples", "features", "labels", "entries"))
        return learner.estimate_bytes(ProblemSize(g, r, k, entries, np.full(k, g // 50)))

    before = bytes_of()
    assert isinstance(before, int)
    for name, value in base.items():
        assert bytes_of(**{name: 3 * value}) >= before
    assert bytes_of(**{name: 3 * value for name, value in base.items()}) > 2 * before


@pytest.mark.parametrize(
    ("case", "shape"),
    [
        (case, shape)
        for case in CASES
        for shape in SHAPES
        if case not in SLOW or shape == "many features and labels"
    ],
)
def test_the_estimate_is_at_least_the_peak_and_at_most_four_times_as_much(case: str, shape: str) -> None:
    algorithm, parameters = CASES[case]
    g, r, k, per_example = SHAPES[shape]
    X, Y, context = problem(g, r, min(k, MAX_LABELS.get(algorithm, k)), per_example)
    learner = ENTRIES[algorithm].learner(**parameters)

    def monitor(step: Step, /) -> None:
        if step.completed % max(1, step.total // 3) == 0:
            step.snapshot()

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner.fit(X, Y, context=context, monitor=monitor)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    if algorithm in LIBLINEAR:  # liblinear's own copy of X, which Python does not trace
        peak += 16 * X.nnz
    estimated = learner.estimate_bytes(ProblemSize.of(X, Y, context))
    assert peak <= estimated <= 4 * peak + 2**20, f"{estimated / peak:.2f} times {peak:,}"


@pytest.mark.parametrize("algorithm", sorted(ENTRIES))
def test_a_training_that_is_too_large_is_refused_before_it_starts(algorithm: str) -> None:
    g, r, k = 60_000, 40_000, 20_000
    columns = np.arange(g, dtype=np.int32)
    X = csr_array((np.ones(g), columns % r, np.arange(g + 1)), shape=(g, r))
    Y = csr_array((np.ones(g, dtype=np.int8), columns % k, np.arange(g + 1)), shape=(g, k))
    learner = ENTRIES[algorithm].learner()
    decision = resolve_decision(learner, None)
    limit = 8 * 2**30
    assert algorithm == "h_rls" or learner.estimate_bytes(ProblemSize.of(X, Y, Context())) > limit
    with pytest.raises(
        MemoryLimitError, match=r"GiB .* 20,000 labels, but the limit is 8.0 GiB; select fewer"
    ):
        check_training(learner, decision, X, Y, Context(), 0, limit)
    check_training(learner, decision, X, Y, Context(), 0, None)


def test_a_pipeline_checks_the_limit_and_its_estimate_covers_the_evaluation() -> None:
    X, Y, _ = problem(1_500, 300, 250, 20)
    source = Examples(
        "features",
        FeatureRows([f"f{j:04}" for j in range(300)], X),
        [tuple(f"l{j:04}" for j in row) for row in np.split(Y.indices, Y.indptr[1:-1])],
    )
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "mmp"}),
    )
    with pytest.raises(MemoryLimitError, match="mmp would need about"):
        pipeline.fit(source, memory_bytes=2**20)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        pipeline.fit(source, memory_bytes=2**30)
        pipeline.evaluate(source)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= estimate(pipeline.learner_, pipeline.decision_, ProblemSize.of(X, Y, Context()))
