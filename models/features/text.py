"""Text features: terms counted, weighted and selected, all by the training part alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.sparse import csr_array

from models.arrays import AnyArray, Floats, Labels, Matrix
from models.base import State, TrainingSummary
from models.errors import NotFittedError, UnsuitableDataError
from models.features.columns import first_columns, renumbered, stacked, unit_rows
from models.features.selection import NoSelection, SelectionParameters, document_frequency, select
from models.features.weighting import DocumentLengths, Weights, inverse_document_frequency, weigh
from models.serialization.state import read_array, require
from models.serialization.strings import pack_strings, unpack_strings
from models.text.analyzer import Analyzer, AnalyzerParameters
from models.text.documents import TextDocument, parts_of

_CHARACTERS_AT_ONCE = 2**22
_REMEMBERED = 2**17


class TextFeaturesParameters(BaseModel):
    """Features of text and e-mail: the terms of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Literal["text"]

    weighting: Weights = "tfidf"
    """How a term weighs in a document: its presence (`binary`), its occurrences (`tf`), those times ln(g/df)
    (`tfidf`), or with pivoted length normalisation (`pivoted`)."""

    scaling: Literal["none", "unit"] = "none"
    """`unit` divides each document's weights by their Euclidean length, after selection."""

    analyzer: AnalyzerParameters = AnalyzerParameters()
    """How a text becomes terms."""

    selection: SelectionParameters = NoSelection()
    """Which terms of the training part become features."""


class TextFeatures:
    """Turns documents into sparse vectors of weighted terms.

    Args:
        parameters: see :class:`TextFeaturesParameters`.

    Attributes:
        names_: the r terms that are features, sorted by code point; each occurs in a training document.
        candidates_: (r, k) true where local selection lets a label use a feature; None with other
            selections, and after ``set_state``, as only training asks for it.
        summary_: what there is to say of the vocabulary.

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

    def fit_transform(self, batches: Iterable[Sequence[TextDocument]], Y: Labels) -> Matrix:
        """Learns the features of the training part and returns its vectors.

        Args:
            batches: the g training documents, read once; only their counts are kept.
            Y: (g, k) their relevant labels.

        Returns:
            (g, r) weights. A document without any term is an empty row.

        Raises:
            UnsuitableDataError: no term is left, or there are not as many documents as rows of Y.
        """
        vocabulary, counts = self._count_all(batches)
        if counts.shape[0] != Y.shape[0]:
            raise ValueError(f"{counts.shape[0]} documents, but {Y.shape[0]} label sets")
        if not vocabulary:
            raise UnsuitableDataError(
                "no training document holds a term under this analyzer; "
                "keep more (numbers, stop words, short tokens) or check that the texts are not empty"
            )
        lengths = DocumentLengths.of(counts)
        mean_distinct = float(lengths.distinct.mean())
        idf = inverse_document_frequency(document_frequency(counts).astype(np.float64), counts.shape[0])
        weights = weigh(counts, self.parameters.weighting, idf, lengths, mean_distinct)
        chosen = select(self.parameters.selection, counts, weights, Y)
        if not len(chosen.kept):
            raise UnsuitableDataError(
                "the selection of features kept no term; select by another score, or not at all"
            )

        self.summary_ = TrainingSummary(facts={"terms": len(vocabulary), "features": len(chosen.kept)})
        if empty := int((lengths.distinct == 0).sum()):
            self.summary_.warnings.append(f"{empty} training documents hold no term")
        self.candidates_ = chosen.candidates
        self._become([vocabulary[i] for i in chosen.kept], idf[chosen.kept], mean_distinct)
        renumber = np.full(len(vocabulary), -1, dtype=np.int32)
        renumber[chosen.kept] = np.arange(len(chosen.kept), dtype=np.int32)
        return self._scaled(renumbered(weights, renumber, len(chosen.kept)))

    def transform(self, documents: Sequence[TextDocument]) -> Matrix:
        """The vectors of other documents, (n, r); terms that are not features are ignored."""
        if not hasattr(self, "names_"):
            raise NotFittedError("text features must be fitted, or given their state, before they transform")
        parts: list[Matrix] = []
        for some in _slices(documents):
            found = self._analyzer.count(some)
            counts = first_columns(found, len(self.names_))
            lengths = DocumentLengths.of(found)
            parts.append(weigh(counts, self.parameters.weighting, self._idf, lengths, self._mean_distinct))
        return self._scaled(stacked(parts, len(self.names_)))

    def get_state(self) -> State:
        """The fitted state: terms as UTF-8 and offsets, inverse document frequencies, mean distinct terms."""
        terms, offsets = pack_strings(self.names_)
        return {
            "terms": terms,
            "term_offsets": offsets,
            "idf": self._idf,
            "mean_distinct": np.array([self._mean_distinct]),
        }

    def set_state(self, state: Mapping[str, AnyArray]) -> TextFeatures:
        """Become the fitted features whose ``get_state`` this was."""
        self.candidates_ = None
        self.summary_ = TrainingSummary()
        names = unpack_strings(
            read_array(state, "terms", "uint8", (None,)), read_array(state, "term_offsets", "int64", (None,))
        )
        require(all(a < b for a, b in pairwise(names)), "the terms are not in order")
        mean_distinct = float(read_array(state, "mean_distinct", "float64", (1,))[0])
        require(1e-12 < mean_distinct < 1e12, "the mean number of a document's terms cannot be")
        idf = read_array(state, "idf", "float64", (len(names),))
        require(bool(((idf >= 0) & (idf < 64)).all()), "an inverse document frequency cannot be")
        self._become(names, idf, mean_distinct)
        return self

    def _become(self, names: list[str], idf: Floats, mean_distinct: float) -> None:
        self.names_ = names
        self._idf = idf
        self._mean_distinct = mean_distinct
        self._analyzer = Analyzer(self.parameters.analyzer, terms=names, remember=_REMEMBERED)

    def _count_all(self, batches: Iterable[Sequence[TextDocument]]) -> tuple[list[str], Matrix]:
        """All terms in code point order, and (g, terms) how often each occurs."""
        analyzer = Analyzer(self.parameters.analyzer)
        parts = [analyzer.count(some) for batch in batches for some in _slices(batch)]
        terms = analyzer.terms
        counts = stacked(parts, len(terms))
        occurring = np.flatnonzero(document_frequency(counts)).tolist()
        order = sorted(occurring, key=terms.__getitem__)
        places = np.full(len(terms), -1, dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        return [terms[i] for i in order], renumbered(counts, places, len(order))

    def _scaled(self, weights: Matrix) -> Matrix:
        return unit_rows(weights) if self.parameters.scaling == "unit" else weights


def _slices(documents: Sequence[TextDocument]) -> Iterator[Sequence[TextDocument]]:
    """A few megabytes of text at a time, which bounds the memory for its words."""
    first = size = 0
    for i, document in enumerate(documents):
        size += sum(len(text) for text, _ in parts_of(document))
        if size >= _CHARACTERS_AT_ONCE:
            yield documents[first : i + 1]
            first, size = i + 1, 0
    if first < len(documents):
        yield documents[first:]
