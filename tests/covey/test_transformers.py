"""Features as transformers of scikit-learn, alone and before a learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import covey
from covey import errors
from models.mail import read_email

TEXTS = ["the invoice is wrong", "my parcel is late", "a late parcel and a wrong invoice"] * 6
SETS = [("billing",), ("shipping",), ("billing", "shipping")] * 6
CLASSES = ["billing", "shipping", "shipping"] * 6
MATRIX = MultiLabelBinarizer().fit_transform(SETS)
BY_LABELS = {"kind": "information_gain", "per_label": 2}

IN_CONSTRUCTOR = "the constructor refuses invalid arguments"
EXPECTED_FAILURES = {
    "check_do_not_raise_errors_in_init_or_set_params": IN_CONSTRUCTOR,
    "check_set_params": IN_CONSTRUCTOR,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [covey.NumericFeatures(), covey.NumericFeatures(scaling="standard", interactions=2)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_features_follow_scikit_learns_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize("y", [None, SETS, CLASSES, MATRIX, csr_array(MATRIX)])
def test_features_are_fitted_with_and_without_labels(y: Any) -> None:
    features = covey.TextFeatures(weighting="binary")
    X = features.fit_transform(TEXTS, y)
    np.testing.assert_array_equal(X.toarray(), features.transform(TEXTS).toarray())
    np.testing.assert_array_equal(X.toarray(), clone(features).fit(TEXTS, y).transform(TEXTS).toarray())
    assert features.get_feature_names_out().tolist() == features.names_
    assert covey.Pipeline(features, covey.SVM(), "sign").fit(TEXTS, SETS).feature_matrix(TEXTS).nnz == X.nnz


@pytest.mark.parametrize("y", [SETS, CLASSES, MATRIX])
def test_a_selection_by_labels_needs_them(y: Any) -> None:
    features = covey.TextFeatures(selection=BY_LABELS)
    assert set(features.fit(TEXTS, y).names_) <= {"invoice", "late", "my", "parcel", "the", "wrong"}
    with pytest.raises(errors.ParameterError, match="pass y, too"):
        features.fit(TEXTS)


def test_features_and_a_learner_make_a_pipeline_of_scikit_learn() -> None:
    steps = make_pipeline(covey.TextFeatures(selection=BY_LABELS), covey.SVM())
    assert steps.fit(TEXTS, CLASSES).predict(TEXTS).tolist() == CLASSES
    assert set(steps[:-1].get_feature_names_out()) <= {"invoice", "late", "my", "parcel", "the", "wrong"}
    np.testing.assert_array_equal(steps.fit(TEXTS, MATRIX).predict(TEXTS), MATRIX)
    grid = {"textfeatures__weighting": ["binary", "tfidf"], "svm__C": [0.1, 1.0]}
    search = GridSearchCV(steps, grid, cv=2, n_jobs=2).fit(TEXTS, CLASSES)
    assert set(search.best_params_) == set(grid)


def test_features_serve_other_classifiers_and_unions() -> None:
    words = covey.TextFeatures(weighting="binary")
    parts = covey.TextFeatures(analyzer={"character_ngrams": [2, 3]})
    both = make_pipeline(FeatureUnion([("words", words), ("parts", parts)]), LogisticRegression())
    assert cross_val_score(both, TEXTS, CLASSES, cv=2).min() == 1.0
    names = both.fit(TEXTS, CLASSES)[0].get_feature_names_out()
    assert {"words__parcel", "parts__parcel"} <= set(names)


def test_e_mails_and_columns_of_texts_are_documents() -> None:
    mails = [covey.Email(subject="invoice", text=text) for text in TEXTS]
    of_mails = covey.TextFeatures().fit_transform(mails)
    read = covey.TextFeatures().fit_transform([read_email(mail) for mail in mails])
    np.testing.assert_array_equal(of_mails.toarray(), read.toarray())
    column = covey.TextFeatures().fit_transform(np.array(TEXTS, dtype=object))
    np.testing.assert_array_equal(column.toarray(), covey.TextFeatures().fit_transform(TEXTS).toarray())


def test_features_refuse_documents_of_another_kind_and_other_columns() -> None:
    with pytest.raises(errors.ParameterError, match="use NumericFeatures"):
        covey.TextFeatures().fit(np.eye(3))
    with pytest.raises(errors.ParameterError, match="use TextFeatures"):
        covey.NumericFeatures().fit(TEXTS)
    with pytest.raises(errors.NotFittedError):
        covey.TextFeatures().transform(TEXTS)
    with pytest.raises(ValueError, match="X has 2 features, but NumericFeatures is expecting 3"):
        covey.NumericFeatures().fit(np.eye(3)).transform(np.eye(2))
