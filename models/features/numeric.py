"""Numeric features: named columns, optionally scaled, and optionally products of two columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, Vector, with_data
from models.base import State, TrainingSummary
from models.data.examples import FeatureRows
from models.errors import UnsuitableDataError
from models.features.columns import empty_rows, move_columns, normalize_row, normalize_rows, stack_rows
from models.features.explained_terms import ExplainedTerms
from models.features.parameterized import ParameterizedFeatures
from models.features.raw_values import RawValues
from models.features.sources import FeatureSource
from models.serialization.state import read_array, require, require_index_range
from models.serialization.strings import pack_strings, unpack_strings

MAX_PRODUCTS = 2 * 10**8
"""Maximum number of products of two features in all examples together, which limits the memory."""

MAX_NAMES_BYTES = 4 * 2**30
"""Maximum memory of the names of products."""

_NAME_BYTES = 50  # for each of the two names

_FIT_BATCH_PRODUCTS = 2**21
_BATCH_PRODUCTS = 2**18

Scaling: TypeAlias = Literal["none", "max_abs", "standard", "unit"]


class NumericFeaturesParameters(BaseModel):
    """Parameters of numeric features."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["numeric"]

    scaling: Scaling = "none"
    """`max_abs` divides each feature by its largest absolute value in the training part. `standard` divides
    it by its standard deviation in the training part; it does not center, because that would make sparse data
    dense. `unit` divides each example by its Euclidean length."""

    interactions: Literal[1, 2] = 1
    """2 adds the products of two (scaled) features, including squares, except those that are 0 in the whole
    training part."""


class NumericFeatures(ParameterizedFeatures[NumericFeaturesParameters]):
    """Matches columns by name, scales them, and adds products of two columns.

    Args:
        parameters: see :class:`NumericFeaturesParameters`; None means the defaults.
        **changes: parameters that differ from them, such as ``scaling="standard"``.

    Attributes:
        names_: the r feature names, sorted by code point. A product is named ``a*b``, a square ``a^2``.
        candidates_: always None, because numeric features have no selection.
        summary_: facts about the features.
        unknown_terms_: always None, because numeric features are no terms.

    >>> features = NumericFeatures(interactions=2)
    >>> rows = FeatureRows(["b", "a"], csr_array([[2.0, 3.0]]))
    >>> X = features.fit_transform(rows)
    >>> features.names_, X.toarray().tolist()
    (['a', 'a*b', 'a^2', 'b', 'b^2'], [[3.0, 6.0, 9.0, 2.0, 4.0]])
    """

    parameters_type = NumericFeaturesParameters

    names_: list[str]
    candidates_: None
    summary_: TrainingSummary
    unknown_terms_: None = None

    def read(self, batches: Iterable[FeatureRows]) -> RawValues:
        """Combine rows, which are read once. A feature that a batch does not name is 0 there."""
        return _combine(batches)

    def fit_raw(
        self,
        raw: RawValues,
        Y: Labels,
        unknown: Labels | None = None,  # noqa: ARG002 - numeric features do not depend on labels
    ) -> Matrix:
        """Determine names and scales from the training part, and return its vectors.

        Args:
            raw: the values of the g training rows.
            Y: (g, k) their relevant labels.
            unknown: (g, k) their unknown labels; None if there are none.

        Returns:
            (g, r) values.

        Raises:
            UnsuitableDataError: there is no feature, a feature has the name of a product, or a product is too
                large.
            ValueError: the number of rows differs from the number of rows of Y.
        """
        names, X = raw.names, raw.values
        if X.shape[0] != Y.shape[0]:
            raise ValueError(f"{X.shape[0]} rows, but {Y.shape[0]} label sets")
        if not names:
            raise UnsuitableDataError("the training part has no feature")
        scale = _scales(X, self.parameters.scaling)
        products = np.empty(0, dtype=np.int64)
        if self.parameters.interactions == 2:
            for block in _product_blocks(self._scaled(X, scale), _FIT_BATCH_PRODUCTS):
                products = np.union1d(products, block.keys[block.values != 0])
        self._set_fitted(names, scale, products)
        self.candidates_ = None
        self.summary_ = TrainingSummary(facts={"features": len(self.names_)})
        return self._values(X)

    def values(self, raw: RawValues) -> Matrix:
        """Return the vectors of rows that ``read`` has combined, (n, r), as ``vectors`` does."""
        return self._values(raw.in_columns_of(self._base))

    def vectors(self, rows: FeatureRows) -> Matrix:
        """Return the vectors of other rows, (n, r). Features that training did not see are ignored."""
        index = self._index
        new_columns = np.array([index.get(name, -1) for name in rows.names], dtype=np.int32)
        return self._values(move_columns(rows.matrix, new_columns, len(self._base)))

    def vector(self, row: FeatureRows) -> Vector | None:
        """Return the vector of one row, much faster than ``vectors`` does and with the same values.

        Returns:
            The vector; None if only ``vectors`` can compute it: if there are products, or if the row has
            values that are not finite or several values of a feature.
        """
        if len(self._products):
            return None
        index, names, matrix = self._index, row.names, row.matrix
        known = [
            (index[names[column]], value)
            for column, value in zip(matrix.indices.tolist(), matrix.data.tolist(), strict=True)
            if value and names[column] in index
        ]
        known.sort()
        features = np.array([feature for feature, _ in known], dtype=np.int64)
        values = np.array([value for _, value in known], dtype=np.float64)
        if not np.isfinite(values).all() or (features[1:] == features[:-1]).any():
            return None
        if self.parameters.scaling == "unit":
            values = normalize_row(values)
        else:
            with np.errstate(over="ignore"):
                values = values / self._scale[features]
        _check_finite(values)
        if not values.all():  # a quotient can be too small for a float
            features, values = features[values != 0], values[values != 0]
        return Vector(features, values)

    def says_nothing(self, X: Matrix) -> Bools:
        """Return that none of n vectors says nothing, (n,): a row of zeros is a point like any other."""
        return np.zeros(X.shape[0], dtype=np.bool_)

    def empty_documents(self, rows: FeatureRows, X: Matrix | Vector) -> Bools:
        """Return which of n rows have values, but none that training saw, (n,).

        A row of zeros has no values, and is a point like any other.

        Args:
            rows: the rows.
            X: their vectors.
        """
        empty = empty_rows(X)
        if empty.any():
            matrix, index = rows.matrix, self._index
            known = np.array([name in index for name in rows.names], dtype=np.bool_)[matrix.indices]
            row_of = np.repeat(np.arange(len(empty)), np.diff(matrix.indptr))
            has_known, has_unknown = np.zeros((2, len(empty)), dtype=np.bool_)
            has_known[row_of[known & (matrix.data != 0)]] = True
            has_unknown[row_of[~known & (matrix.data != 0)]] = True
            empty = has_unknown & ~has_known
        return empty

    @property
    def base_names_(self) -> list[str]:
        """The names of the columns that training saw, sorted by code point, without products."""
        return self._base

    def unknown_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of features that training did not see, in their order."""
        return [name for name in names if name not in self._index]

    def n_products(self, rows: FeatureRows) -> int:
        """Return how many products ``vectors`` computes for rows; 0 without interactions."""
        if self.parameters.interactions == 1:
            return 0
        known = self._index
        columns = np.array([name in known for name in rows.names], dtype=np.bool_)
        kept = columns[rows.matrix.indices]
        ends = np.concatenate([[0], np.cumsum(kept)])[rows.matrix.indptr]
        sizes = np.diff(ends).astype(np.int64)
        return int((sizes * (sizes + 1) // 2).sum())

    def explained_terms(self, document: None, features: Ints) -> ExplainedTerms:  # noqa: ARG002
        """Return the features themselves; no document is needed."""
        return ExplainedTerms.of(features, [self.names_[feature] for feature in features.tolist()], {})

    def sources(self, document: None, terms: Sequence[str]) -> dict[str, FeatureSource]:  # noqa: ARG002
        """Return the factors of those of some features that are products; no document is needed."""
        n = len(self._base)
        sources: dict[str, FeatureSource] = {}
        for name in terms:
            product = int(self._order[bisect_left(self.names_, name)]) - n
            if product >= 0:
                one, other = divmod(int(self._products[product]), n)
                sources[name] = FeatureSource(factors=(self._base[one], self._base[other]))
        return sources

    def get_state(self) -> State:
        """Return the names, the divisors, and the products i · r + j of features i ≤ j."""
        names, offsets = pack_strings(self._base)
        return {"names": names, "name_offsets": offsets, "scale": self._scale, "products": self._products}

    def set_state(self, state: Mapping[str, AnyArray]) -> NumericFeatures:
        """Restore the result of ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        self.candidates_ = None
        self.summary_ = TrainingSummary()
        names = unpack_strings(
            read_array(state, "names", "uint8", (None,)), read_array(state, "name_offsets", "int64", (None,))
        )
        require(all(a < b for a, b in pairwise(names)), "the names are unsorted or repeated")
        scale = read_array(state, "scale", "float64", (len(names),))
        require(bool((scale > 0).all()), "a scale is not positive")
        products = read_array(state, "products", "int64", (None,))
        require_index_range(products, len(names) ** 2, "products")
        require(bool((np.diff(products) > 0).all()), "the products are unsorted or repeated")
        one, other = np.divmod(products, max(1, len(names)))
        require(bool((one <= other).all()), "the features of a product are in the wrong order")
        self._set_fitted(names, scale, products)
        return self

    def _set_fitted(self, base: list[str], scale: Floats, products: Ints) -> None:
        if len(products):
            lengths = np.array([len(name) for name in base])
            size = int((lengths[np.stack(np.divmod(products, len(base)))] + _NAME_BYTES).sum())
            if size > MAX_NAMES_BYTES:
                raise UnsuitableDataError(
                    f"the names of {len(products):,} products of two features would take {size:,} bytes; the "
                    f"limit is {MAX_NAMES_BYTES:,}; use interactions 1"
                )
        names = [*base, *_product_names(base, products)]
        order = sorted(range(len(names)), key=names.__getitem__)
        self.names_ = [names[i] for i in order]
        for name, following in pairwise(self.names_):
            if name == following:
                raise UnsuitableDataError(f"two features would have the name {name!r}; rename one of them")
        self._columns = np.empty(len(names), dtype=np.int64)
        self._columns[order] = np.arange(len(names))
        self._order = np.array(order, dtype=np.int64)
        self._base, self._scale, self._products = base, scale, products
        self._index = {name: i for i, name in enumerate(base)}

    def _scaled(self, X: Matrix, scale: Floats) -> Matrix:
        if self.parameters.scaling == "unit":
            return normalize_rows(X)
        with np.errstate(over="ignore"):
            return with_data(X, X.data / scale[X.indices])

    def _values(self, X: Matrix) -> Matrix:
        """Scale rows of base features and add the products."""
        scaled = self._scaled(X, self._scale)
        if len(self._products):
            scaled = self._with_products(scaled)
        _check_finite(scaled.data)
        return scaled

    def _with_products(self, X: Matrix) -> Matrix:
        rows = [np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))]
        columns = [self._columns[X.indices]]
        values = [X.data]
        for block in _product_blocks(X, _BATCH_PRODUCTS):
            positions = np.minimum(np.searchsorted(self._products, block.keys), len(self._products) - 1)
            known = (self._products[positions] == block.keys) & (block.values != 0)
            rows.append(block.rows[known])
            columns.append(self._columns[len(self._base) + positions[known]])
            values.append(block.values[known])
        entries = (np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32))
        matrix = csr_array((np.concatenate(values), entries), shape=(X.shape[0], len(self.names_)))
        matrix.sort_indices()
        return matrix


def _check_finite(values: Floats) -> None:
    if not np.isfinite(values).all():
        raise UnsuitableDataError("features or their products are too large; use the scaling max_abs")


@dataclass(frozen=True)
class _Products:
    """Some products of two features.

    Attributes:
        rows: the row of each product.
        keys: i · r + j for each product of the features i ≤ j of r.
        values: the value of each product; can be 0 or infinite.
    """

    rows: Ints
    keys: Ints
    values: Floats


def _product_blocks(X: Matrix, batch: int) -> Iterator[_Products]:
    """Compute the products in blocks, also within a row, which limits the memory."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    partners = X.indptr[1:][rows].astype(np.int64) - np.arange(X.nnz)
    total = np.concatenate([[0], np.cumsum(partners)])
    if total[-1] > MAX_PRODUCTS:
        raise UnsuitableDataError(
            f"these examples have {total[-1]} products of two features, but the limit is {MAX_PRODUCTS}; use"
            " interactions 1"
        )
    columns = X.indices.astype(np.int64)
    first = 0
    while first < X.nnz:
        last = max(first + 1, int(np.searchsorted(total, total[first] + batch, side="right")) - 1)
        one = np.repeat(np.arange(first, last), partners[first:last])
        other = one + np.arange(len(one)) - np.repeat(total[first:last] - total[first], partners[first:last])
        with np.errstate(over="ignore"):
            values = X.data[one] * X.data[other]
        yield _Products(rows[one], columns[one] * X.shape[1] + columns[other], values)
        first = last


def _product_names(base: list[str], products: Ints) -> Iterator[str]:
    for i, j in zip(*(half.tolist() for half in np.divmod(products, max(1, len(base)))), strict=True):
        yield f"{base[i]}^2" if i == j else f"{base[i]}*{base[j]}"


def _combine(batches: Iterable[FeatureRows]) -> RawValues:
    """Return the rows of all batches in one matrix, with the names of all."""
    numbers: dict[str, int] = {}
    parts: list[Matrix] = []
    for batch in batches:
        columns = np.array([numbers.setdefault(name, len(numbers)) for name in batch.names], dtype=np.int32)
        parts.append(move_columns(batch.matrix, columns, len(numbers)))
    names = sorted(numbers)
    order = np.empty(len(names), dtype=np.int32)
    order[[numbers[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return RawValues(names, move_columns(stack_rows(parts, len(names)), order, len(names)))


def _scales(X: Matrix, scaling: Scaling) -> Floats:
    """Return (r,) the divisor of each feature; 1 for a constant feature."""
    r = X.shape[1]
    ones = np.ones(r)
    if scaling in ("none", "unit"):
        return ones
    largest = np.zeros(r)
    np.maximum.at(largest, X.indices, np.abs(X.data))
    largest[largest == 0] = 1.0
    if scaling == "max_abs":
        return largest
    g = X.shape[0]
    values = X.data / largest[X.indices]  # prevents overflow and underflow of the squares
    mean = np.bincount(X.indices, weights=values, minlength=r) / g
    squares = np.bincount(X.indices, weights=(values - mean[X.indices]) ** 2, minlength=r)
    zeros = g - np.bincount(X.indices, minlength=r)
    deviation: Floats = largest * np.sqrt((squares + zeros * mean**2) / g)
    return np.where(deviation > 0, deviation, ones)
