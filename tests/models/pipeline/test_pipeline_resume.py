"""A training that is interrupted at any step and taken up again ends with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models import catalog
from models.base import State
from models.data.examples import Examples
from models.errors import ParameterError, StopTraining
from models.pipeline import Pipeline, Progress

TEXTS = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass"] * 2
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


def pipeline(algorithm: str, seed: int = 3) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **SHORT.get(algorithm, {})}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "tuned_threshold"}),
        seed=seed,
    )


class StopAt:
    """A monitor that ends the training at its n-th step, and keeps that step's snapshot."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.taken: State | None = None
        self.told: list[tuple[str, int, int]] = []

    def __call__(self, progress: Progress, /) -> None:
        self.told.append((progress.phase, progress.completed, progress.total))
        if len(self.told) == self.step:
            self.taken = {name: array.copy() for name, array in progress.snapshot().items()}
            raise StopTraining


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_interrupted_and_resumed_is_as_if_nothing_had_happened(algorithm: str) -> None:
    never = StopAt(-1)
    whole = pipeline(algorithm).fit(SOURCE, monitor=never)
    for step in range(1, len(never.told) + 1):
        stopped = StopAt(step)
        with pytest.raises(StopTraining):
            pipeline(algorithm).fit(SOURCE, monitor=stopped)
        assert stopped.taken is not None
        rest = StopAt(-1)
        resumed = pipeline(algorithm).fit(SOURCE, monitor=rest, resume=stopped.taken)
        expected = whole.get_state()
        found = resumed.get_state()
        assert expected.keys() == found.keys()
        for name, array in expected.items():
            assert array.dtype == found[name].dtype, name
            assert np.array_equal(array, found[name]), f"{name}, stopped after {stopped.told[-1]}"
        assert resumed.summary_ == whole.summary_
        # What was done is not done again, but for the features.
        assert [t for t in rest.told if t[0] != "features"] == [
            t for t in never.told[step:] if t[0] != "features"
        ]


def test_a_snapshot_of_another_training_is_refused() -> None:
    stopped = StopAt(3)
    with pytest.raises(StopTraining):
        pipeline("svm").fit(SOURCE, monitor=stopped)
    assert stopped.taken is not None
    others = Examples("text", [*TEXTS[:-1], "something else"], SETS)
    for other, source in ((pipeline("svm"), others), (pipeline("svm", seed=4), SOURCE)):
        with pytest.raises(ParameterError, match="snapshot"):
            other.fit(source, resume=stopped.taken)


def test_snapshots_are_plain_arrays() -> None:
    snapshots: list[State] = []
    pipeline("svm").fit(SOURCE, monitor=lambda progress: snapshots.append(progress.snapshot()))
    assert all(array.dtype.kind in "biuf" for state in snapshots for array in state.values())
