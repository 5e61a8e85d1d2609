"""Evaluations: which measures they include, and the rows of the labels."""

from __future__ import annotations

import numpy as np
import pytest

from models.base.validation import as_label_matrix
from models.labels import LabelTree
from models.measures.evaluation import LabelRow, evaluate

PLAIN = {
    "hamming_loss", "subset_zero_one", "accuracy", "f1_micro", "f1_macro", "f1_macro_one", "f1_macro_zero",
    "precision_micro", "precision_macro", "recall_micro", "recall_macro", "one_error", "coverage",
    "average_precision", "is_error", "error_set_size", "margin", "n_examples", "n_unlabelled",
}  # fmt: skip


def test_an_evaluation_has_all_measures() -> None:
    Y, P = as_label_matrix([[1, 0], [0, 0]]), as_label_matrix([[1, 1], [0, 0]])
    result = evaluate(Y, P, np.array([[2.0, 1.0], [-1.0, -1.0]]), ["a", "b"])
    assert set(result.measures) == PLAIN
    assert result.measures["hamming_loss"] == 0.25
    assert (result.measures["n_examples"], result.measures["n_unlabelled"]) == (2, 1)
    assert result.labels == [
        LabelRow("a", tp=1, fp=0, fn=0, tn=1, precision=1.0, recall=1.0, f1=1.0),
        LabelRow("b", tp=0, fp=1, fn=0, tn=1, precision=0.0, recall=0.0, f1=0.0),
    ]
    assert result.confusion is None


def test_a_label_without_true_and_predicted_examples_has_no_part_in_macro_averages() -> None:
    Y, P = as_label_matrix([[1, 0, 0], [1, 0, 0]]), as_label_matrix([[1, 0, 0], [0, 0, 1]])
    result = evaluate(Y, P, np.zeros((2, 3)), ["a", "b", "c"])
    assert result.labels[1] == LabelRow("b", tp=0, fp=0, fn=0, tn=2, precision=0.0, recall=0.0, f1=0.0)
    # The label c is predicted, so it counts.
    for name in ("precision", "recall", "f1"):
        values = [getattr(row, name) for row in (result.labels[0], result.labels[2])]
        assert result.measures[f"{name}_macro"] == pytest.approx(sum(values) / 2)


def test_undefined_measures_are_absent() -> None:
    nothing = as_label_matrix(np.zeros((2, 2)))
    result = evaluate(nothing, nothing, np.zeros((2, 2)), ["a", "b"])
    assert "one_error" not in result.measures
    assert result.measures["n_unlabelled"] == 2
    assert not result.measures.keys() & {"f1_macro", "precision_macro", "recall_macro"}


def test_without_examples_only_counts_and_label_averages_are_defined() -> None:
    nothing = as_label_matrix(np.zeros((0, 2)))
    result = evaluate(nothing, nothing, np.zeros((0, 2)), ["a", "b"], tree=LabelTree({"b": "a"}))
    assert result.measures["n_examples"] == 0
    assert all(np.isfinite(value) for value in result.measures.values())


def test_single_label_data_has_a_confusion_matrix_of_the_top_labels() -> None:
    Y = as_label_matrix([[1, 0], [0, 1], [0, 1]])
    result = evaluate(Y, Y, np.array([[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]]), ["a", "b"])
    assert result.confusion is not None
    assert result.confusion.tolist() == [[1, 0], [1, 1]]


def test_a_tree_adds_tree_losses() -> None:
    Y, P = as_label_matrix([[1, 1, 1]]), as_label_matrix([[1, 0, 0]])
    result = evaluate(Y, P, np.zeros((1, 3)), ["a", "b", "c"], tree=LabelTree({"b": "a", "c": "b"}))
    assert set(result.measures) - PLAIN == {
        "zero_one", "symmetric_difference",
        "hierarchical", "hierarchical_sibling", "hierarchical_subtree",
        "simplified_hierarchical", "simplified_hierarchical_sibling", "simplified_hierarchical_subtree",
    }  # fmt: skip
    assert result.measures["symmetric_difference"] == 2
    assert result.measures["hierarchical"] == 1
    assert result.measures["hierarchical_subtree"] == pytest.approx(2 / 3)


def test_a_covering_adds_covering_error_and_loss() -> None:
    Y, P = as_label_matrix([[1, 1], [0, 0]]), as_label_matrix([[1, 0], [0, 0]])
    scores = np.array([[1.0, -1.0], [-1.0, -1.0]])
    measures = evaluate(Y, P, scores, ["a", "b"], covering={"kind": "zero_one"}).measures
    assert set(measures) - PLAIN == {"covering_error", "covering_loss"}
    assert measures["covering_error"] == 0.5
    losses = np.log(1 + np.exp(-1) + np.exp(1)), np.log(1 + 2 * np.exp(-1))
    assert measures["covering_loss"] == pytest.approx(np.mean(losses))
