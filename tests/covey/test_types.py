"""What a type checker sees of ``covey``. mypy checks this file, and finds an ``ignore`` without an error."""

from __future__ import annotations

import library_types
import pytest

import covey
from covey import errors


def test_the_types_of_constructors_are_up_to_date() -> None:
    written = library_types.STUB.read_text(encoding="utf-8")
    assert written == library_types.stub(), "run: .venv/bin/python tests/support/library_types.py"


def test_names_of_parameters_are_checked() -> None:
    with pytest.raises(TypeError):
        covey.SVM(c=1.0)  # type: ignore[call-arg]
    with pytest.raises(errors.ParameterError):
        covey.TextFeatures(wheighting="binary")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        covey.MPBoost(monitor=print)  # type: ignore[call-arg]


def test_types_of_parameters_are_checked() -> None:
    for learner in (
        covey.SVM(C="large"),  # type: ignore[arg-type]
        covey.MPBoost(stump="leaf"),  # type: ignore[arg-type]
        covey.HM3(kernel=3),  # type: ignore[arg-type]
    ):
        with pytest.raises(errors.ParameterError):
            learner.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(errors.ParameterError):
        covey.NumericFeatures(interactions=3)  # type: ignore[arg-type]


def test_dictionaries_stand_for_parameters_that_are_objects() -> None:
    learner = covey.MPBoost(rounds=5, early_stopping={"patience": 2}, random_state=3)
    features = covey.TextFeatures(analyzer={"stop_words": "english"}, min_df=0.5, selection={"kind": "none"})
    pipeline: covey.Pipeline = covey.Pipeline(features, learner, "auto", seed=1)
    assert pipeline.get_params()["features__min_df"] == 0.5
    assert learner.set_params(rounds=2).validated_parameters().rounds == 2
