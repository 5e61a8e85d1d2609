"""Measures of label sets, compared with literal loops and with scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from models.arrays import Labels
from models.base.validation import as_label_matrix
from models.measures import contingency as tables
from models.measures.confusion import co_errors, confusion, is_single_label
from models.measures.sets import accuracy, hamming_loss, subset_zero_one

Sets = list[list[int]]


@st.composite
def two_labelings(draw: st.DrawFn) -> tuple[Sets, Sets]:
    n, k = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    rows = st.lists(st.lists(st.integers(0, 1), min_size=k, max_size=k), min_size=n, max_size=n)
    return draw(rows), draw(rows)


def counts(true: Sets, predicted: Sets, label: int) -> tuple[int, int, int, int]:
    tp = fp = fn = tn = 0
    for y, p in zip(true, predicted, strict=True):
        if y[label] and p[label]:
            tp += 1
        elif p[label]:
            fp += 1
        elif y[label]:
            fn += 1
        else:
            tn += 1
    return tp, fp, fn, tn


def f1(tp: int, fp: int, fn: int, *, empty: float) -> float:
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else empty


@given(two_labelings())
@settings(max_examples=50, deadline=None)
def test_measures_of_label_sets_agree_with_their_definitions(labelings: tuple[Sets, Sets]) -> None:
    true, predicted = labelings
    n, k = len(true), len(true[0])
    Y, P = as_label_matrix(true), as_label_matrix(predicted)
    wrong = sum(true[i][j] != predicted[i][j] for i in range(n) for j in range(k))
    unequal = sum(true[i] != predicted[i] for i in range(n))
    assert hamming_loss(Y, P) == pytest.approx(wrong / (n * k), abs=1e-12)
    assert subset_zero_one(Y, P) == pytest.approx(unequal / n, abs=1e-12)
    assert accuracy(Y, P) == pytest.approx(1 - unequal / n, abs=1e-12)


@given(two_labelings())
@settings(max_examples=50, deadline=None)
def test_micro_and_macro_averages_agree_with_their_definitions(labelings: tuple[Sets, Sets]) -> None:
    true, predicted = labelings
    k = len(true[0])
    Y, P = as_label_matrix(true), as_label_matrix(predicted)
    rows = [counts(true, predicted, j) for j in range(k)]
    tp, fp, fn, _ = (sum(column) for column in zip(*rows, strict=True))
    positive = [row for row in rows if any(row[:3])]
    n = len(positive) or math.nan
    expected = {
        "f1_micro": f1(tp, fp, fn, empty=0.0),
        "f1_macro": sum(f1(*row[:3], empty=0.0) for row in positive) / n,
        "f1_macro_one": sum(f1(*row[:3], empty=1.0) for row in rows) / k,
        "f1_macro_zero": sum(f1(*row[:3], empty=0.0) for row in rows) / k,
        "precision_micro": tp / (tp + fp) if tp + fp else 0.0,
        "recall_micro": tp / (tp + fn) if tp + fn else 0.0,
        "precision_macro": sum(r[0] / (r[0] + r[1]) if r[0] + r[1] else 0.0 for r in positive) / n,
        "recall_macro": sum(r[0] / (r[0] + r[2]) if r[0] + r[2] else 0.0 for r in positive) / n,
    }
    table = tables.contingency(Y, P)
    assert [tuple(row) for row in np.stack([table.tp, table.fp, table.fn, table.tn]).T.tolist()] == rows
    assert tables.label_measures(table) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    for name, value in expected.items():
        measure: Callable[[Labels, Labels], float] = getattr(tables, name)
        assert measure(Y, P) == pytest.approx(value, abs=1e-12, nan_ok=True)


@given(two_labelings())
@settings(max_examples=40, deadline=None)
def test_label_set_measures_agree_with_scikit_learn(labelings: tuple[Sets, Sets]) -> None:
    # scikit-learn treats one column as a binary problem.
    true, predicted = (np.column_stack([np.array(sets), np.ones(len(sets), dtype=int)]) for sets in labelings)
    Y, P = as_label_matrix(true), as_label_matrix(predicted)
    assert hamming_loss(Y, P) == pytest.approx(metrics.hamming_loss(true, predicted))
    assert accuracy(Y, P) == pytest.approx(metrics.accuracy_score(true, predicted))
    assert subset_zero_one(Y, P) == pytest.approx(metrics.zero_one_loss(true, predicted))
    theirs = {
        "f1": metrics.f1_score,
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
    }
    ours = tables.label_measures(tables.contingency(Y, P))
    assert ours["f1_macro_zero"] == pytest.approx(
        metrics.f1_score(true, predicted, average="macro", zero_division=0)
    )
    positive = np.flatnonzero((true | predicted).any(axis=0))
    for name, measure in theirs.items():
        assert ours[f"{name}_micro"] == pytest.approx(
            measure(true, predicted, average="micro", zero_division=0)
        )
        assert ours[f"{name}_macro"] == pytest.approx(
            measure(true, predicted, labels=positive, average="macro", zero_division=0)
        )


def test_each_convention_of_macro_f1_is_available() -> None:
    """Those of the papers give .55 and .33 if nine of forty labels have no true and no predicted example."""
    empty, good, bad = 9, 13, 18  # labels without a positive, with F1 = 1, with F1 = 0
    true = np.zeros((2, empty + good + bad), dtype=int)
    predicted = true.copy()
    true[0, empty:] = 1
    predicted[0, empty : empty + good] = 1
    Y, P = as_label_matrix(true), as_label_matrix(predicted)
    assert tables.f1_macro(Y, P) == pytest.approx(good / (good + bad))
    assert tables.f1_macro_one(Y, P) == pytest.approx((empty + good) / 40) == pytest.approx(0.55)
    assert tables.f1_macro_zero(Y, P) == pytest.approx(good / 40) == pytest.approx(0.325)


def test_without_examples_means_are_undefined() -> None:
    nothing = as_label_matrix(np.zeros((0, 3)))
    assert math.isnan(hamming_loss(nothing, nothing))
    assert math.isnan(subset_zero_one(nothing, nothing))
    assert math.isnan(accuracy(nothing, nothing))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
@settings(max_examples=40, deadline=None)
def test_the_confusion_matrix_agrees_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    true, guessed = (np.array(column) for column in zip(*pairs, strict=True))
    Y, P = as_label_matrix(np.eye(4, dtype=int)[true]), as_label_matrix(np.eye(4, dtype=int)[guessed])
    matrix = confusion(Y, guessed)
    assert matrix.tolist() == metrics.confusion_matrix(true, guessed, labels=range(4)).tolist()
    assert (co_errors(Y, P).toarray() == matrix - np.diag(np.diag(matrix))).all()


def test_a_confusion_matrix_needs_one_label_per_example() -> None:
    assert not is_single_label(as_label_matrix([[1, 1], [1, 0]]))
    assert not is_single_label(as_label_matrix([[0, 0], [1, 0]]))
    with pytest.raises(ValueError, match="co_errors"):
        confusion(as_label_matrix([[1, 1]]), np.array([0]))


@given(two_labelings())
@settings(max_examples=40, deadline=None)
def test_co_errors_count_examples_with_both_errors(labelings: tuple[Sets, Sets]) -> None:
    true, predicted = labelings
    k = len(true[0])
    expected = [
        [sum(y[a] > p[a] and y[b] < p[b] for y, p in zip(true, predicted, strict=True)) for b in range(k)]
        for a in range(k)
    ]
    assert co_errors(as_label_matrix(true), as_label_matrix(predicted)).toarray().tolist() == expected
