"""The limits of one prediction request: texts, products, and labels of the response."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import TooLarge
from app.serving import instances
from app.serving.instances import to_documents
from app.serving.schemas import Instance
from app.settings import Settings
from models import catalog
from models.data.examples import Examples
from models.errors import ParameterError
from models.pipeline import Pipeline

TEXTS = ["red rose", "blue sky", "red sky", "green grass"]
SETS: list[tuple[str, ...]] = [("red",), ("blue",), ("red", "blue"), ("green",)]


def fitted(features: dict[str, Any], documents: Any, kind: Any = "text") -> Pipeline:
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "mp_boost", "rounds": 2}),
    )
    return pipeline.fit(Examples(kind, documents, SETS[: len(TEXTS)]))


@pytest.fixture(scope="module")
def of_text() -> Pipeline:
    return fitted({"kind": "text"}, TEXTS)


@pytest.fixture(scope="module")
def of_products() -> Pipeline:
    instances = [Instance(features={f"f{i}": 1.0 + i % 3, "g": 2.0}) for i in range(4)]
    no_model = fitted({"kind": "text"}, TEXTS)
    no_model.kind_ = "features"
    rows = to_documents(no_model, instances, Settings())
    return fitted({"kind": "numeric", "interactions": 2}, rows, "features")


def test_a_text_that_is_too_long_is_rejected_with_its_place(of_text: Pipeline) -> None:
    settings = Settings(max_text_chars=10)
    assert to_documents(of_text, [Instance(text="0123456789")], settings) == ["0123456789"]
    with pytest.raises(TooLarge, match="11 characters; the limit is 10") as caught:
        to_documents(of_text, [Instance(text="short"), Instance(text="0123456789a")], settings)
    assert caught.value.errors[0][0] == "/instances/1/text"


def test_too_many_products_of_known_features_are_rejected(
    of_products: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Instance(features={"f0": 1.0, "f1": 2.0, "g": 1.0, "unknown": 1.0})
    monkeypatch.setattr(instances, "MAX_PRODUCTS", 12)
    to_documents(of_products, [known, known], Settings())
    monkeypatch.setattr(instances, "MAX_PRODUCTS", 11)
    with pytest.raises(TooLarge, match=r"gives 12 products; the limit is 11; send fewer") as caught:
        to_documents(of_products, [known, known], Settings())
    assert caught.value.errors[0][0] == "/instances"


def test_too_many_ranked_labels_are_rejected_before_scoring(
    of_text: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(of_text.predictions(TEXTS, max_labels=4 * 3 + 8)) == 4
    assert len(of_text.predictions(TEXTS, top=1, max_labels=4 + 8)) == 4
    monkeypatch.setattr("models.pipeline.predictor.full_scores", lambda *_: pytest.fail("scored"))
    with pytest.raises(ParameterError, match=r"4 instances with 3 labels each .* set top") as caught:
        of_text.predictions(TEXTS, max_labels=11)
    assert caught.value.pointer == "/top"


def test_too_many_predicted_labels_are_rejected(of_text: Pipeline) -> None:
    """Label sets and explanations count, too, which depend on the scores."""
    n_labels = sum(len(prediction.labels) for prediction in of_text.predictions(TEXTS))
    of_text.predictions(TEXTS, top=1, max_labels=4 + n_labels)
    with pytest.raises(ParameterError, match="send fewer instances") as caught:
        of_text.predictions(TEXTS, top=1, max_labels=4 + n_labels - 1)
    assert caught.value.pointer == "/instances"
    with pytest.raises(ParameterError, match="or omit explain"):
        of_text.predictions(TEXTS, top=1, explain=True, max_labels=4 + n_labels)


def test_predictions_in_blocks_equal_predictions_at_once(
    of_text: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = of_text.predictions(TEXTS, explain=True)
    monkeypatch.setattr("models.pipeline.predictor._BLOCK_SCORES", 7)
    assert of_text.predictions(TEXTS, explain=True) == at_once
