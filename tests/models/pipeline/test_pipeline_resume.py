"""A training that is interrupted at any step and resumed produces an identical model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models import catalog
from models.base import State
from models.data.examples import Examples
from models.errors import ParameterError, SnapshotError, StopTraining
from models.pipeline import Pipeline, Progress, TrainingSet

TEXTS = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass"] * 2
TEXTS[5], TEXTS[11] = "unheard", "unseen"  # without a known term if they are held out
SETS: list[tuple[str, ...]] = [
    ("red", "flower"), ("blue",), ("red",), ("green",), ("green", "flower"), (),
] * 2  # fmt: skip
SOURCE = Examples("text", TEXTS, SETS)
SHORT: dict[str, dict[str, Any]] = {
    "adaboost_mh": {"rounds": 4},
    "mp_boost": {"rounds": 4},
    "adaboost_lc": {"rounds": 4},
    "mmp": {"epochs": 2, "initial": "random", "shuffle": True},
    "mlpp": {"epochs": 2, "shuffle": True},
    "binary_relevance_perceptron": {"epochs": 2, "shuffle": True},
    "h_m3": {"passes": 4},
}


def pipeline(algorithm: str, seed: int = 3, decision: str = "tuned_threshold") -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **SHORT.get(algorithm, {})}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
        seed=seed,
    )


class StopAt:
    """A monitor that ends the training at the n-th step and stores the snapshot of this step."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.taken: State | None = None
        self.steps: list[tuple[str, int, int]] = []

    def __call__(self, progress: Progress, /) -> None:
        self.steps.append((progress.phase, progress.completed, progress.total))
        if len(self.steps) == self.step:
            self.taken = {name: array.copy() for name, array in progress.snapshot().items()}
            raise StopTraining


@pytest.mark.parametrize(
    ("algorithm", "decision"),
    [*((algorithm, "tuned_threshold") for algorithm in sorted(catalog.ENTRIES)), ("mmp", "auto")],
)
def test_a_resumed_training_gives_an_identical_pipeline(algorithm: str, decision: str) -> None:
    uninterrupted = StopAt(-1)
    whole = pipeline(algorithm, decision=decision).fit_training(TrainingSet(SOURCE), monitor=uninterrupted)
    for step in range(1, len(uninterrupted.steps) + 1):
        stopped = StopAt(step)
        with pytest.raises(StopTraining):
            pipeline(algorithm, decision=decision).fit_training(TrainingSet(SOURCE), monitor=stopped)
        assert stopped.taken is not None
        rest = StopAt(-1)
        resumed = pipeline(algorithm, decision=decision).fit_training(
            TrainingSet(SOURCE), monitor=rest, resume=stopped.taken
        )
        expected = whole.get_state()
        state = resumed.get_state()
        assert expected.keys() == state.keys()
        for name, array in expected.items():
            assert array.dtype == state[name].dtype, name
            assert np.array_equal(array, state[name]), f"{name}, stopped after {stopped.steps[-1]}"
        assert resumed.summary_ == whole.summary_
        assert resumed.decision_report_ == whole.decision_report_
        # Only the features are computed again.
        assert [t for t in rest.steps if t[0] != "features"] == [
            t for t in uninterrupted.steps[step:] if t[0] != "features"
        ]


def test_a_snapshot_of_another_training_is_rejected() -> None:
    stopped = StopAt(3)
    with pytest.raises(StopTraining):
        pipeline("svm").fit_training(TrainingSet(SOURCE), monitor=stopped)
    assert stopped.taken is not None
    others = Examples("text", [*TEXTS[:-1], "something else"], SETS)
    for other, source in ((pipeline("svm"), others), (pipeline("svm", seed=4), SOURCE)):
        with pytest.raises(ParameterError, match="snapshot"):
            other.fit_training(TrainingSet(source), resume=stopped.taken)


def test_a_snapshot_of_another_format_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = StopAt(3)
    with pytest.raises(StopTraining):
        pipeline("mmp").fit_training(TrainingSet(SOURCE), monitor=stopped)
    monkeypatch.setattr("models.pipeline.snapshot._FORMAT", 1)
    with pytest.raises(SnapshotError):
        pipeline("mmp").fit_training(TrainingSet(SOURCE), resume=stopped.taken)


def test_snapshots_are_plain_arrays() -> None:
    snapshots: list[State] = []
    pipeline("svm").fit_training(
        TrainingSet(SOURCE), monitor=lambda progress: snapshots.append(progress.snapshot())
    )
    assert all(array.dtype.kind in "biuf" for state in snapshots for array in state.values())
