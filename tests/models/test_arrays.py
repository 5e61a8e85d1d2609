"""Sparse matrices that share arrays, and the canonical form that learners work on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sparse_cases import features, frozen, noncanonical

from models.arrays import AnyArray, Floats, Matrix, read_only, with_data
from models.base.validation import as_feature_matrix, as_label_matrix


def arrays(matrix: Matrix) -> tuple[AnyArray, AnyArray, AnyArray]:
    return matrix.data, matrix.indices, matrix.indptr


def unsorted() -> Matrix:
    return csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))


def test_sorting_a_matrix_with_a_read_only_array_raises() -> None:
    matrix = unsorted()
    other: Any = csr_array((matrix.data * 2, read_only(matrix.indices), matrix.indptr), shape=matrix.shape)
    before = matrix.toarray()
    with pytest.raises(ValueError, match=r"(?i)read-only|writ"):
        abs(other)
    np.testing.assert_array_equal(matrix.toarray(), before)


def test_with_data_shares_canonical_indices_read_only() -> None:
    matrix = as_feature_matrix(unsorted())
    doubled = with_data(matrix, matrix.data * 2)
    assert np.shares_memory(doubled.indices, matrix.indices)
    assert not doubled.indices.flags.writeable
    assert not doubled.indptr.flags.writeable
    assert matrix.indices.flags.writeable
    np.testing.assert_array_equal(abs(doubled).toarray(), 2 * matrix.toarray())


@pytest.mark.parametrize("first", [0, 1])
def test_with_data_copies_unsorted_indices(first: int) -> None:
    matrix = unsorted()
    pair = (matrix, with_data(matrix, matrix.data * 2))
    expected = [matrix.toarray() for matrix in pair]
    pair[first].sum_duplicates()
    pair[1 - first].sum_duplicates()
    for matrix, values in zip(pair, expected, strict=True):
        np.testing.assert_array_equal(matrix.toarray(), values)


@given(X=features(5, 4), seed=st.integers(0, 999))
def test_features_become_canonical_and_the_input_stays(X: Floats, seed: int) -> None:
    original = frozen(noncanonical(X, seed))
    matrix = as_feature_matrix(original)
    for array, expected in zip(arrays(matrix), arrays(as_feature_matrix(X)), strict=True):
        np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(original.toarray(), X)


@given(Y=features(5, 4, ("binary",)), seed=st.integers(0, 999))
def test_labels_become_canonical_and_the_input_stays(Y: Floats, seed: int) -> None:
    original = frozen(noncanonical(Y, seed))
    labels = as_label_matrix(original)
    for array, expected in zip(arrays(labels), arrays(as_label_matrix(Y)), strict=True):
        np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(original.toarray(), Y)


def test_a_label_that_is_stored_twice_is_rejected() -> None:
    twice = csr_array((np.ones(2, dtype=np.int8), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    with pytest.raises(ValueError, match="0 and 1"):
        as_label_matrix(twice)
