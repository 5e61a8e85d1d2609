"""The first request after a version was loaded does the same work as every later one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from small_models import ALGORITHMS, fitted

from app.api.structs import to_json
from app.serving import loaded_version
from app.serving.latency_estimate import CostEstimate
from app.serving.responses import predictions
from models import artifact
from models.data.examples import FeatureRows, Kind
from models.mail import MailDocument, read_message
from models.pipeline import Pipeline

TEXT = "w0001 w0002 w0100 unknown words w0399"
MAIL = f"Subject: w0007\r\nFrom: a@example.org\r\n\r\n{TEXT}\r\n> quoted w0005\r\n".encode()


NEW_WORDS = ("_WordNumbers.__missing__", "Vocabulary.analyzed", "Vocabulary._terms")
"""A version looks up each new word once, in whichever request it occurs."""


def documents(pipeline: Pipeline) -> list[str] | list[MailDocument] | FeatureRows:
    if pipeline.kind_ == "email":
        return [read_message(MAIL)]
    if pipeline.kind_ == "text":
        return [TEXT]
    return loaded_version.sample_documents(pipeline)


def calls(function: Callable[[], object]) -> Counter[str]:
    """Call a function, and count all calls of Python functions that this causes."""
    counter: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            counter[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return counter


@pytest.mark.parametrize("kind", ["text", "email", "features"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_first_prediction_does_the_same_work_as_the_second(
    algorithm: str, kind: Kind, tmp_path: Path
) -> None:
    file = tmp_path / "model.covey"
    artifact.save(fitted(algorithm, kind), file)
    version = loaded_version.load(file)
    imported = set(sys.modules)

    def predict() -> None:
        to_json(predictions(version.pipeline.labels_, version.pipeline.rank(documents(version.pipeline))))

    first, second = calls(predict), calls(predict)
    assert {call for call in first - second if not call.endswith(NEW_WORDS)} == set()
    assert set(sys.modules) == imported


def test_the_first_prediction_knows_whether_it_is_short(tmp_path: Path) -> None:
    file = tmp_path / "model.covey"
    artifact.save(fitted("svm"), file)
    version = loaded_version.load(file)
    nothing = (0, 0)
    assert not CostEstimate().is_small(*nothing)
    assert version.ranking_cost.is_small(*nothing)
    assert version.explanation_cost.is_small(*nothing)
