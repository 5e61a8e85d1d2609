"""From documents to counted terms.

The steps, each optional: Unicode normalisation and lower case (see :mod:`models.text.tokens`), dropping of
numbers and of short words, stop words, stemming, then n-grams of what is left. Analysing a word costs much
more than meeting it, so each distinct word is analysed once and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.sparse import coo_array, csr_array

from models.arrays import Floats, Ints, Matrix
from models.text.documents import TextDocument, language_of, parts_of
from models.text.languages import Stemmer, StopWords, language_name, stemmer, stop_list
from models.text.tokens import split

MOST_NGRAM = 8


class AnalyzerParameters(BaseModel):
    """How a text becomes terms. A token is a maximal run of letters and digits."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    unit: Literal["word", "character"] = "word"
    """What n-grams are made of: words, or the characters of each word with a space at both ends."""

    lowercase: bool = True
    """Turn letters into lower case."""

    drop_numbers: bool = False
    """Drop tokens of digits only."""

    stop_words: StopWords = "none"
    """Drop the stop words of a language, in upper or lower case; `auto` takes each document's own
    language."""

    stemmer: Stemmer = "none"
    """Reduce words to stems, after stop words are dropped; `auto` takes each document's own language."""

    min_length: Annotated[int, Field(ge=1, le=100)] = 1
    """Drop tokens of fewer characters, counted before stemming."""

    ngrams: tuple[Annotated[int, Field(ge=1, le=MOST_NGRAM)], Annotated[int, Field(ge=1, le=MOST_NGRAM)]] = (
        1,
        1,
    )
    """Shortest and longest n-gram; an n-gram of words joins neighbours that were kept, with a space."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.ngrams[0] > self.ngrams[1]:
            raise ValueError("ngrams must be [shortest, longest], the shortest first")
        return self


@dataclass(frozen=True)
class TermCounts:
    """How often each term occurs in each of n documents.

    Attributes:
        terms: the distinct terms of these documents, in no particular order.
        matrix: (n, len(terms)) occurrences, each counted with the weight of its field.
    """

    terms: list[str]
    matrix: Matrix


class WordAnalysis:
    """What becomes of one word in one language; no memory, so that it costs its price every time.

    Args:
        parameters: the analyzer's.
        language: the language that ``auto`` stands for.

    >>> analysis = WordAnalysis(AnalyzerParameters(stop_words="english", stemmer="porter"))
    >>> analysis("invoices"), analysis("the")
    ('invoic', None)
    """

    def __init__(self, parameters: AnalyzerParameters, language: str | None = None) -> None:
        def choose(name: str) -> str:
            return (language or "none") if name == "auto" else name

        self._min_length = parameters.min_length
        self._drop_numbers = parameters.drop_numbers
        self._stop_list = stop_list(choose(parameters.stop_words))
        self._stem = stemmer(choose(parameters.stemmer))

    def __call__(self, word: str) -> str | None:
        """The word as a term holds it, or None if it is dropped."""
        if len(word) < self._min_length or (self._drop_numbers and word.isdigit()):
            return None
        if self._stop_list and word.lower() in self._stop_list:
            return None
        return self._stem(word) or None


class Analyzer:
    """Counts the terms of documents.

    Args:
        parameters: how a text becomes terms.
        remember: how many distinct words to remember before forgetting all and beginning anew; None for no
            limit. A limit keeps a long-lived service from growing with every word it ever meets.
    """

    def __init__(self, parameters: AnalyzerParameters, *, remember: int | None = None) -> None:
        self.parameters = parameters
        self._remember = remember
        self._analyses: dict[str | None, tuple[Callable[[str], str | None], dict[str, str | None]]] = {}

    def count(self, documents: Sequence[TextDocument]) -> TermCounts:
        """The terms of some documents, counted.

        >>> counts = Analyzer(AnalyzerParameters()).count(["a rose is a rose", "is it?"])
        >>> counts.terms, counts.matrix.toarray().tolist()
        (['a', 'rose', 'is', 'it'], [[2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
        """
        stream = self._read(documents)
        if self.parameters.unit == "character":
            return self._count_characters(stream, len(documents))
        return self._count_words(stream, len(documents))

    def _read(self, documents: Sequence[TextDocument]) -> _WordStream:
        texts: dict[str | None, list[tuple[str, int]]] = {}
        owners: list[int] = []
        weights: list[float] = []
        by_language = "auto" in (self.parameters.stop_words, self.parameters.stemmer)
        for i, document in enumerate(documents):
            language = language_name(language_of(document)) if by_language else None
            for text, weight in parts_of(document):
                texts.setdefault(language, []).append((text, len(owners)))
                owners.append(i)
                weights.append(weight)

        distinct: dict[str, int] = {}
        codes: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        fields: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        for language, members in texts.items():
            found = split([text for text, _ in members], lowercase=self.parameters.lowercase)
            analysed = self._analyse(found.distinct, language)
            renumber = np.array(
                [-1 if word is None else distinct.setdefault(word, len(distinct)) for word in analysed],
                dtype=np.int64,
            )
            renumbered = renumber[found.codes]
            field = np.repeat(
                np.array([number for _, number in members], dtype=np.int64), np.diff(found.bounds)
            )
            kept = renumbered >= 0
            codes.append(renumbered[kept])
            fields.append(field[kept])
        field_of = np.concatenate(fields)
        return _WordStream(
            distinct=list(distinct),
            codes=np.concatenate(codes),
            fields=field_of,
            owners=np.array(owners, dtype=np.int64)[field_of],
            weights=np.array(weights, dtype=np.float64)[field_of],
        )

    def _analyse(self, distinct: list[str], language: str | None) -> list[str | None]:
        if language not in self._analyses:
            self._analyses[language] = (WordAnalysis(self.parameters, language), {})
        analysis, known = self._analyses[language]
        if self._remember is not None and len(known) > self._remember:
            known.clear()
        missing = object()
        analysed: list[str | None] = []
        for word in distinct:
            term = known.get(word, missing)
            if term is missing:
                term = known[word] = analysis(word)
            analysed.append(term)  # type: ignore[arg-type]  # no longer the sentinel
        return analysed

    def _count_words(self, stream: _WordStream, n_documents: int) -> TermCounts:
        """Word n-grams, one length after the other: an n-gram is an (n-1)-gram and the word after it."""
        shortest, longest = self.parameters.ngrams
        terms: list[str] = []
        rows, columns, weights = [], [], []
        names = stream.distinct
        grams = stream.codes
        starts = np.arange(len(grams))
        for length in range(1, longest + 1):
            if length > 1:
                ends = starts + length - 1
                inside = ends < len(stream.codes)
                inside[inside] = stream.fields[starts[inside]] == stream.fields[ends[inside]]
                starts, grams, ends = starts[inside], grams[inside], ends[inside]
                pairs, grams = np.unique(
                    grams * len(stream.distinct) + stream.codes[ends], return_inverse=True
                )
                before, after = np.divmod(pairs, max(1, len(stream.distinct)))
                names = [
                    f"{names[b]} {stream.distinct[a]}"
                    for b, a in zip(before.tolist(), after.tolist(), strict=True)
                ]
            if length >= shortest:
                rows.append(stream.owners[starts])
                columns.append(grams + len(terms))
                weights.append(stream.weights[starts])
                terms = [*terms, *names]
        return TermCounts(
            terms,
            _counted(
                np.concatenate(rows),
                np.concatenate(columns),
                np.concatenate(weights),
                (n_documents, len(terms)),
            ),
        )

    def _count_characters(self, stream: _WordStream, n_documents: int) -> TermCounts:
        """Character n-grams: documents by words times words by n-grams."""
        shortest, longest = self.parameters.ngrams
        terms: dict[str, int] = {}
        rows, columns = [], []
        for i, word in enumerate(stream.distinct):
            padded = f" {word} "
            for length in range(shortest, longest + 1):
                for start in range(len(padded) - length + 1):
                    gram = padded[start : start + length]
                    if gram != " ":
                        rows.append(i)
                        columns.append(terms.setdefault(gram, len(terms)))
        by_words = _counted(stream.owners, stream.codes, stream.weights, (n_documents, len(stream.distinct)))
        grams = _counted(
            np.array(rows, dtype=np.int64),
            np.array(columns, dtype=np.int64),
            np.ones(len(rows)),
            (len(stream.distinct), len(terms)),
        )
        matrix = csr_array(by_words @ grams)
        matrix.sort_indices()
        return TermCounts(list(terms), matrix)


@dataclass(frozen=True)
class _WordStream:
    """The words of some documents that survived analysis, one after the other.

    Attributes:
        distinct: the distinct words.
        codes: (w,) for each word its index in ``distinct``.
        fields: (w,) the field that it stands in; fields are numbered through all documents.
        owners: (w,) the document that it stands in.
        weights: (w,) the weight of its field.
    """

    distinct: list[str]
    codes: Ints
    fields: Ints
    owners: Ints
    weights: Floats


def _counted(rows: Ints, columns: Ints, weights: Floats, shape: tuple[int, int]) -> Matrix:
    """Sums the weights by (row, column), as CSR with sorted indices.

    The way through CSC sorts by counting, in linear time; sorting each row by comparison takes twice as long.
    """
    narrow = (rows.astype(np.int32), columns.astype(np.int32))
    return csr_array(coo_array((weights, narrow), shape=shape).tocsc().tocsr())
