"""Feature selection, compared with literal implementations of the papers' formulas."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from scipy.sparse import csr_array

from models.arrays import Labels, Matrix
from models.features import selection as module
from models.features.selection import Selection, SelectionParameters, information_gain, rocchio_scores, select

Rows = list[list[int]]


def parameters(**options: Any) -> SelectionParameters:
    parsed: SelectionParameters = TypeAdapter(SelectionParameters).validate_python(options)
    return parsed


def selected(X: Matrix, Y: Labels, **options: Any) -> Selection:
    return select(parameters(**options), X, X, Y)


def literal_information_gain(has_term: list[bool], has_label: list[bool]) -> float:
    g = len(has_term)
    total = 0.0
    for t in (True, False):
        for c in (True, False):
            joint = sum(x == t and y == c for x, y in zip(has_term, has_label, strict=True)) / g
            p_t = sum(x == t for x in has_term) / g
            p_c = sum(y == c for y in has_label) / g
            if joint > 0:
                total += joint * log(joint / (p_t * p_c))
    return total


def literal_rocchio(weights: list[float], has_label: list[bool]) -> float:
    inside = [w for w, y in zip(weights, has_label, strict=True) if y]
    outside = [w for w, y in zip(weights, has_label, strict=True) if not y]
    mean_inside = sum(inside) / len(inside) if inside else 0.0
    mean_outside = sum(outside) / len(outside) if outside else 0.0
    return max(0.0, 16 * mean_inside - 4 * mean_outside)


def literal_best(scores: list[float], count: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda k: (-round(scores[k], 10), k))[:count]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Rows, Rows]:
    g, r, k = draw(st.integers(1, 9)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    X = draw(st.lists(st.lists(st.integers(0, 3), min_size=r, max_size=r), min_size=g, max_size=g))
    Y = draw(st.lists(st.lists(st.integers(0, 1), min_size=k, max_size=k), min_size=g, max_size=g))
    return X, Y


def sparse_problem(problem: tuple[Rows, Rows]) -> tuple[Matrix, Labels]:
    return csr_array(np.array(problem[0], dtype=np.float64)), csr_array(np.array(problem[1], dtype=np.int8))


def columns(rows: Rows) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)]


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(1, 5), st.integers(1, 30))
def test_information_gain_and_its_policies(problem: tuple[Rows, Rows], v: int, block: int) -> None:
    X, Y = sparse_problem(problem)
    terms = [[x > 0 for x in column] for column in columns(problem[0])]
    labels = [[y > 0 for y in column] for column in columns(problem[1])]
    literal = [[literal_information_gain(t, c) for t in terms] for c in labels]
    # Labels without an example select no terms, unless there are no other labels.
    is_any = any(map(any, labels))
    best = [
        literal_best(scores, v) if any(label) or not is_any else []
        for scores, label in zip(literal, labels, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_ENTRIES", block)
        np.testing.assert_allclose(information_gain(X, Y), np.array(literal).T, rtol=1e-9, atol=1e-11)
        pooled = sorted({term for terms_ in best for term in terms_})

        round_robin = selected(X, Y, kind="information_gain", policy="round_robin", per_label=v)
        assert round_robin.kept.tolist() == pooled
        assert round_robin.candidates is None

        local = selected(X, Y, kind="information_gain", policy="local", per_label=v)
        assert local.kept.tolist() == pooled
        assert local.candidates is not None
        allowed = local.candidates.toarray()
        assert allowed.dtype == np.bool_
        for j, own in enumerate(best):
            assert [pooled[i] for i in np.flatnonzero(allowed[:, j])] == sorted(own)

        highest = [max(column) for column in zip(*literal, strict=True)]
        most = selected(X, Y, kind="information_gain", policy="max", count=v)
        assert most.kept.tolist() == sorted(literal_best(highest, v))


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(1, 5))
def test_rocchio(problem: tuple[Rows, Rows], v: int) -> None:
    X, Y = sparse_problem(problem)
    literal = [
        [literal_rocchio([float(w) for w in term], [y > 0 for y in label]) for term in columns(problem[0])]
        for label in columns(problem[1])
    ]
    np.testing.assert_allclose(rocchio_scores(X, Y), np.array(literal).T, rtol=1e-9, atol=1e-12)
    pooled = {k for scores in literal for k in literal_best(scores, v) if scores[k] > 1e-12}
    assert set(selected(X, Y, kind="rocchio", per_label=v).kept.tolist()) == pooled


@settings(max_examples=25, deadline=None)
@given(problems(), st.integers(1, 5))
def test_document_frequency(problem: tuple[Rows, Rows], count: int) -> None:
    X, Y = sparse_problem(problem)
    frequency = [float(sum(x > 0 for x in column)) for column in columns(problem[0])]
    assert selected(X, Y, kind="document_frequency", count=count).kept.tolist() == sorted(
        literal_best(frequency, count)
    )


def test_rounding_errors_do_not_affect_the_selection() -> None:
    """A term and its complement have the same information gain; the one that sorts first is selected."""
    rng = np.random.default_rng(0)
    for g in range(3, 200, 7):
        term = rng.integers(0, 2, g)
        Y = csr_array(rng.integers(0, 2, (g, 1)).astype(np.int8))
        for pair in ((term, 1 - term), (1 - term, term)):
            X = csr_array(np.stack(pair, axis=1).astype(np.float64))
            assert selected(X, Y, kind="information_gain", per_label=1).kept.tolist() == [0]


def test_many_equal_labels_do_not_overflow_small_integers() -> None:
    """Labels are int8, and counts of 300 documents overflow this type."""
    X = csr_array(np.ones((600, 1)) * ([[1]] * 300 + [[0]] * 300))
    Y = csr_array(np.array([[1]] * 300 + [[0]] * 300, dtype=np.int8))
    assert information_gain(X, Y)[0, 0] == pytest.approx(log(2))
    assert rocchio_scores(X, Y)[0, 0] == pytest.approx(16)


@pytest.mark.parametrize(
    ("options", "default"),
    [
        ({"kind": "information_gain"}, {"policy": "round_robin", "per_label": 48, "count": None}),
        ({"kind": "rocchio"}, {"per_label": 100}),
        ({"kind": "document_frequency"}, {"count": 25_000}),
        ({"kind": "none"}, {}),
    ],
)
def test_defaults(options: dict[str, Any], default: dict[str, Any]) -> None:
    filled = parameters(**options)
    assert filled.model_dump() == {**options, **default}
    assert parameters(**filled.model_dump()) == filled


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "chi_squared"},
        {"kind": "information_gain", "policy": "max"},
        {"kind": "information_gain", "policy": "local", "count": 5},
        {"kind": "rocchio", "per_label": 0},
        {"kind": "none", "per_label": 3},
    ],
)
def test_invalid_parameters_are_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parameters(**bad)
