"""Text features: counts, weights and selects terms. All statistics come from the training part only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Labels, Matrix, Vector
from models.base import State, TrainingSummary
from models.errors import NotFittedError, UnsuitableDataError
from models.features.columns import (
    first_columns,
    move_columns,
    normalize_row,
    normalize_rows,
    stack_rows,
)
from models.features.selection import NoSelection, SelectionParameters, document_frequency, select
from models.features.weighting import (
    DocumentLengths,
    Weighting,
    inverse_document_frequency,
    weigh,
    weigh_one,
)
from models.mail.fields import MailFields, MailFieldsParameters
from models.serialization.state import read_array, require
from models.serialization.strings import pack_strings, unpack_strings
from models.text.analyzer import Analyzer
from models.text.documents import TextDocument, parts_of
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

    analyzer: AnalyzerParameters = AnalyzerParameters()
    """How a text is split into terms."""

    selection: SelectionParameters = NoSelection()
    """Which terms of the training part become features."""

    fields: MailFieldsParameters = MailFieldsParameters()
    """Which fields of an e-mail are read. Only for data sets of e-mail."""


class TextFeatures:
    """Converts documents to sparse vectors of weighted terms.

    Args:
        parameters: see :class:`TextFeaturesParameters`.

    Attributes:
        names_: the r terms that are features, sorted by code point. Each occurs in a training document.
        candidates_: (r, k) true if local selection allows the label to use the feature; None with another
            selection, and after ``set_state``, because only training needs it.
        summary_: warnings and facts about the vocabulary.

    >>> features = TextFeatures(TextFeaturesParameters(kind="text", weighting="binary"))
    >>> X = features.fit_transform([["red rose", "blue"]], csr_array(np.ones((2, 1), dtype=np.int8)))
    >>> features.names_, X.toarray().tolist()
    (['blue', 'red', 'rose'], [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    >>> features.transform(["a red, red balloon"]).toarray().tolist()
    [[0.0, 1.0, 0.0]]
    """

    names_: list[str]
    candidates_: csr_array[Any, tuple[int, int]] | None
    summary_: TrainingSummary

    def __init__(self, parameters: TextFeaturesParameters) -> None:
        self.parameters = parameters
        # A binary weight cannot express that a term is less relevant. As terms of their own, quoted terms get
        # weights from the learner.
        self._fields = MailFields(parameters.fields, binary=parameters.weighting == "binary")

    def fit_transform(
        self, batches: Iterable[Sequence[TextDocument]], Y: Labels, unknown: Labels | None = None
    ) -> Matrix:
        """Select the features of the training part, and return its vectors.

        Args:
            batches: the g training documents. They are read once, and only their counts are kept in memory.
            Y: (g, k) their relevant labels.
            unknown: (g, k) their unknown labels; None if there are none.

        Returns:
            (g, r) weights. A document without terms is an empty row.

        Raises:
            UnsuitableDataError: no term is left.
            ValueError: the number of documents differs from the number of rows of Y.
        """
        vocabulary, counts = self._count_all(batches)
        if counts.shape[0] != Y.shape[0]:
            raise ValueError(f"{counts.shape[0]} documents, but {Y.shape[0]} label sets")
        if not vocabulary:
            raise UnsuitableDataError(
                "no training document contains a term with this analyzer; keep numbers, stop words and short"
                " tokens, or check that the texts are not empty"
            )
        lengths = DocumentLengths.of(counts)
        mean_distinct = float(lengths.distinct.mean())
        idf = inverse_document_frequency(document_frequency(counts).astype(np.float64), counts.shape[0])
        weights = weigh(counts, self.parameters.weighting, idf, lengths, mean_distinct)
        selection = select(self.parameters.selection, counts, weights, Y, unknown)
        if not len(selection.kept):
            raise UnsuitableDataError("the selection of features kept no term; use another selection or none")

        self.summary_ = TrainingSummary(facts={"terms": len(vocabulary), "features": len(selection.kept)})
        if empty := int((lengths.distinct == 0).sum()):
            self.summary_.warnings.append(f"{empty} training documents contain no term")
        self.candidates_ = selection.candidates
        self._set_fitted([vocabulary[i] for i in selection.kept], idf[selection.kept], mean_distinct)
        new_columns = np.full(len(vocabulary), -1, dtype=np.int32)
        new_columns[selection.kept] = np.arange(len(selection.kept), dtype=np.int32)
        return self._scaled(move_columns(weights, new_columns, len(selection.kept)))

    def transform(self, documents: Sequence[TextDocument]) -> Matrix:
        """Return the vectors of other documents, (n, r). Terms that are not features are ignored."""
        if not hasattr(self, "names_"):
            raise NotFittedError("the text features are not fitted; call fit_transform or set_state first")
        parts: list[Matrix] = []
        for batch in self._batches(documents):
            all_counts = self._vocabulary.count(batch)
            counts = first_columns(all_counts, len(self.names_))
            lengths = DocumentLengths.of(all_counts)
            parts.append(weigh(counts, self.parameters.weighting, self._idf, lengths, self._mean_distinct))
        return self._scaled(stack_rows(parts, len(self.names_)))

    def vector(self, document: TextDocument) -> Vector | None:
        """Return the vector of one document, much faster than ``transform`` does and with the same values.

        Returns:
            The vector; None if only ``transform`` can compute it, because the document is long or its fields
            have unusual weights.
        """
        pivoted = self.parameters.weighting == "pivoted"  # only it depends on the terms that are no features
        counts = self._vocabulary.count_one(document, unknown=pivoted)
        if counts is None:
            return None
        terms, weights = weigh_one(counts, self.parameters.weighting, self._idf, self._mean_distinct)
        if self.parameters.scaling == "unit":
            weights = normalize_row(weights)
        return Vector(terms, weights)

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
        self.summary_ = TrainingSummary()
        names = unpack_strings(
            read_array(state, "terms", "uint8", (None,)), read_array(state, "term_offsets", "int64", (None,))
        )
        require(all(a < b for a, b in pairwise(names)), "the terms are unsorted or repeated")
        mean_distinct = float(read_array(state, "mean_distinct", "float64", (1,))[0])
        require(1e-12 < mean_distinct < 1e12, "the mean number of distinct terms is out of range")
        idf = read_array(state, "idf", "float64", (len(names),))
        require(bool(((idf >= 0) & (idf < 64)).all()), "an inverse document frequency is out of range")
        self._set_fitted(names, idf, mean_distinct)
        return self

    def _set_fitted(self, names: list[str], idf: Floats, mean_distinct: float) -> None:
        self.names_ = names
        self._idf = idf
        self._mean_distinct = mean_distinct
        self._vocabulary = Vocabulary(self.parameters.analyzer, names, self._fields)

    def _count_all(self, batches: Iterable[Sequence[TextDocument]]) -> tuple[list[str], Matrix]:
        """Return all terms in code point order, and their (g, terms) counts."""
        analyzer = Analyzer(self.parameters.analyzer, self._fields)
        parts = [analyzer.count(small) for batch in batches for small in self._batches(batch)]
        terms = analyzer.terms
        counts = stack_rows(parts, len(terms))
        occurring = np.flatnonzero(document_frequency(counts)).tolist()
        order = sorted(occurring, key=terms.__getitem__)
        new_columns = np.full(len(terms), -1, dtype=np.int32)
        new_columns[order] = np.arange(len(order), dtype=np.int32)
        return [terms[i] for i in order], move_columns(counts, new_columns, len(order))

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
