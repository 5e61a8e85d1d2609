"""Unknown labels of examples are left out of trainings, selections, thresholds and measures.

The reference is always the same computation for one label on the examples for which this label is known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models import artifact, catalog
from models.arrays import AnyArray, Bools, Floats
from models.base import Context, Learner, ValidationSet
from models.base.validation import as_label_matrix
from models.boosting.early_stopping import EarlyStoppingMonitor
from models.boosting.hypothesis import WeakHypothesis
from models.boosting.parameters import EarlyStopping
from models.data.examples import Examples
from models.decisions import HeldOut
from models.decisions.tune import tuned_thresholds
from models.errors import ParameterError, UnsuitableDataError
from models.features.selection import information_gain, rocchio_scores
from models.labels import LabelTree
from models.labels.indicator_matrix import unknown_matrix
from models.measures.evaluation import evaluate
from models.measures.examples import example_measures
from models.measures.histograms import score_histograms
from models.perceptrons.binary_relevance import BinaryRelevancePerceptron
from models.pipeline import Pipeline

SEPARATE: list[dict[str, Any]] = [
    {"algorithm": "svm"},
    {"algorithm": "h_svm"},
    {"algorithm": "naive_bayes"},
    {"algorithm": "binary_relevance_perceptron", "epochs": 2},
]
TOGETHER: list[dict[str, Any]] = [
    {"algorithm": "adaboost_mh"},
    {"algorithm": "mp_boost"},
    {"algorithm": "adaboost_lc", "covering": {"kind": "hamming"}},
    {"algorithm": "mmp"},
    {"algorithm": "mlpp"},
    {"algorithm": "naive_bayes", "label_mode": "single_label"},
    {"algorithm": "h_rls"},
    {"algorithm": "h_m3"},
]


def create(parameters: dict[str, Any]) -> Learner:
    return catalog.create_learner(catalog.LEARNER_PARAMETERS.validate_python(parameters))


def test_the_catalog_lists_the_learners_that_accept_unknown_labels() -> None:
    accepting = {entry.algorithm for entry in catalog.describe() if entry.accepts_unknown_labels}
    assert accepting == {parameters["algorithm"] for parameters in SEPARATE}


def example_data(seed: int, n: int = 40, r: int = 6, k: int = 3) -> tuple[AnyArray, AnyArray, Bools]:
    """Counts, relevant labels, and unknown labels of which none is relevant. The last label is known."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.8, (n, r)).astype(float)
    Y = (X[:, :k] + rng.normal(0, 0.4, (n, k)) > 1).astype(int)
    unknown = (rng.random((n, k)) < 0.3) & (Y == 0)
    unknown[:, -1] = False
    return X, Y, unknown


def test_the_lists_above_have_every_learner() -> None:
    assert {p["algorithm"] for p in SEPARATE + TOGETHER} == set(catalog.ENTRIES)


@pytest.mark.parametrize("parameters", SEPARATE, ids=lambda p: p["algorithm"])
@given(st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_each_label_is_learned_from_the_examples_for_which_it_is_known(
    parameters: dict[str, Any], seed: int
) -> None:
    X, Y, unknown = example_data(seed)
    scores = (
        create(parameters).fit(X, Y, context=Context(unknown=as_label_matrix(unknown))).decision_function(X)
    )
    for j in range(Y.shape[1]):
        known = ~unknown[:, j]
        alone = create(parameters).fit(X[known], Y[known][:, [j]])
        np.testing.assert_array_equal(scores[:, [j]], alone.decision_function(X))


@given(st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_a_node_of_a_tree_is_learned_from_the_known_examples_of_its_parent(seed: int) -> None:
    X, Y, unknown = example_data(seed)
    Y[:, 1] &= Y[:, 0]
    unknown &= Y == 0
    unknown[:, 0] |= unknown[:, 1] & (Y[:, 0] == 0)
    context = Context(parents=np.array([-1, 0, -1]), unknown=as_label_matrix(unknown))
    margins = create({"algorithm": "h_svm"}).fit(X, Y, context=context)
    rows = (Y[:, 0] == 1) & ~unknown[:, 1]
    alone = create({"algorithm": "svm"}).fit(X[rows], Y[rows][:, [1]])
    np.testing.assert_array_equal(margins.get_state()["coef"][:, 1], alone.get_state()["coef"][:, 0])


@pytest.mark.parametrize("parameters", TOGETHER, ids=lambda p: "_".join(map(str, p.values()))[:30])
def test_learners_that_train_all_labels_together_refuse_unknown_labels(parameters: dict[str, Any]) -> None:
    X, Y, unknown = example_data(0)
    context = Context(unknown=as_label_matrix(unknown), parents=np.array([-1, -1, -1]))
    with pytest.raises(UnsuitableDataError, match="trains all labels together"):
        create(parameters).fit(X, Y, context=context)
    with pytest.raises(
        ParameterError, match="use one of binary_relevance_perceptron, h_svm, naive_bayes, svm"
    ):
        catalog.check_unknown_labels(catalog.LEARNER_PARAMETERS.validate_python(parameters))


@pytest.mark.parametrize("parameters", [*SEPARATE, TOGETHER[1]], ids=lambda p: p["algorithm"])
def test_a_matrix_without_unknown_labels_changes_nothing(parameters: dict[str, Any]) -> None:
    X, Y, unknown = example_data(1)
    context = Context(unknown=as_label_matrix(np.zeros_like(unknown)))
    first, second = create(parameters).fit(X, Y), create(parameters).fit(X, Y, context=context)
    for name, array in first.get_state().items():
        np.testing.assert_array_equal(second.get_state()[name], array)


def test_a_label_cannot_be_relevant_and_unknown() -> None:
    X, Y, _ = example_data(0)
    with pytest.raises(ValueError, match="relevant and also unknown"):
        create({"algorithm": "svm"}).fit(X, Y, context=Context(unknown=as_label_matrix(Y)))


@pytest.mark.parametrize("parameters", SEPARATE[2:], ids=lambda p: p["algorithm"])
def test_incremental_learners_are_saved_and_trained_further_with_unknown_labels(
    parameters: dict[str, Any],
) -> None:
    X, Y, unknown = example_data(2, n=60)
    parameters = parameters | ({"epochs": 1} if "epochs" in parameters else {})

    def context(rows: slice) -> Context:
        return Context(labels=["a", "b", "c"], unknown=as_label_matrix(unknown[rows]))

    whole = create(parameters).fit(X, Y, context=context(slice(None)))
    first: Any = create(parameters).fit(X[:30], Y[:30], context=context(slice(30)))
    loaded: Any = create(parameters).set_state(first.get_state())
    loaded.partial_fit(X[30:], Y[30:], context=context(slice(30, None)))
    np.testing.assert_array_equal(loaded.decision_function(X), whole.decision_function(X))
    np.testing.assert_array_equal(loaded.unknown_counts_, unknown.sum(axis=0))


def test_examples_with_unknown_labels_are_not_in_the_learning_curve() -> None:
    X, Y, unknown = example_data(3, n=300)
    Y[:, 2] = 1
    learner = BinaryRelevancePerceptron().fit(X, Y, context=Context(unknown=as_label_matrix(unknown)))
    assert learner._first_pass_means.sums[0] == (~unknown.any(axis=1)).sum()


@given(st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_terms_are_scored_on_the_documents_for_which_the_label_is_known(seed: int) -> None:
    X, Y, unknown = example_data(seed)
    matrices = csr_array(X), as_label_matrix(Y), as_label_matrix(unknown)
    gain, rocchio = information_gain(*matrices), rocchio_scores(*matrices)
    for j in range(Y.shape[1]):
        known = ~unknown[:, j]
        part = csr_array(X[known]), as_label_matrix(Y[known][:, [j]])
        np.testing.assert_array_equal(gain[:, [j]], information_gain(*part))
        np.testing.assert_allclose(rocchio[:, [j]], rocchio_scores(*part), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 2**31))
@settings(max_examples=10, deadline=None)
def test_thresholds_are_tuned_on_the_examples_for_which_the_label_is_known(seed: int) -> None:
    X, Y, unknown = example_data(seed)
    Y[0], unknown[0] = 1, False
    scores, tunable = X[:, :3] - X[:, 3:], np.ones(3, dtype=bool)
    true, missing = as_label_matrix(Y), as_label_matrix(unknown)
    held_out = HeldOut(scores, true, missing, np.arange(len(scores)) % 3, tunable)
    tuned = tuned_thresholds(held_out, default=0.0, fbr=0.1)
    for j in range(3):
        known, label = ~unknown[:, j], [j]
        part = as_label_matrix(Y[known][:, label])
        column = HeldOut(scores[known][:, label], part, None, held_out.folds[known], tunable[label])
        alone = tuned_thresholds(column, default=0.0, fbr=0.1)
        assert tuned[j] == alone[0]


def evaluated(Y: AnyArray, P: AnyArray, scores: Floats, unknown: AnyArray | None, **more: Any) -> Any:
    missing = None if unknown is None else as_label_matrix(unknown)
    labels = [f"l{j}" for j in range(Y.shape[1])]
    return evaluate(as_label_matrix(Y), as_label_matrix(P), scores, labels, unknown=missing, **more)


@given(st.integers(0, 2**31))
@settings(max_examples=15, deadline=None)
def test_measures_of_a_label_count_the_examples_for_which_it_is_known(seed: int) -> None:
    X, Y, unknown = example_data(seed)
    P, scores = (X[:, 3:] > 0).astype(int), X[:, 3:]
    result = evaluated(Y, P, scores, unknown)
    wrong = 0
    for j, row in enumerate(result.labels):
        known = ~unknown[:, j]
        alone = evaluated(Y[known][:, [j]], P[known][:, [j]], scores[known][:, [j]], None).labels[0]
        assert row == replace(alone, label=row.label)
        wrong += row.fp + row.fn
    assert result.measures["hamming_loss"] == wrong / (~unknown).sum()
    assert (
        f"pairs of an example and an unknown label that are not measured: {unknown.sum()}" in result.warnings
    )


@given(st.integers(0, 2**31))
@settings(max_examples=15, deadline=None)
def test_an_example_is_judged_by_its_known_labels(seed: int) -> None:
    X, Y, unknown = example_data(seed, n=12)
    P, scores = (X[:, 3:] > 0).astype(int), X[:, 3:]
    matrices = as_label_matrix(Y), as_label_matrix(P), scores, ["a", "b", "c"]
    values = example_measures(*matrices, unknown=as_label_matrix(unknown))
    measures = evaluated(Y, P, scores, unknown).measures
    for i in range(len(Y)):
        known = ~unknown[i]
        alone = example_measures(
            as_label_matrix(Y[[i]][:, known]),
            as_label_matrix(P[[i]][:, known]),
            scores[[i]][:, known],
            [name for name, is_known in zip("abc", known, strict=True) if is_known],
        )
        for name in alone.keys() - {"hamming_loss"}:
            np.testing.assert_array_equal(values[name][i], alone[name][0])
    for name, value in values.items():
        if not np.isnan(value).all():
            assert np.nanmean(value) == pytest.approx(measures[name])


def test_macro_averages_leave_out_labels_that_are_unknown_for_all_examples() -> None:
    Y, P = np.array([[1, 0], [1, 0]]), np.array([[1, 1], [0, 1]])
    unknown = np.array([[0, 1], [0, 1]])
    measures = evaluated(Y, P, P.astype(float), unknown).measures
    assert measures["f1_macro"] == measures["f1_micro"] == pytest.approx(2 / 3)
    assert measures["precision_macro"] == 1


def test_covering_measures_are_not_computed_with_unknown_labels() -> None:
    X, Y, unknown = example_data(4)
    result = evaluated(Y, Y, X[:, :3], unknown, covering={"kind": "hamming"})
    assert "covering_error" not in result.measures
    assert any("covering_error and covering_loss are not computed" in text for text in result.warnings)


def test_tree_losses_do_not_count_unknown_labels() -> None:
    Y, P, unknown = np.array([[0, 0, 1]]), np.array([[1, 1, 1]]), np.array([[1, 1, 0]])
    tree = LabelTree({"l1": "l0"})
    measures = evaluated(Y, P, P.astype(float), unknown, tree=tree).measures
    assert [measures[name] for name in ("zero_one", "symmetric_difference", "hierarchical")] == [0, 0, 0]


def test_histograms_count_the_examples_for_which_the_label_is_known() -> None:
    scores = np.array([[1.0], [2.0], [3.0]])
    Y, unknown = as_label_matrix([[1], [0], [0]]), as_label_matrix([[0], [1], [0]])
    histogram = score_histograms(Y, scores, ["a"], unknown)[0]
    assert (sum(histogram.with_label), sum(histogram.without_label)) == (1, 1)


def test_ancestors_of_unknown_labels_are_unknown_unless_they_are_relevant() -> None:
    labels, tree = ["a", "a1", "a2"], LabelTree({"a1": "a", "a2": "a"})
    Y = as_label_matrix([[1, 1, 0], [0, 0, 0], [0, 0, 0]])
    unknown = unknown_matrix([("a2",), ("a2",), ("x",)], Y, labels, tree)
    assert unknown is not None
    assert unknown.toarray().tolist() == [[0, 0, 1], [1, 0, 1], [0, 0, 0]]
    assert unknown_matrix([(), (), ("x",)], Y, labels, tree) is None


def pipeline(learner: str, decision: str = "sign", **features: Any) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", **features}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": decision}),
    )


def texts(seed: int = 0, n: int = 60) -> Examples:
    """Texts whose words are labels. The label ``b`` is unknown for some texts with the word b, never "no"."""
    rng = np.random.default_rng(seed)
    words = [[name for name in "abc" if rng.random() < 0.5] for _ in range(n)]
    hidden = rng.random(n) < 0.5
    return Examples(
        "text",
        [" ".join(["text", *(f"word{name}" for name in row)]) for row in words],
        [tuple(n for n in row if n != "b" or not hide) for row, hide in zip(words, hidden, strict=True)],
        unknown=[("b",) if "b" in row and hide else () for row, hide in zip(words, hidden, strict=True)],
    )


@pytest.mark.parametrize("decision", ["sign", "tuned_threshold"])
def test_a_pipeline_does_not_learn_that_an_unknown_label_does_not_apply(decision: str) -> None:
    examples = texts()
    selection = {"kind": "information_gain", "per_label": 3}
    model = pipeline("svm", decision, selection=selection).fit(examples)
    assert [p.labels for p in model.predictions(["text wordb", "text worda wordc"])] == [["b"], ["a", "c"]]
    evaluation = model.evaluate(examples)
    assert evaluation.measures["f1_macro"] == 1
    assert evaluation.measures["accuracy"] == 1
    assert model.summary_.facts["unknown_labels"] == sum(map(len, examples.unknown))


@pytest.mark.parametrize("parameters", SEPARATE, ids=lambda p: p["algorithm"])
def test_a_model_of_examples_with_unknown_labels_can_be_saved(
    parameters: dict[str, Any], tmp_path: Path
) -> None:
    examples = texts()
    model = pipeline(parameters["algorithm"]).fit(examples)
    artifact.save(model, tmp_path / "model.covey")
    artifact.check_saved(tmp_path / "model.covey", model, examples)
    loaded = artifact.load(tmp_path / "model.covey")
    np.testing.assert_array_equal(loaded.scores(examples), model.scores(examples))


def test_a_pipeline_refuses_unknown_labels_before_it_reads_the_documents() -> None:
    with pytest.raises(ParameterError, match="mp_boost trains all labels together") as caught:
        pipeline("mp_boost").fit(texts())
    assert caught.value.pointer == "/learner/algorithm"


def test_unknown_labels_that_no_training_example_has_do_not_matter() -> None:
    examples = replace(texts(), unknown=[("other",)] * 60)
    assert pipeline("mp_boost").fit(examples).labels_ == ["a", "b", "c"]


def test_early_stopping_does_not_measure_unknown_labels() -> None:
    Y, unknown = as_label_matrix([[1], [0], [0]]), as_label_matrix([[0], [1], [0]])
    X = csr_array(np.array([[1.0], [1.0], [0.0]]))
    stump = WeakHypothesis(np.array([0]), np.array([0]), np.array([0.0]), np.array([-1.0]), np.array([1.0]))
    for missing, loss in ((None, 1 / 3), (unknown, 0.0)):
        monitor = EarlyStoppingMonitor(
            ValidationSet(X, Y, missing),
            EarlyStopping(metric="hamming_loss"),
            by_presence=True,
            per_label=True,
        )
        assert monitor.update(stump)[0] == pytest.approx(loss)
