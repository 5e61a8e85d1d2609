"""Pipelines and learners as estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import covey
from covey import errors, measures
from models import catalog

TEXTS = [
    "the invoice is wrong",
    "my parcel is late",
    "a late parcel and a wrong invoice",
    "please refund the invoice",
    "where is the parcel",
    "an invoice for my parcel",
] * 3
SETS = [("billing",), ("shipping",), ("billing", "shipping")] * 6
CLASSES = ["billing", "shipping", "shipping", "billing", "shipping", "billing"] * 3
MATRIX = MultiLabelBinarizer().fit_transform(SETS)


def pipeline(learner: Any = None, **options: Any) -> covey.Pipeline:
    return covey.Pipeline(covey.TextFeatures(), learner or covey.SVM(), **options)


# Conventions

COLUMN_OF_CLASSES = "y with one column is one label as 0 and 1; classes need a one-dimensional y"
TOLERANCE = "liblinear stops at a tolerance, so its solutions differ in the fifth digit"
EXPECTED_FAILURES = {
    "check_classifier_multioutput": "a label is predicted above its threshold, which need not be 0",
    "check_supervised_y_2d": COLUMN_OF_CLASSES,
    "check_sample_weight_equivalence_on_dense_data": TOLERANCE,
    "check_sample_weight_equivalence_on_sparse_data": TOLERANCE,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [covey.Pipeline()], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_a_pipeline_follows_scikit_learns_conventions(
    estimator: covey.Pipeline, check: Callable[[covey.Pipeline], None]
) -> None:
    check(estimator)


def test_a_clone_has_the_same_parameters_and_is_not_fitted() -> None:
    original = covey.Pipeline(
        covey.TextFeatures(weighting="binary", analyzer={"stop_words": "english"}),
        covey.MPBoost(rounds=7),
        "sign",
        seed=3,
    ).fit(TEXTS, SETS)
    copy = clone(original)
    assert copy.features.parameters == original.features_.parameters
    assert (copy.learner.rounds, copy.decision, copy.seed) == (7, "sign", 3)
    assert copy.features is not original.features
    with pytest.raises(NotFittedError):
        copy.predict(TEXTS)
    assert copy.fit(TEXTS, SETS).predict(TEXTS) == original.predict(TEXTS)


def test_a_pipeline_without_features_uses_what_suits_its_learner_and_the_documents() -> None:
    unfitted = covey.Pipeline(learner=covey.NaiveBayes())
    explicit = covey.Pipeline(covey.TextFeatures(weighting="tfidf"), covey.NaiveBayes()).fit(TEXTS, SETS)
    fitted = clone(unfitted).fit(TEXTS, SETS)
    np.testing.assert_array_equal(fitted.decision_function(TEXTS), explicit.decision_function(TEXTS))
    assert fitted.get_params()["features"] is None
    mails = [covey.Email(text=text) for text in TEXTS]
    stop_words = [
        clone(unfitted).fit(documents, SETS).features_.parameters.analyzer.stop_words
        for documents in (TEXTS, mails)
    ]
    assert stop_words == ["none", "auto"]
    fitted.fit(np.eye(len(TEXTS)), SETS)  # what suited texts must not remain
    assert fitted.features_.get_params()["scaling"] == "none"


def test_a_pipeline_without_a_learner_uses_the_recommended_one() -> None:
    fitted = covey.Pipeline(seed=7).fit(TEXTS, SETS)
    assert fitted.learner is None
    assert fitted.learner_.get_params() == covey.SVM(random_state=7).get_params()
    assert fitted.features_.get_params()["weighting"] == "pivoted"
    with pytest.raises(errors.ParameterError, match="with features and a learner"):
        covey.Pipeline().set_state(fitted.get_state())


def test_parameters_of_all_parts_can_be_read_and_set() -> None:
    estimator = pipeline()
    parameters = estimator.get_params()
    assert {"features__weighting", "learner__C", "decision", "seed"} <= set(parameters)
    estimator.set_params(
        features__weighting="binary", features__analyzer__stop_words="english", learner__C=10
    )
    parameters = estimator.get_params()
    assert parameters["features__weighting"] == "binary"
    assert parameters["features__analyzer"].stop_words == "english"
    assert parameters["learner__C"] == 10
    assert repr(estimator.features).startswith("TextFeatures(weighting='binary', analyzer=")
    with pytest.raises(errors.ParameterError, match="/features/weighting"):
        estimator.set_params(features__weighting="heavy")
    with pytest.raises(errors.ParameterError, match="/features/wheighting"):
        covey.TextFeatures(wheighting="binary")  # type: ignore[call-arg]


def test_a_grid_search_finds_parameters_of_features_and_learner() -> None:
    grid = {"features__weighting": ["binary", "tfidf"], "learner__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline(decision="sign"), grid, cv=2, scoring="f1_micro").fit(TEXTS, MATRIX)
    assert set(search.best_params_) == set(grid)
    assert search.predict(TEXTS).shape == MATRIX.shape
    assert search.best_score_ > 0.5


def test_scores_are_cross_validated_with_label_sets_and_classes() -> None:
    estimator = pipeline(decision="sign")
    of_sets = cross_val_score(estimator, TEXTS, SETS, cv=KFold(2))
    of_matrix = cross_val_score(estimator, TEXTS, MATRIX, cv=KFold(2))
    np.testing.assert_array_equal(of_sets, of_matrix)
    assert cross_val_score(estimator, TEXTS, CLASSES, cv=2).min() > 0.5


def test_a_pipeline_is_the_last_step_of_a_pipeline_of_scikit_learn() -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    steps = make_pipeline(lower, pipeline())
    upper = [text.upper() for text in TEXTS]
    assert steps.fit(upper, SETS).predict(upper) == pipeline().fit(TEXTS, SETS).predict(TEXTS)
    assert steps.score(upper, SETS) == pipeline().fit(TEXTS, SETS).score(TEXTS, SETS)


# The form of the labels


def test_predictions_have_the_form_of_the_labels() -> None:
    of_sets = pipeline().fit(TEXTS, SETS)
    of_matrix = pipeline().fit(TEXTS, MATRIX)
    of_sparse = pipeline().fit(TEXTS, csr_array(MATRIX))
    assert of_sets.predict(TEXTS[:3]) == SETS[:3]
    np.testing.assert_array_equal(of_matrix.predict(TEXTS), MATRIX)
    np.testing.assert_array_equal(of_sparse.predict(TEXTS), MATRIX)
    assert of_sets.classes_.tolist() == ["billing", "shipping"]
    assert of_matrix.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(of_sets.decision_function(TEXTS), of_matrix.decision_function(TEXTS))


def test_a_source_of_examples_gives_label_sets() -> None:
    examples = covey.Examples("text", TEXTS, SETS)
    fitted = pipeline().fit(examples)
    assert fitted.predict(TEXTS) == pipeline().fit(TEXTS, SETS).predict(TEXTS)
    assert fitted.score(examples) == fitted.score(TEXTS, SETS) == 1.0
    with pytest.raises(errors.ParameterError, match="pass them alone"):
        pipeline().fit(examples, SETS)


def test_columns_keep_their_order_and_labels_without_an_example() -> None:
    matrix = np.hstack([MATRIX, np.zeros((len(TEXTS), 10), dtype=int)])[:, ::-1]
    fitted = pipeline().fit(TEXTS, matrix)
    np.testing.assert_array_equal(fitted.predict(TEXTS), matrix)
    assert fitted.decision_function(TEXTS).shape == matrix.shape


@pytest.mark.parametrize("classes", [CLASSES, [name == "billing" for name in CLASSES], [3, 20, 100] * 6])
def test_one_class_per_document_gives_classes(classes: list[Any]) -> None:
    texts = [f"{text} {name}" for text, name in zip(TEXTS, classes, strict=True)]
    fitted = pipeline().fit(texts, classes)
    assert fitted.predict(texts).tolist() == classes
    assert fitted.classes_.tolist() == sorted(set(classes))
    assert fitted.score(texts, classes) == 1.0


def test_the_columns_of_a_matrix_are_features() -> None:
    X, y = make_classification(random_state=0)
    fitted = covey.Pipeline(covey.NumericFeatures(scaling="standard"), covey.SVM(), "sign").fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert fitted.n_features_in_ == X.shape[1]
    with pytest.raises(ValueError, match="X has 3 features, but Pipeline is expecting 20"):
        fitted.predict(X[:, :3])


class Table:
    """A table with named columns, such as a data frame."""

    def __init__(self, columns: list[Any], values: Any) -> None:
        self.columns = columns
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def select(self, *columns: str) -> Table:
        """Return some columns."""
        return Table(list(columns), self.values[:, [self.columns.index(name) for name in columns]])


def table() -> tuple[Table, Any]:
    X, y = make_classification(n_features=4, random_state=0)
    return Table(["a", "b", "c", "d"], X), y


NUMERIC = [covey.Pipeline(covey.NumericFeatures(), covey.SVM(), "sign"), covey.SVM()]


@pytest.mark.parametrize("estimator", NUMERIC)
def test_a_table_must_have_the_columns_of_the_training(estimator: Any) -> None:
    X, y = table()
    fitted = clone(estimator).fit(X, y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    predicted = fitted.predict(X)
    for columns, message in (
        ("bacd", "must be in the same order"),
        ("abc", "yet now missing:\n- d"),
        ("abcd", None),
    ):
        if message is None:
            np.testing.assert_array_equal(fitted.predict(X.select(*columns)), predicted)
            continue
        with pytest.raises(ValueError, match=message):
            fitted.predict(X.select(*columns))
    with pytest.raises(ValueError, match="unseen at fit time:\n- x\n"):
        fitted.predict(Table(["a", "b", "c", "x"], X.values))


@pytest.mark.parametrize("estimator", NUMERIC)
def test_columns_without_names_are_matched_by_position_with_a_warning(estimator: Any) -> None:
    X, y = table()
    fitted = clone(estimator).fit(X, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but .* was fitted with"):
        without = fitted.predict(X.values)
    np.testing.assert_array_equal(without, fitted.predict(X))
    fitted.fit(X.values, y)
    assert not hasattr(fitted, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but .* was fitted without"):
        named = fitted.predict(X)
    np.testing.assert_array_equal(named, without)


def test_incremental_learning_checks_the_columns_too() -> None:
    X, y = table()
    learner = covey.BinaryRelevancePerceptron().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="must be in the same order"):
        learner.partial_fit(X.select(*"dcba"), y)


def test_a_loaded_pipeline_matches_columns_by_name(tmp_path: Path) -> None:
    X, y = table()
    labels = [("one",) if value else ("zero",) for value in y]
    fitted = clone(NUMERIC[0]).fit(X, labels)
    covey.save(fitted, str(tmp_path / "model"))
    loaded = covey.load(str(tmp_path / "model"))
    assert loaded.predict(X.select(*"dcba")) == fitted.predict(X)
    with pytest.raises(errors.ParameterError, match="the columns have no names"):
        loaded.predict(X.values)


# Probabilities


def test_probabilities_exist_only_if_the_pipeline_is_calibrated() -> None:
    calibrated = pipeline().fit(TEXTS, MATRIX)
    assert calibrated.predict_proba(TEXTS).shape == MATRIX.shape
    plain = pipeline(decision="sign").fit(TEXTS, MATRIX)
    assert not hasattr(plain, "predict_proba")
    of_classes = pipeline().fit(TEXTS, CLASSES)
    p = of_classes.predict_proba([*TEXTS, "", "invoice parcel"])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    most = of_classes.classes_[p.argmax(axis=1)]
    assert (most == of_classes.predict([*TEXTS, "", "invoice parcel"])).all()


def test_scikit_learn_calibrates_a_learner() -> None:
    X, y = make_classification(n_samples=60, random_state=0)
    calibrated = CalibratedClassifierCV(covey.SVM(), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (60, 2)


# Weights


def test_a_weight_of_two_equals_two_documents_and_zero_none() -> None:
    weights = np.arange(len(TEXTS)) % 3
    learner = covey.NaiveBayes()
    weighted = pipeline(learner, decision="sign").fit(TEXTS, SETS, sample_weight=weights)
    repeated = pipeline(clone(learner), decision="sign").fit(
        [text for text, n in zip(TEXTS, weights, strict=True) for _ in range(n)],
        [names for names, n in zip(SETS, weights, strict=True) for _ in range(n)],
    )
    # The weights of terms count documents, not their weights.
    assert weighted.labels_ == repeated.labels_
    assert weighted.summary_.facts["examples"] == int((weights > 0).sum())


WEIGHTED = sorted(entry.algorithm for entry in catalog.describe() if entry.accepts_weights)


@pytest.mark.parametrize("algorithm", WEIGHTED)
def test_an_integer_weight_of_an_example_equals_its_repetition(algorithm: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, (30, 6)).astype(float)
    Y = (X[:, :3] + rng.normal(0, 0.6, (30, 3)) > 1).astype(int)
    times = rng.integers(0, 4, 30)
    learner = catalog.ENTRIES[algorithm].learner()
    if "rounds" in learner.get_params():
        learner.set_params(rounds=5)
    weighted = clone(learner).fit(X, Y, sample_weight=times)
    repeated = clone(learner).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    tolerance = 5e-3 if "svm" in algorithm else 1e-8  # liblinear stops at a tolerance
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=tolerance, atol=tolerance
    )
    assert weighted.score(X, Y, sample_weight=times) == pytest.approx(
        repeated.score(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    )


@pytest.mark.parametrize("weights", [[-1.0, 1, 1], [1.0, 2], [np.nan, 1, 1], [0, 0, 0]])
def test_invalid_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        covey.SVM().fit(np.eye(3), np.eye(3, dtype=int), sample_weight=weights)


# Input that is refused


@pytest.mark.parametrize("single", ["late parcel", b"late parcel", covey.Email(text="late parcel")])
def test_a_single_document_without_a_list_is_refused(single: Any) -> None:
    fitted = pipeline().fit(TEXTS, SETS)
    for use in (fitted.predict, fitted.predictions, fitted.rank, fitted.scores, fitted.predict_proba):
        with pytest.raises(errors.ParameterError, match="pass a list"):
            use(single)
    with pytest.raises(errors.ParameterError, match="pass a list"):
        pipeline().fit(single, SETS)


def test_labels_that_are_a_text_among_collections_are_refused() -> None:
    with pytest.raises(errors.ParameterError, match="write one label as a list"):
        pipeline().fit(TEXTS[:3], [["billing"], "shipping", ["shipping"]])
    with pytest.raises(errors.ParameterError, match="no label as an empty list"):
        pipeline().fit(TEXTS[:2], [["billing"], None])
    with pytest.raises(errors.ParameterError, match="y is a single text"):
        pipeline().fit(TEXTS, "billing")


def test_an_iterator_is_refused() -> None:
    with pytest.raises(errors.ParameterError, match="can be read only once"):
        pipeline().fit(iter(TEXTS), SETS)


def test_texts_and_mails_are_not_mixed() -> None:
    with pytest.raises(errors.ParameterError, match="document 1 is of the type Email"):
        pipeline().fit(["a text", covey.Email(text="a mail")], SETS[:2])


def test_labels_must_have_the_form_of_the_training() -> None:
    fitted = pipeline().fit(TEXTS, MATRIX)
    with pytest.raises(ValueError, match="matrix of 0 and 1"):
        fitted.score(TEXTS, SETS)
    with pytest.raises(ValueError, match="3 documents, but y has 2"):
        pipeline().fit(TEXTS[:3], SETS[:2])


# Learners


def problem() -> tuple[Any, Any, Any]:
    X, y = make_classification(n_samples=90, n_informative=5, n_classes=3, random_state=1)
    return X, y, np.array(["ham", "news", "spam"])[y]


@pytest.mark.parametrize("algorithm", catalog.INCREMENTAL_LEARNERS)
def test_partial_fit_accepts_all_classes_in_its_first_call(algorithm: str) -> None:
    X, _, y = problem()
    X = np.abs(X)
    learner = catalog.ENTRIES[algorithm].learner()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        learner.partial_fit(X[:30], y[:30])
    first = y == "ham"
    learner.partial_fit(X[first], y[first], classes=["spam", "ham", "news"])
    learner.partial_fit(X[~first], y[~first])
    assert learner.classes_.tolist() == ["ham", "news", "spam"]
    assert set(learner.predict(X)) <= {"ham", "news", "spam"}
    with pytest.raises(ValueError, match="other"):
        learner.partial_fit(X[:1], ["other"])
    with pytest.raises(ValueError, match="classes differs"):
        learner.partial_fit(X[:1], y[:1], classes=["ham", "spam"])
    with pytest.raises(ValueError, match="one class per example"):
        learner.partial_fit(X[:1], [[1, 0, 0]])


def test_passes_over_parts_equal_one_pass_over_all_classes() -> None:
    X, _, y = problem()
    whole = covey.BinaryRelevancePerceptron().fit(X, y)
    parts = covey.BinaryRelevancePerceptron()
    for start in (0, 30, 60):
        parts.partial_fit(X[start : start + 30], y[start : start + 30], classes=np.unique(y))
    np.testing.assert_array_equal(parts.decision_function(X), whole.decision_function(X))
    assert parts.score(X, y) == whole.score(X, y)


@pytest.mark.parametrize("classes", [["ham", "news", "spam"], [5, 7, 9], [0.5, 1.0, 2.0], [False, True]])
@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_a_restored_learner_predicts_the_same_classes(algorithm: str, classes: list[Any]) -> None:
    if isinstance(classes[0], float):
        classes = [str(value) for value in classes]  # scikit-learn reads fractions as a regression
    X, y, _ = problem()
    names = np.array(classes)[y % len(classes)]
    learner = catalog.ENTRIES[algorithm].learner()
    learner.set_params(**{k: 3 for k in ("rounds", "passes") if k in learner.get_params()})
    learner.fit(np.abs(X), names)
    restored = clone(learner).set_state(learner.get_state())
    np.testing.assert_array_equal(restored.classes_, learner.classes_)
    np.testing.assert_array_equal(restored.predict(np.abs(X)), learner.predict(np.abs(X)))
    again = restored.fit(np.abs(X), np.eye(2, dtype=int)[y % 2])
    assert again.set_state(again.get_state()).classes_.tolist() == [0, 1]


def test_a_learner_that_votes_selects_the_labels_with_most_of_the_votes() -> None:
    X, y, _ = problem()
    Y = np.eye(3, dtype=int)[y]
    votes = covey.MLPP().fit(X, Y)
    np.testing.assert_array_equal(votes.predict(X), votes.decision_function(X) > 1)  # half of k - 1 = 2
    calibrated = covey.MLPP(calibrated=True).fit(X, Y)
    np.testing.assert_array_equal(calibrated.predict(X), calibrated.decision_function(X) > 0)
    single = covey.NaiveBayes(label_mode="single_label").fit(np.abs(X), Y)
    assert (single.predict(np.abs(X)).sum(axis=1) == 1).all()


def test_a_saved_pipeline_is_loaded_with_its_predictions(tmp_path: Path) -> None:
    fitted = pipeline().fit(TEXTS, SETS)
    covey.save(fitted, tmp_path / "model")
    assert covey.load(tmp_path / "model").predict(TEXTS) == fitted.predict(TEXTS)


# Measures


def test_measures_accept_label_sets_and_matrices() -> None:
    predicted = [("billing",), ("shipping",), ("billing",)] * 6
    found = MultiLabelBinarizer(classes=["billing", "shipping"]).fit_transform(predicted)
    for name in ("f1_micro", "f1_macro", "hamming_loss", "accuracy", "precision_macro", "recall_micro"):
        measure = getattr(measures, name)
        assert measure(SETS, predicted) == measure(MATRIX, found) == measure(csr_array(MATRIX), found)
    assert measures.one_error(MATRIX, MATRIX.astype(float)) == 0
    with pytest.raises(ValueError, match="shape"):
        measures.f1_micro(MATRIX, found[:3])
