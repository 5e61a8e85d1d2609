"""Numeric features, compared with an implementation that computes one cell at a time."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.arrays import Floats, Labels
from models.data.examples import FeatureRows
from models.errors import NotFittedError, UnsuitableDataError
from models.features import NumericFeatures, NumericFeaturesParameters
from models.features import numeric as module

Cells = list[dict[str, float]]


def features(**options: Any) -> NumericFeatures:
    return NumericFeatures(NumericFeaturesParameters.model_validate({"kind": "numeric", **options}))


def labels(n: int) -> Labels:
    return csr_array(np.zeros((n, 1), dtype=np.int8))


def rows(cells: Cells, names: list[str]) -> FeatureRows:
    dense = np.array([[row.get(name, 0.0) for name in names] for row in cells]).reshape(
        len(cells), len(names)
    )
    return FeatureRows(names, csr_array(dense))


def literal(training: Cells, names: list[str], others: Cells, scaling: str, interactions: int) -> Cells:
    """Return the nonzero values of some rows by name, without products that are always 0 in training."""

    def scaled(row: dict[str, float]) -> dict[str, float]:
        result = {}
        for name in names:
            values = [r.get(name, 0.0) for r in training]
            by = 1.0
            if scaling == "max_abs":
                by = max(map(abs, values))
            elif scaling == "standard":
                mean = sum(values) / len(values)
                by = sqrt(sum((v - mean) ** 2 for v in values) / len(values))
            elif scaling == "unit":
                by = sqrt(sum(row.get(n, 0.0) ** 2 for n in names))
            result[name] = row.get(name, 0.0) / (by or 1.0)
        return result

    def multiplied(row: dict[str, float]) -> dict[str, float]:
        result = dict(row)
        if interactions == 2:
            for i, a in enumerate(names):
                for b in names[i:]:
                    result[f"{a}^2" if a == b else f"{a}*{b}"] = row[a] * row[b]
        return result

    known = set(names) | {
        name for row in training for name, value in multiplied(scaled(row)).items() if value
    }
    return [
        {name: value for name, value in multiplied(scaled(row)).items() if value and name in known}
        for row in others
    ]


names = list("dbca")
values = st.sampled_from([0.0, 0.0, 1.0, -2.0, 0.5, 3.0])
cells = st.lists(st.dictionaries(st.sampled_from(names), values), min_size=1, max_size=6)


@pytest.mark.parametrize("scaling", ["none", "max_abs", "standard", "unit"])
@pytest.mark.parametrize("interactions", [1, 2])
@settings(max_examples=25, deadline=None)
@given(cells, cells, st.integers(1, 20))
def test_values_agree_with_the_literal_implementation(
    scaling: str, interactions: int, training: Cells, others: Cells, batch_size: int
) -> None:
    fitted = features(scaling=scaling, interactions=interactions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_PRODUCTS", batch_size)
        X = fitted.fit_transform(rows(training, names), labels(len(training)))
        assert fitted.names_ == sorted(fitted.names_)
        assert X.has_sorted_indices
        other = fitted.transform(
            rows([{**row, "unknown": 7.0} for row in others], ["unknown", *sorted(names)])
        )
    for matrix, part in ((X, training), (other, others)):
        expected = literal(training, sorted(names), part, scaling, interactions)
        dense: Floats = matrix.toarray()
        assert (matrix.data != 0).all()
        for row, expected_values in zip(dense, expected, strict=True):
            actual = {name: value for name, value in zip(fitted.names_, row, strict=True) if value}
            assert actual == pytest.approx(expected_values, rel=1e-9, abs=1e-15)


def test_defaults_are_those_of_the_api_contract() -> None:
    assert NumericFeaturesParameters(kind="numeric").model_dump() == {
        "kind": "numeric",
        "scaling": "none",
        "interactions": 1,
    }


def test_dense_rows_have_all_products() -> None:
    wide = csr_array(np.random.default_rng(0).random((20, 103)) + 0.1)
    fitted = features(interactions=2)
    X = fitted.fit_transform(FeatureRows([f"Att{i}" for i in range(103)], wide), labels(20))
    assert X.shape == (20, 103 + 103 * 104 // 2)


def test_batches_may_name_different_columns() -> None:
    fitted = features()
    X = fitted.fit_raw(
        fitted.read([rows([{"b": 1}], ["b"]), rows([{"a": 2, "b": 3}], ["a", "b"])]), labels(2)
    )
    assert fitted.names_ == ["a", "b"]
    assert X.toarray().tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("scaling", ["none", "max_abs", "standard", "unit"])
@pytest.mark.parametrize("interactions", [1, 2])
def test_the_state_can_be_saved_and_restored(scaling: str, interactions: int) -> None:
    rng = np.random.default_rng(0)
    training = FeatureRows(["é", "a*", "x"], csr_array(rng.normal(size=(9, 3)) * (rng.random((9, 3)) < 0.7)))
    fitted = features(scaling=scaling, interactions=interactions)
    X = fitted.fit_transform(training, labels(9))
    state = fitted.get_state()
    for array in state.values():
        assert array.dtype != np.dtype(object)
        array.flags.writeable = False
    other = features(scaling=scaling, interactions=interactions).set_state(state)
    assert other.names_ == fitted.names_
    np.testing.assert_array_equal(other.transform(training).toarray(), X.toarray())


def test_constant_features_are_not_scaled_and_features_are_not_centered() -> None:
    X = features(scaling="standard").fit_transform(rows([{"a": 0.1}] * 7, ["a"]), labels(7))
    assert X.toarray().tolist() == [[0.1]] * 7


def test_extreme_values_neither_overflow_nor_underflow() -> None:
    training = rows([{"a": 1e200, "b": 1e-200}, {"a": -1e200}], ["a", "b"])
    for scaling in ("max_abs", "standard", "unit"):
        X = features(scaling=scaling).fit_transform(training, labels(2))
        assert np.isfinite(X.data).all()
        assert np.abs(X.toarray()[:, 0]).tolist() == pytest.approx([1, 1])
    with pytest.raises(UnsuitableDataError, match="too large"):
        features(interactions=2).fit_transform(training, labels(2))


def test_duplicate_names_are_rejected() -> None:
    with pytest.raises(UnsuitableDataError, match=r"'a\*b'"):
        features(interactions=2).fit_transform(
            rows([{"a": 1, "b": 1, "a*b": 1}], ["a", "b", "a*b"]), labels(1)
        )


def test_a_training_part_without_features_is_rejected() -> None:
    with pytest.raises(UnsuitableDataError, match="no feature"):
        features().fit_raw(features().read([]), labels(0))


def test_too_many_products_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PRODUCTS", 5)
    with pytest.raises(UnsuitableDataError, match="6 products"):
        features(interactions=2).fit_transform(rows([{"a": 1, "b": 1, "c": 1}], ["a", "b", "c"]), labels(1))


def test_unfitted_features_raise_an_error() -> None:
    with pytest.raises(NotFittedError):
        features().transform(rows([{"a": 1}], ["a"]))


def test_sparse_data_stays_sparse() -> None:
    """A dense matrix of 100,000 rows and 1,000,000 features needs 800 GB, and its products far more."""
    wide = csr_array(
        (np.ones(200_000), (np.repeat(np.arange(100_000), 2), np.arange(200_000) * 5 % 1_000_000)),
        shape=(100_000, 1_000_000),
    )
    named = FeatureRows([str(i) for i in range(1_000_000)], wide)
    fitted = features(scaling="standard", interactions=2)
    X = fitted.fit_transform(named, labels(100_000))
    assert X.nnz == 5 * 100_000


def test_stored_zeros_are_ignored() -> None:
    stored = csr_array((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    fitted = features(interactions=2)
    X = fitted.fit_transform(FeatureRows(["a", "b"], stored), labels(1))
    assert fitted.names_ == ["a", "b", "b^2"]
    assert X.data.tolist() == [2.0, 4.0]
