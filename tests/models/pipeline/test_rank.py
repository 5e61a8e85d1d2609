"""Rankings as arrays: the same numbers and labels as ``Pipeline.predict``."""

from __future__ import annotations

import numpy as np
import pytest

from models import catalog
from models.data.examples import Examples
from models.errors import ParameterError
from models.pipeline import Pipeline

TEXTS = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass"]
SETS: list[tuple[str, ...]] = [
    ("red", "flower"),
    ("blue",),
    ("red",),
    ("green",),
    ("green", "flower"),
    (),
]


@pytest.fixture(scope="module")
def fitted() -> Pipeline:
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
    )
    return pipeline.fit(Examples("text", TEXTS, SETS))


@pytest.mark.parametrize("top", [None, 1, 2, 99])
def test_a_ranking_has_the_labels_and_scores_of_the_predictions(fitted: Pipeline, top: int | None) -> None:
    ranking, predictions = fitted.rank(TEXTS, top=top), fitted.predictions(TEXTS, top=top)
    names = fitted.labels_
    assert ranking.scores.dtype == np.float64
    assert ranking.order.shape == ranking.scores.shape == (6, min(top or 4, 4))
    for i, prediction in enumerate(predictions):
        ranked = zip(ranking.order[i].tolist(), ranking.scores[i].tolist(), strict=True)
        assert [(names[label], score) for label, score in ranked] == prediction.ranking
        assert [names[label] for label in ranking.label_sets[i]] == prediction.labels


def test_no_documents_have_an_empty_ranking(fitted: Pipeline) -> None:
    ranking = fitted.rank([], top=2)
    assert ranking.scores.shape == ranking.order.shape == (0, 2)
    assert ranking.label_sets == []


def test_a_ranking_of_too_many_labels_is_rejected(fitted: Pipeline) -> None:
    n_labels = sum(map(len, fitted.rank(TEXTS, max_labels=999).label_sets))
    fitted.rank(TEXTS, top=1, max_labels=6 + n_labels)
    with pytest.raises(ParameterError, match="send fewer instances"):
        fitted.rank(TEXTS, top=1, max_labels=6 + n_labels - 1)
    with pytest.raises(ParameterError, match="set top"):
        fitted.rank(TEXTS, max_labels=23)
