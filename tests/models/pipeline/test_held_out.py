"""Held-out scores: a fold knows nothing of its documents, and scores have the scale of the fitted learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.base import Context, Problem
from models.data.examples import Examples, FeatureRows
from models.decisions import HeldOut
from models.decisions.held_out import ScoreScale, align
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline, read_documents
from models.pipeline.held_out import FoldScores
from tests.models.calibration.test_calibration import held_out as example_of
from tests.models.calibration.test_calibration import problem
from tests.models.pipeline.test_pipeline_thresholds import held_out, random_texts


def texts_with_own_words(n: int = 40) -> Examples:
    """Texts that all have a word of their own, and one that has no other word."""
    source = random_texts(seed=3, n=n)
    texts: Any = source.documents
    documents = [f"{text} own{i}" for i, text in enumerate(texts)]
    return replace(source, documents=[*documents[:-1], "alone"])


def numbers(n: int = 40) -> Examples:
    """Numbers of different sizes, the largest of which are in few examples."""
    rng = np.random.default_rng(0)
    source = random_texts(seed=3, n=n)
    X = rng.pareto(1.0, (n, 5)) * (rng.random((n, 5)) < 0.7)
    return replace(source, kind="features", documents=FeatureRows(list("abcde"), csr_array(X)))


def pipeline(features: dict[str, Any], algorithm: str, decision: str = "auto") -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(features),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
        seed=2,
    )


def scores_of_folds(fitted: Pipeline, source: Examples) -> HeldOut | None:
    """Return the held-out scores for a fitted pipeline."""
    Y = indicator_matrix(source.labels, fitted.labels_)
    raw = fitted.features_.read([read_documents(source.documents)])
    X = fitted.features_.values(raw)
    numeric = source.kind == "features"
    context = Context(labels=fitted.labels_, features=fitted.features_.names_, numeric_features=numeric)
    return FoldScores(
        fitted.features_,
        fitted.learner_,
        raw,
        Problem(X, Y, context),
        seed=fitted.seed,
        monitor=lambda step: None,  # noqa: ARG005
        resume={},
    ).run()


INFORMATION_GAIN = {"kind": "information_gain", "per_label": 3}


@pytest.mark.parametrize(
    ("features", "algorithm"),
    [
        ({"weighting": "pivoted", "scaling": "unit"}, "svm"),
        ({"weighting": "tfidf", "smooth_idf": True, "min_df": 2}, "naive_bayes"),
        ({"weighting": "tfidf", "hashing": {"n_features": 1024}}, "mmp"),
        ({"weighting": "binary", "selection": {**INFORMATION_GAIN, "policy": "round_robin"}}, "adaboost_mh"),
        ({"weighting": "binary", "selection": {**INFORMATION_GAIN, "policy": "local"}}, "mp_boost"),
        ({"scaling": "max_abs"}, "svm"),
        ({"scaling": "standard", "interactions": 2}, "svm"),
    ],
)
def test_features_and_learners_of_folds_never_saw_the_documents_that_they_score(
    features: dict[str, Any], algorithm: str
) -> None:
    numeric = "weighting" not in features
    source = numbers() if numeric else texts_with_own_words()
    fitted = pipeline({"kind": "numeric" if numeric else "text", **features}, algorithm).fit(source)
    found, expected = scores_of_folds(fitted, source), held_out(fitted, source)
    assert found is not None
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9, atol=1e-12)
    for one, other in ((found.Y.toarray(), expected.Y.toarray()), (found.folds, expected.folds)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.tunable, expected.tunable)
    assert fitted.decision_report_ is not None
    assert fitted.decision_report_.examples == len(expected.scores) == (40 if numeric else 39)


def test_without_a_known_term_in_a_fold_nothing_is_held_out() -> None:
    """Every document has other words, so that no fold knows a word of its documents."""
    source = Examples("text", [f"own{i}" for i in range(9)], [("a",), ("b",), ("a", "b")] * 3)
    fitted = pipeline({"kind": "text"}, "svm").fit(source)
    assert fitted.decision_report_ is not None
    assert (fitted.decision_report_.fallback, fitted.calibration_) == ("sign", None)


def test_features_that_cannot_be_fitted_without_a_fold_hold_nothing_out() -> None:
    source = Examples("text", ["ash oak", "oak", "ash"], [("a",)] * 3)
    fitted = pipeline({"kind": "text", "min_df": 2, "weighting": "binary"}, "svm").fit(source)
    assert fitted.decision_report_ is not None
    assert fitted.decision_report_.fallback == "single_label"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_validation_examples_do_not_tune_a_decision(n: int) -> None:
    source = random_texts(seed=3)
    fitted = pipeline({"kind": "text"}, "svm").fit(
        source, validation=random_texts(seed=4).where(np.arange(40) < n)
    )
    assert fitted.decision_report_ is not None
    tuned = n == 3  # the label of all documents has three examples
    assert fitted.decision_report_.fallback == (None if tuned else "sign")
    assert (fitted.calibration_ is not None) is tuned


def test_scores_without_a_fixed_scale_are_moved_to_that_of_the_learner_if_a_label_is_rare() -> None:
    scores, relevant, _ = problem(3000, 2)
    relevant[:, 0] &= np.arange(3000) % 100 == 0
    example = example_of(scores, relevant)
    moved = align(example, ScoreScale.of(scores * 3 + 7, None), None).scores
    means, expected = moved.mean(axis=0), (scores * 3 + 7).mean(axis=0)
    n_positive = relevant.sum(axis=0)
    trust = n_positive / (n_positive + 50)
    assert means == pytest.approx(trust * scores.mean(axis=0) + (1 - trust) * expected)
    assert trust[0] < 0.2
    assert trust[1] > 0.9


def test_scores_with_a_fixed_scale_keep_most_of_the_gap_between_seen_and_unseen_examples() -> None:
    scores, relevant, _ = problem()
    unseen = ScoreScale.of(scores, None)
    seen = ScoreScale(unseen.center + 0.3 * unseen.spread, 1.5 * unseen.spread)
    example = replace(example_of(scores, relevant), folds=np.zeros(len(scores), dtype=np.int64))
    fitted_scale = ScoreScale(np.full(8, 7.0), np.full(8, 4.0))
    moved = ScoreScale.of(align(example, fitted_scale, [seen]).scores, None)
    assert moved.spread == pytest.approx(np.full(8, 4 * (1 - 0.9 * (1 - 1 / 1.5))))
    assert moved.center == pytest.approx(np.full(8, 7 - 0.9 * 0.3 / 1.5 * 4))


def test_copies_of_a_document_share_a_fold() -> None:
    rng = np.random.default_rng(0)
    texts = [f"text{i % 12} word{i % 12} shared{i % 4}" for i in range(120)]
    labels = [("a",), ("b",), ("c",)]
    of_text = [labels[j] for j in rng.integers(3, size=12)]
    fitted = pipeline({"kind": "text"}, "svm").fit(Examples("text", texts, of_text * 10))
    report = fitted.decision_report_
    assert report is not None
    assert report.chosen is not None
    assert report.chosen.values.subset_accuracy < 0.7, "nothing about a text follows from the other texts"
