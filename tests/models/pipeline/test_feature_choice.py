"""The features ``auto``: richer ones, if they rank the labels of held-out documents clearly better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.baselines.svm import SVM
from models.data.examples import Examples, FeatureRows
from models.features import NumericFeaturesParameters, TextFeaturesParameters
from models.labels.indicator_matrix import indicator_matrix
from models.measures.rankings import average_precision
from models.pipeline import Pipeline
from models.pipeline.feature_choice import FeatureChooser, _equally_good

LABELS = ("bill", "cable", "door", "engine")


def endings(n: int = 240) -> Examples:
    """Words that occur once each, of which only the ending tells the label: parts of words find it."""
    rng = np.random.default_rng(0)
    suffix = ("tion", "ment", "ness", "ship")
    labels = rng.integers(4, size=n)
    texts = [" ".join(f"{rng.integers(10**9):x}{suffix[j]}" for _ in range(4)) for j in labels]
    return Examples("text", texts, [(LABELS[j],) for j in labels])


def pairs(n: int = 240) -> Examples:
    """Words that say nothing alone, and everything as pairs."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=n)
    texts = ["red rose blue sky" if j else "red sky blue rose" for j in labels]
    return Examples("text", [f"{text} x{i}" for i, text in enumerate(texts)], [(LABELS[j],) for j in labels])


def plain(n: int = 240) -> Examples:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=n)
    words = [f"{LABELS[j]} number{rng.integers(50)}" for j in labels]
    return Examples("text", words, [(LABELS[j],) for j in labels])


def characters(n: int = 240) -> Examples:
    """Texts in a script without spaces, in which a single character tells the label."""
    rng = np.random.default_rng(0)
    others = [chr(0x4E00 + i) for i in range(2000)]
    labels = rng.integers(4, size=n)
    texts = ["".join(rng.choice(others, 6)) + "账线门机"[j] + "".join(rng.choice(others, 6)) for j in labels]
    return Examples("text", texts, [(LABELS[j],) for j in labels])


def lengths(n: int = 240) -> Examples:
    """Numbers of which only the proportions tell the label."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=n)
    rows = np.where(labels[:, None], [2.0, 1.0], [1.0, 2.0]) * 10 ** rng.uniform(-3, 3, (n, 1))
    return Examples("features", FeatureRows(["a", "b"], csr_array(rows)), [(LABELS[j],) for j in labels])


@pytest.mark.parametrize(
    ("examples", "changes"),
    [
        (plain(), {}),
        (endings(), {"ngrams": (1, 2), "character_ngrams": (3, 5)}),
        (pairs(), {"ngrams": (1, 2), "character_ngrams": (3, 5)}),
        (characters(), {"unit": "character", "ngrams": (1, 2)}),
    ],
)
def test_the_cheapest_of_the_best_features_is_chosen(examples: Examples, changes: dict[str, Any]) -> None:
    fitted = Pipeline(learner=SVM()).fit(examples)
    parameters = fitted.features_.parameters
    assert isinstance(parameters, TextFeaturesParameters)
    recipe = catalog.resolve_features(SVM(), None, "text")
    assert isinstance(recipe, TextFeaturesParameters)
    assert parameters.analyzer == recipe.analyzer.model_copy(update=changes)
    assert parameters.min_df == 1
    again = Pipeline("auto", SVM()).fit(examples)
    assert again.features_.parameters == parameters
    np.testing.assert_array_equal(again.scores(examples.documents), fitted.scores(examples.documents))


def test_numbers_get_unit_length_if_their_size_says_nothing() -> None:
    fitted = Pipeline(learner=SVM()).fit(lengths())
    assert fitted.features_.parameters == NumericFeaturesParameters(kind="numeric", scaling="unit")


def test_the_comparison_measures_what_was_not_fitted() -> None:
    examples = endings()
    compared = Pipeline(learner=SVM()).fit(examples).summary_.facts["average_precision_of_features"]
    assert list(compared) == ["words", "words, pairs and parts"]
    halves = np.arange(examples.n_examples) < 160
    fitted = Pipeline(catalog.create_features(catalog.resolve_features(SVM(), None, "text")), SVM())
    fitted.fit(examples.where(halves))
    rest = examples.where(~halves)
    Y = indicator_matrix(rest.labels, fitted.labels_)
    assert compared["words"] == pytest.approx(average_precision(Y, fitted.scores(rest.documents)), abs=0.2)
    assert compared["words, pairs and parts"] > 0.9


def test_too_few_examples_and_other_learners_keep_their_features() -> None:
    few = Examples("text", ["a bill", "a cable"], [("bill",), ("cable",)])
    fitted = Pipeline(learner=SVM()).fit(few)
    assert fitted.features_.parameters == catalog.resolve_features(SVM(), None, "text")
    assert "average_precision_of_features" not in fitted.summary_.facts
    assert [learner.algorithm for learner in catalog.describe() if learner.chooses_features] == ["svm"]


def test_the_comparison_reports_its_steps() -> None:
    compared: list[int] = []
    learner = SVM()
    chooser = FeatureChooser(learner, plain(), tree=None, seed=0, on_step=compared.append)
    chooser.choose(catalog.resolve_features(learner, None, "text"))
    assert sorted(set(compared)) == [0, 1]
    assert not hasattr(learner, "n_features_in_"), "the learner is not changed"


def test_candidates_within_a_standard_error_are_equally_good() -> None:
    best = np.array([1.0, 1.0, 0.5, 0.5])
    assert _equally_good(best - np.array([0.3, -0.2, 0.0, 0.1]), best)
    assert not _equally_good(best - 0.1, best)
