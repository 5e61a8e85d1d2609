"""Text features: counts, weights and selects terms. All statistics come from the training part only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.sparse import csr_array

from models.arrays import AnyArray, Bools, Floats, Ints, Labels, Matrix, Vector
from models.base import State, TrainingSummary
from models.errors import ArtifactError, ParameterError, UnsuitableDataError
from models.features.columns import (
    empty_rows,
    first_columns,
    keep_columns,
    normalize_row,
    normalize_rows,
    stack_rows,
)
from models.features.explained_terms import ExplainedTerms
from models.features.limits import Frequency, terms_within
from models.features.parameterized import ParameterizedFeatures
from models.features.raw_values import RawValues
from models.features.selection import NoSelection, SelectionParameters, document_frequency, select
from models.features.sources import FeatureSource
from models.features.unknown_terms import unknown_if_held_out
from models.features.weighting import (
    DocumentLengths,
    Weighting,
    inverse_document_frequency,
    weigh,
    weigh_one,
)
from models.mail.fields import MailFields, MailFieldsParameters, Part
from models.serialization.state import read_array, require
from models.serialization.strings import pack_strings, unpack_strings
from models.text.analyzer import Analyzer
from models.text.counting import parts_of_words
from models.text.documents import TextDocument, parts_of
from models.text.hashing import (
    HashedVocabulary,
    HashingParameters,
    column_name,
    column_of_name,
    count_hashed,
)
from models.text.occurrences import find_occurrences, words_of_parts
from models.text.parameters import AnalyzerParameters
from models.text.vocabulary import Vocabulary

_BATCH_CHARACTERS = 2**18
"""Approximate number of characters that are analyzed at once, which limits the memory."""


class TextFeaturesParameters(BaseModel):
    """Parameters of the features of text and e-mail, which are the terms of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["text"]

    weighting: Weighting = "tfidf"
    """Weight of a term in a document: 1 (`binary`), the number of its occurrences (`tf`), occurrences times
    ln(g/df) (`tfidf`), or TF-IDF with pivoted length normalization (`pivoted`). Each occurrence counts with
    the weight of its field."""

    scaling: Literal["none", "unit"] = "none"
    """`unit` divides the weights of each document by their Euclidean length, after selection."""

    sublinear_tf: bool = False
    """Replace the number c of occurrences by 1 + ln c. Only for `tf` and `tfidf`; `pivoted` always does."""

    smooth_idf: bool = False
    """Use the idf 1 + ln((1 + g)/(1 + df)) instead of ln(g/df), so that terms of all training documents have
    a weight. Only for `tfidf` and `pivoted`."""

    analyzer: AnalyzerParameters = AnalyzerParameters()
    """How a text is split into terms."""

    min_df: Frequency = 1
    """Drop terms that fewer training documents contain: a number of documents (an integer from 1), or a share
    of them (below 1). Applied before `selection`, as are `max_df` and `max_features`."""

    max_df: Frequency | None = None
    """Drop terms that more training documents contain: a number of documents, or a share of them."""

    max_features: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """Keep only this number of terms: those with the most occurrences in the training part; among equal ones,
    those that sort first."""

    hashing: HashingParameters | None = None
    """Choose the feature of each term by a hash function instead of storing the terms, so that any number of
    distinct terms takes limited memory. Features then have numbers instead of names; explanations state the
    words of the document. By default, the terms of the training part are stored."""

    selection: SelectionParameters = NoSelection()
    """Which terms of the training part become features."""

    fields: MailFieldsParameters = MailFieldsParameters()
    """Which fields of an e-mail are read. Only for data sets of e-mail."""

    @model_validator(mode="after")
    def _check_effects(self) -> Self:
        if self.sublinear_tf and self.weighting not in ("tf", "tfidf"):
            raise ValueError(f"sublinear_tf has no effect with the weighting {self.weighting}; remove it")
        if self.smooth_idf and self.weighting not in ("tfidf", "pivoted"):
            raise ValueError(f"smooth_idf has no effect with the weighting {self.weighting}; remove it")
        same_unit = isinstance(self.min_df, int) is isinstance(self.max_df, int)
        if self.max_df is not None and same_unit and self.min_df > self.max_df:
            raise ValueError("min_df must not be greater than max_df")
        return self


class TextFeatures(ParameterizedFeatures[TextFeaturesParameters]):
    """Converts documents to sparse vectors of weighted terms.

    Args:
        parameters: see :class:`TextFeaturesParameters`; None means the defaults.
        **changes: parameters that differ from them, such as ``weighting="binary"``.

    Attributes:
        names_: the r terms that are features, sorted by code point. Each occurs in a training document. With
            hashing, the numbers of the features.
        candidates_: (r, k) true if local selection allows the label to use the feature; None with another
            selection, and after ``set_state``, because only training needs it.
        summary_: warnings and facts about the vocabulary.
        unknown_terms_: (g,) the share of terms that would be no features, for each training document if it
            was held out; NaN for a document without terms. None after ``set_state``.

    >>> features = TextFeatures(weighting="binary")
    >>> X = features.fit_transform(["red rose", "blue"])
    >>> features.names_, X.toarray().tolist()
    (['blue', 'red', 'rose'], [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    >>> features.transform(["a red, red balloon"]).toarray().tolist()
    [[0.0, 1.0, 0.0]]
    """

    parameters_type = TextFeaturesParameters

    names_: list[str]
    candidates_: csr_array[Any, tuple[int, int]] | None
    summary_: TrainingSummary
    unknown_terms_: Floats | None

    def _configure(self, parameters: TextFeaturesParameters) -> None:
        super()._configure(parameters)
        # A binary weight cannot express that a term is less relevant. As terms of their own, quoted terms get
        # weights from the learner.
        self._fields = MailFields(parameters.fields, binary=parameters.weighting == "binary")
        self._without_parts = parameters.analyzer.model_copy(update={"character_ngrams": None})

    def read(self, batches: Iterable[Sequence[TextDocument]]) -> RawValues:
        """Count all terms of documents, which are read once. Only their counts are kept in memory."""
        if (hashing := self.parameters.hashing) is not None:
            hashed = stack_rows(
                [
                    count_hashed(small, self.parameters.analyzer, hashing.n_features, self._fields)
                    for batch in batches
                    for small in self._batches(batch)
                ],
                hashing.n_features,
            )
            columns = np.flatnonzero(document_frequency(hashed))
            names = [column_name(column, hashing.n_features) for column in columns.tolist()]
            return RawValues(names, keep_columns(hashed, columns))
        analyzer = Analyzer(self.parameters.analyzer, self._fields)
        parts = [analyzer.count(small) for batch in batches for small in self._batches(batch)]
        terms = analyzer.terms
        counts = stack_rows(parts, len(terms))
        occurring = np.flatnonzero(document_frequency(counts)).tolist()
        order = sorted(occurring, key=terms.__getitem__)
        return RawValues([terms[i] for i in order], keep_columns(counts, np.array(order, dtype=np.int64)))

    def fit_raw(self, raw: RawValues, Y: Labels, unknown: Labels | None = None) -> Matrix:
        """Select the features of the training part, and return its vectors.

        Args:
            raw: the counts of the g training documents. Terms without an occurrence are ignored.
            Y: (g, k) their relevant labels.
            unknown: (g, k) their unknown labels; None if there are none.

        Returns:
            (g, r) weights. A document without terms is an empty row.

        Raises:
            UnsuitableDataError: no term is left.
            ValueError: the number of documents differs from the number of rows of Y.
        """
        if raw.n_documents != Y.shape[0]:
            raise ValueError(f"{raw.n_documents} documents, but {Y.shape[0]} label sets")
        occurring = np.flatnonzero(document_frequency(raw.values))
        vocabulary, counts = raw.names, raw.values
        if len(occurring) < len(vocabulary):
            vocabulary, counts = [vocabulary[i] for i in occurring.tolist()], keep_columns(counts, occurring)
        if not vocabulary:
            raise UnsuitableDataError(
                "no training document contains a term with this analyzer; keep numbers, stop words and short"
                " tokens, or check that the texts are not empty"
            )
        n_terms = len(vocabulary)
        lengths = DocumentLengths.of(counts)
        mean_distinct = float(lengths.distinct.mean())
        vocabulary, counts, idf = self._limit(vocabulary, counts)
        weights = self._weigh(counts, idf, lengths, mean_distinct)
        selection = select(self.parameters.selection, counts, weights, Y, unknown)
        if not len(selection.kept):
            raise UnsuitableDataError("the selection of features kept no term; use another selection or none")

        self.summary_ = TrainingSummary(facts={"terms": n_terms, "features": len(selection.kept)})
        if empty := int((lengths.distinct == 0).sum()):
            self.summary_.warnings.append(f"{empty} training documents contain no term")
        self.candidates_ = selection.candidates
        total = lengths.distinct * lengths.mean_count
        self.unknown_terms_ = unknown_if_held_out(counts, total, selection.kept, self.parameters.min_df)
        self._set_fitted([vocabulary[i] for i in selection.kept], idf[selection.kept], mean_distinct)
        return self._scaled(keep_columns(weights, selection.kept))

    def values(self, raw: RawValues) -> Matrix:
        """Return the vectors of documents that ``read`` has counted, (n, r), as ``vectors`` does."""
        counts = raw.in_columns_of(self.names_)
        return self._scaled(
            self._weigh(counts, self._idf, DocumentLengths.of(raw.values), self._mean_distinct)
        )

    def vectors(self, documents: Sequence[TextDocument]) -> Matrix:
        """Return the vectors of other documents, (n, r). Terms that are not features are ignored."""
        parts: list[Matrix] = []
        for batch in self._batches(documents):
            all_counts = self._vocabulary.count(batch)
            counts = first_columns(all_counts, len(self.names_))
            lengths = DocumentLengths.of(all_counts)
            parts.append(self._weigh(counts, self._idf, lengths, self._mean_distinct))
        return self._scaled(stack_rows(parts, len(self.names_)))

    def vector(self, document: TextDocument) -> Vector | None:
        """Return the vector of one document, much faster than ``vectors`` does and with the same values.

        Returns:
            The vector; None if only ``vectors`` can compute it, because the document is long.
        """
        pivoted = self.parameters.weighting == "pivoted"  # only it depends on the terms that are no features
        counts = self._vocabulary.count_one(document, unknown=pivoted)
        if counts is None:
            return None
        terms, weights = weigh_one(
            counts,
            self.parameters.weighting,
            self._idf,
            self._mean_distinct,
            sublinear=self.parameters.sublinear_tf,
        )
        if self.parameters.scaling == "unit":
            weights = normalize_row(weights)
        return Vector(terms, weights, counts.unknown / counts.total if counts.total else None)

    def empty_documents(self, documents: Sequence[TextDocument], X: Matrix | Vector) -> Bools:  # noqa: ARG002
        """Return which of n documents have no known word, (n,).

        Args:
            documents: the documents.
            X: their vectors.
        """
        return self.says_nothing(X)

    def says_nothing(self, X: Matrix | Vector) -> Bools:
        """Return which of n vectors have no known word, (n,): nothing is predicted for their documents.

        Parts of unknown words do not count: any string of letters has some that are known.

        >>> features = TextFeatures(analyzer={"character_ngrams": [2, 3]})
        >>> _ = features.fit(["red rose", "blue"])
        >>> features.says_nothing(features.transform(["a rose", "a nose"])).tolist()
        [False, True]
        """
        if self.parameters.analyzer.character_ngrams is None or self.parameters.hashing is not None:
            return empty_rows(X)
        is_word: Bools = np.ones(len(self.names_), dtype=np.bool_)
        for columns in parts_of_words(self.names_):
            is_word[columns] = False
        if isinstance(X, Vector):
            return np.array([not is_word[X.indices].any()])
        n_words = np.concatenate([[0], np.cumsum(is_word[X.indices])])[X.indptr]
        without: Bools = np.diff(n_words) == 0
        return without

    def parts(self, document: TextDocument) -> Sequence[Part]:
        """Return the texts of a document that are read."""
        return parts_of(document, self._fields)

    def explained_terms(self, document: TextDocument, features: Ints) -> ExplainedTerms:
        """Return the terms that explain scores: some features, but words instead of their parts.

        Args:
            document: the document.
            features: (f,) features, ascending.
        """
        names = [self.names_[feature] for feature in features.tolist()]
        analyzer = self.parameters.analyzer
        if analyzer.character_ngrams is None or self.parameters.hashing is not None:
            return ExplainedTerms.of(features, names, {})
        parts = {name for columns in parts_of_words(names) for name in names[columns]}
        return ExplainedTerms.of(features, names, words_of_parts(document, parts, analyzer, self._fields))

    def sources(self, document: TextDocument, terms: Sequence[str]) -> dict[str, FeatureSource]:
        """Return the words and places of some terms in a document, for those that occur in it.

        >>> features = TextFeatures(TextFeaturesParameters(kind="text"))
        >>> _ = features.fit(["red rose", "blue"])
        >>> features.sources("A Rose is a rose", ["rose"])["rose"].words
        ['Rose', 'rose']
        """
        vocabulary = self._vocabulary
        if isinstance(vocabulary, HashedVocabulary):
            analyzer = self.parameters.analyzer
            numbers = {bisect_left(self.names_, term): term for term in terms}
            feature_of = vocabulary.features_among([*numbers])
        else:
            analyzer = self._without_parts  # words stand for the parts that occur
            numbers = dict(enumerate(terms))
            feature_of = {term: number for number, term in numbers.items()}.get
        found = find_occurrences(document, feature_of, analyzer, self._fields)
        return {
            numbers[number]: FeatureSource(place.words, place.fields, place.occurrences)
            for number, place in found.items()
        }

    def get_state(self) -> State:
        """Return the terms, their inverse document frequencies and the mean number of distinct terms."""
        terms, offsets = pack_strings(self.names_)
        return {
            "terms": terms,
            "term_offsets": offsets,
            "idf": self._idf,
            "mean_distinct": np.array([self._mean_distinct]),
        }

    def set_state(self, state: Mapping[str, AnyArray]) -> TextFeatures:
        """Restore the result of ``get_state``.

        Raises:
            ArtifactError: the state is invalid.
        """
        self.candidates_ = None
        self.unknown_terms_ = None
        self.summary_ = TrainingSummary()
        names = unpack_strings(
            read_array(state, "terms", "uint8", (None,)), read_array(state, "term_offsets", "int64", (None,))
        )
        require(all(a < b for a, b in pairwise(names)), "the terms are unsorted or repeated")
        mean_distinct = float(read_array(state, "mean_distinct", "float64", (1,))[0])
        require(1e-12 < mean_distinct < 1e12, "the mean number of distinct terms is out of range")
        idf = read_array(state, "idf", "float64", (len(names),))
        require(bool(((idf >= 0) & (idf < 64)).all()), "an inverse document frequency is out of range")
        try:
            self._set_fitted(names, idf, mean_distinct)
            _ = self._vocabulary  # which checks the names
        except ValueError as error:
            raise ArtifactError(str(error)) from error
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the vocabulary: its caches belong to one process and its threads."""
        return {name: value for name, value in vars(self).items() if name != "_vocabulary"}

    def _set_fitted(self, names: list[str], idf: Floats, mean_distinct: float) -> None:
        self.names_ = names
        self._idf = idf
        self._mean_distinct = mean_distinct
        self.__dict__.pop("_vocabulary", None)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """Counts the terms of other documents. The features of a fold are never asked for it."""
        if (hashing := self.parameters.hashing) is None:
            return Vocabulary(self.parameters.analyzer, self.names_, self._fields)
        columns = np.array([column_of_name(name, hashing.n_features) for name in self.names_], dtype=np.int64)
        return HashedVocabulary(self.parameters.analyzer, columns, hashing.n_features, self._fields)

    def _check_labels(self, Y: Labels) -> None:
        kind = self.parameters.selection.kind
        if not Y.shape[1] and kind in ("information_gain", "rocchio"):
            raise ParameterError(
                f"the selection {kind} compares terms with labels; pass y, too", "/features/selection"
            )

    def _limit(self, terms: list[str], counts: Matrix) -> tuple[list[str], Matrix, Floats]:
        """Return the terms within the limits of the vocabulary, their counts, and their idf.

        Raises:
            UnsuitableDataError: no term is within the limits.
        """
        parameters = self.parameters
        frequency = document_frequency(counts)
        kept = terms_within(
            counts,
            frequency,
            min_df=parameters.min_df,
            max_df=parameters.max_df,
            max_features=parameters.max_features,
        )
        if not len(kept):
            raise UnsuitableDataError(
                "no term is within min_df and max_df; decrease min_df, increase max_df, or use more documents"
            )
        idf = inverse_document_frequency(
            frequency[kept].astype(np.float64), counts.shape[0], smooth=parameters.smooth_idf
        )
        if len(kept) == len(terms):
            return terms, counts, idf
        return [terms[i] for i in kept.tolist()], keep_columns(counts, kept), idf

    def _weigh(self, counts: Matrix, idf: Floats, lengths: DocumentLengths, mean_distinct: float) -> Matrix:
        parameters = self.parameters
        return weigh(
            counts, parameters.weighting, idf, lengths, mean_distinct, sublinear=parameters.sublinear_tf
        )

    def _scaled(self, weights: Matrix) -> Matrix:
        return normalize_rows(weights) if self.parameters.scaling == "unit" else weights

    def _batches(self, documents: Sequence[TextDocument]) -> Iterator[Sequence[TextDocument]]:
        """Split documents into batches of limited text, which limits the memory for their words."""
        first = size = 0
        for i, document in enumerate(documents):
            size += sum(len(part.text) for part in parts_of(document, self._fields))
            if size >= _BATCH_CHARACTERS:
                yield documents[first : i + 1]
                first, size = i + 1, 0
        if first < len(documents):
            yield documents[first:]
