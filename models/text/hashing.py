"""Counts terms in columns that a hash function chooses, so that no vocabulary is stored.

The column of a term is |h| mod n, where h is the signed 32-bit MurmurHash3 of its UTF-8 bytes with seed 0,
and n is the number of columns; scikit-learn's ``HashingVectorizer`` has the same columns. Terms that share a
column add up. All counts are positive: with random signs, a weight could be negative, which ``naive_bayes``
rejects, and the logarithm of a count would be undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.sparse import csr_array
from sklearn.utils import murmurhash3_32

from models.arrays import Ints, Matrix
from models.mail.fields import DEFAULT_FIELDS, MailFields, Part
from models.text.analyzer import Analyzer
from models.text.counting import TermCounts
from models.text.documents import TextDocument
from models.text.parameters import AnalyzerParameters
from models.text.vocabulary import Vocabulary
from models.text.word_terms import shared_word_terms

MAX_COLUMNS: Final = 2**22
_CACHED_TERMS: Final = 2**15


class HashingParameters(BaseModel):
    """How terms are hashed."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    n_features: Annotated[int, Field(ge=2, le=MAX_COLUMNS)] = 2**18
    """Maximum number of features. With fewer features, more terms share one."""


def column_of(term: str, n_columns: int) -> int:
    """Return the column of a term.

    >>> column_of("invoice", 2**18)
    211708
    """
    return abs(int(murmurhash3_32(term))) % n_columns


def column_name(column: int, n_columns: int) -> str:
    """Return the name of a column. The names of all columns sort like the columns.

    >>> column_name(42, 1000)
    '#042'
    """
    return f"#{column:0{len(str(n_columns - 1))}d}"


def column_of_name(name: str, n_columns: int) -> int:
    """Return the column with a name.

    Raises:
        ValueError: no column has this name.
    """
    number = name.removeprefix("#")
    if not (number.isascii() and number.isdigit() and column_name(int(number), n_columns) == name):
        raise ValueError(f"no column has the name {name!r}")
    column = int(number)
    if column >= n_columns:
        raise ValueError(f"column {column} is not below {n_columns}")
    return column


def count_hashed(
    documents: Sequence[TextDocument],
    parameters: AnalyzerParameters,
    n_columns: int,
    fields: MailFields = DEFAULT_FIELDS,
) -> Matrix:
    """Count the terms of n documents, (n, n_columns), in memory that does not depend on earlier documents."""
    analyzer = Analyzer(parameters, fields, analysis=shared_word_terms)
    counts = analyzer.count(documents)
    terms = analyzer.terms
    columns = np.zeros(len(terms), dtype=np.int32)
    for number in np.unique(counts.indices).tolist():
        columns[number] = column_of(terms[number], n_columns)
    hashed = csr_array(
        (counts.data, columns[counts.indices], counts.indptr), shape=(len(documents), n_columns)
    )
    hashed.sum_duplicates()
    return hashed


class HashedVocabulary(Vocabulary):
    """Counts terms by column. Threads can share it, and never wait for each other.

    Args:
        parameters: how a text is split into terms.
        columns: (r,) the columns that are features, ascending. They have the numbers 0, 1, 2 ….
        n_columns: number of columns of the hash function.
        fields: which fields of a document are read, and which have terms of their own.

    >>> vocabulary = HashedVocabulary(AnalyzerParameters(), np.array([column_of("rose", 64)]), 64)
    >>> vocabulary.count(["a rose is a rose"])[:, [0]].toarray().tolist()
    [[2.0]]
    """

    def __init__(
        self,
        parameters: AnalyzerParameters,
        columns: Ints,
        n_columns: int,
        fields: MailFields = DEFAULT_FIELDS,
    ) -> None:
        super().__init__(parameters, [], fields)
        self.n_terms = len(columns)
        self._n_columns = n_columns
        others = np.delete(np.arange(n_columns), columns)
        self._number_of_column = np.empty(n_columns, dtype=np.int32)
        self._number_of_column[np.concatenate([columns, others])] = np.arange(n_columns)
        self._number_of_term = _ColumnNumbers(self._number_of_column)

    def count(self, documents: Sequence[TextDocument]) -> Matrix:
        """Count the terms of n documents. Each occurrence counts with the weight of its field.

        Returns:
            (n, n_columns) counts. The first columns are the features.
        """
        hashed = count_hashed(documents, self.parameters, self._n_columns, self.fields)
        numbers = self._number_of_column[hashed.indices]
        return csr_array(csr_array((hashed.data, numbers, hashed.indptr), shape=hashed.shape).tocsc().tocsr())

    def analyzed(self, words: Sequence[str], language: str | None, prefix: str) -> list[int | str | None]:
        """Return the number of the feature of each word; its term if it is none; None if it is dropped."""
        results: list[int | str | None] = []
        for term in self._terms(words, language, prefix):
            number = None if term is None else self._number_of_term[term]
            results.append(number if number is not None and number < self.n_terms else term)
        return results

    def features_among(self, features: Sequence[int]) -> Callable[[str], int | None]:
        """Return a function that returns the feature of a term; None if it is none of the given features."""
        wanted, numbers = frozenset(features), self._number_of_term

        def feature_of(term: str) -> int | None:
            number = numbers[term]
            return number if number in wanted else None

        return feature_of

    def _numbered(self, counts: Mapping[str, float]) -> TermCounts:
        numbers = np.array([*map(self._number_of_term.__getitem__, counts)], dtype=np.int64)
        distinct, inverse = np.unique(numbers, return_inverse=True)
        values = np.bincount(
            inverse, weights=np.array([*counts.values()], dtype=np.float64), minlength=len(distinct)
        ).astype(np.float64, copy=False)
        end = int(np.searchsorted(distinct, self.n_terms))
        return TermCounts(
            distinct[:end], values[:end], len(distinct), float(values.sum()), float(values[end:].sum())
        )

    def _count_ngrams(
        self, document: TextDocument, parts: Sequence[Part], language: str | None
    ) -> TermCounts:
        del parts, language
        counts = self.count([document])
        end = int(np.searchsorted(counts.indices, self.n_terms))
        terms, values = counts.indices[:end].astype(np.int64), counts.data[:end]
        unknown = float(counts.data[end:].sum())
        return TermCounts(terms, values, counts.nnz, float(counts.data.sum()), unknown)


class _ColumnNumbers(dict[str, int]):
    """The number of the column of each term. Threads can share it. A full cache begins anew."""

    def __init__(self, number_of_column: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        super().__init__()
        self._number_of_column = number_of_column

    def __missing__(self, term: str) -> int:
        number = int(self._number_of_column[column_of(term, len(self._number_of_column))])
        if len(self) >= _CACHED_TERMS:
            self.clear()
        self[term] = number
        return number
