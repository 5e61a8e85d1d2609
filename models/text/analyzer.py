"""From documents to counted terms.

The steps, each optional: Unicode normalisation and lower case (see :mod:`models.text.tokens`), dropping of
numbers and of short words, stop words, stemming, then n-grams of what is left. Analysing a word costs much
more than meeting it, so each distinct word is analysed once and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.sparse import coo_array, csr_array

from models.arrays import AnyArray, Floats, Ints, Matrix
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


class WordAnalysis:
    """What becomes of one word in one language; no memory, so that it costs its price every time.

    Not to be called by two threads at a time, since stemmers are not.

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
        self.changes_nothing = (
            self._min_length == 1 and not self._drop_numbers and not self._stop_list and self._stem is str
        )

    def __call__(self, word: str) -> str | None:
        """The word as a term holds it, or None if it is dropped."""
        if len(word) < self._min_length or (self._drop_numbers and word.isdigit()):
            return None
        if self._stop_list and word.lower() in self._stop_list:
            return None
        return self._stem(word) or None


class Analyzer:
    """Counts the terms of documents, and numbers terms as it meets them.

    Args:
        parameters: how a text becomes terms.
        terms: terms that have the numbers 0, 1, 2 … before any document is read.
        remember: how many further words and terms to remember before beginning anew with ``terms``; None for
            no limit. A limit keeps a long-lived service from growing with every word it ever meets.
    """

    def __init__(
        self, parameters: AnalyzerParameters, *, terms: Sequence[str] = (), remember: int | None = None
    ) -> None:
        self.parameters = parameters
        self._given = terms
        self._remember = remember
        self._memory = _Memory(parameters, terms)
        self._smallest = self._memory.size

    @property
    def terms(self) -> list[str]:
        """Strings by their numbers: the terms met so far, and the words that terms are made of."""
        return [*self._memory.strings]

    def count(self, documents: Sequence[TextDocument]) -> Matrix:
        """How often each term occurs in each of n documents, every occurrence with the weight of its field.

        Returns:
            (n, len(terms)) counts; the columns are the numbers of the terms.

        >>> analyzer = Analyzer(AnalyzerParameters())
        >>> counts = analyzer.count(["a rose is a rose", "is it?"])
        >>> analyzer.terms, counts.toarray().tolist()
        (['a', 'rose', 'is', 'it'], [[2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
        """
        memory = self._memory
        if self._remember is not None and memory.size - self._smallest > self._remember:
            memory = self._memory = _Memory(self.parameters, self._given)  # other threads keep the old one
        stream = self._read(documents, memory)
        if self.parameters.unit == "character":
            rows, columns, weights = _character_ngrams(stream, memory)
        else:
            rows, columns, weights = _word_ngrams(stream, self.parameters, memory)
        shape = (len(documents), len(memory.strings))
        narrow = (rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False))
        # The way through CSC sorts by counting, in linear time; sorting each row takes twice as long.
        return csr_array(coo_array((weights, narrow), shape=shape).tocsc().tocsr())

    def _read(self, documents: Sequence[TextDocument], memory: _Memory) -> _WordStream:
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

        words, fields = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
        for language, members in texts.items():
            found = split([text for text, _ in members], lowercase=self.parameters.lowercase)
            word = memory.words(found.distinct, language)[found.codes]
            field = np.repeat(np.array([n for _, n in members], dtype=np.int32), np.diff(found.bounds))
            kept = word >= 0
            words.append(word[kept])
            fields.append(field[kept])
        field_of = np.concatenate(fields)
        return _WordStream(
            words=np.concatenate(words),
            fields=field_of,
            owners=np.array(owners, dtype=np.int32)[field_of],
            weights=np.array(weights, dtype=np.float64)[field_of],
        )


@dataclass(frozen=True)
class _WordStream:
    """The words of some documents that survived analysis, one after the other.

    Attributes:
        words: (w,) for each word its number.
        fields: (w,) the field that it stands in; fields are numbered through all documents.
        owners: (w,) the document that it stands in.
        weights: (w,) the weight of its field.
    """

    words: NDArray[np.int32]
    fields: NDArray[np.int32]
    owners: NDArray[np.int32]
    weights: Floats


class _Memory:
    """Numbers of strings (words as terms hold them, n-grams), and what each thing met before became.

    Reading needs no lock, since nothing here is ever changed or removed; adding takes one.
    """

    def __init__(self, parameters: AnalyzerParameters, terms: Sequence[str]) -> None:
        self.strings = [*terms]
        self._parameters = parameters
        self._numbers = dict(zip(terms, range(len(terms)), strict=True))
        self._words: dict[str | None, tuple[WordAnalysis, dict[str, int]]] = {}
        self._pairs: dict[int, int] = {}
        self._spellings: dict[int, list[int]] = {}
        self._lock = Lock()

    @property
    def size(self) -> int:
        """How many words and pairs are remembered."""
        return len(self.strings) + len(self._pairs) + sum(len(known) for _, known in self._words.values())

    def words(self, distinct: list[str], language: str | None) -> NDArray[np.int32]:
        """The number of each word after analysis, -1 for those that are dropped."""
        with self._lock:
            if language not in self._words:
                analysis = WordAnalysis(self._parameters, language)
                self._words[language] = (analysis, self._numbers if analysis.changes_nothing else {})
            analysis, known = self._words[language]
            missing = [word for word in distinct if word not in known]
            if known is self._numbers:
                known.update(zip(missing, range(len(known), len(known) + len(missing)), strict=True))
                self.strings.extend(missing)
            else:
                for word in missing:
                    term = analysis(word)
                    known[word] = -1 if term is None else self._number(term)
        return np.array([*map(known.__getitem__, distinct)], dtype=np.int32)

    def pairs(self, first: Ints, second: Ints) -> Ints:
        """The number of each n-gram that is made of a shorter one and the word after it."""
        keys, inverse = np.unique(first << 32 | second, return_inverse=True)
        known = self._pairs
        distinct = keys.tolist()
        missing = [key for key in distinct if key not in known]
        if missing:
            with self._lock:
                for key in missing:
                    known[key] = self._number(f"{self.strings[key >> 32]} {self.strings[key & 0xFFFFFFFF]}")
        numbers: Ints = np.array([*map(known.__getitem__, distinct)], dtype=np.int64)[inverse]
        return numbers

    def spelling(self, word: int) -> list[int]:
        """The numbers of a word's character n-grams, each as often as it occurs in the word."""
        known = self._spellings.get(word)
        if known is None:
            shortest, longest = self._parameters.ngrams
            padded = f" {self.strings[word]} "
            grams = [
                padded[start : start + length]
                for length in range(shortest, longest + 1)
                for start in range(len(padded) - length + 1)
            ]
            with self._lock:
                known = self._spellings[word] = [self._number(gram) for gram in grams if gram != " "]
        return known

    def _number(self, string: str) -> int:
        number = self._numbers.get(string)
        if number is None:
            number = len(self.strings)
            self.strings.append(string)
            self._numbers[string] = number
        return number


_Occurrences: TypeAlias = tuple[AnyArray, AnyArray, Floats]
"""Documents, terms and weights of occurrences."""


def _word_ngrams(stream: _WordStream, parameters: AnalyzerParameters, memory: _Memory) -> _Occurrences:
    """Word n-grams, one length after the other: an n-gram is an (n-1)-gram and the word after it."""
    shortest, longest = parameters.ngrams
    if longest == 1:
        return stream.owners, stream.words, stream.weights
    rows, columns, weights = [], [], []
    words = stream.words.astype(np.int64)
    grams, starts = words, np.arange(len(words))
    for length in range(1, longest + 1):
        if length > 1:
            inside = starts + length - 1 < len(words)
            starts, grams = starts[inside], grams[inside]
            inside = stream.fields[starts] == stream.fields[starts + length - 1]
            starts, grams = starts[inside], grams[inside]
            grams = memory.pairs(grams, words[starts + length - 1])
        if length >= shortest:
            rows.append(stream.owners[starts])
            columns.append(grams)
            weights.append(stream.weights[starts])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


def _character_ngrams(stream: _WordStream, memory: _Memory) -> _Occurrences:
    """Character n-grams: every word of the documents replaced by its own n-grams."""
    distinct, inverse = np.unique(stream.words, return_inverse=True)
    spellings = [memory.spelling(word) for word in distinct.tolist()]
    sizes = np.array([len(spelling) for spelling in spellings], dtype=np.int64)
    flat = np.array([number for spelling in spellings for number in spelling], dtype=np.int64)
    begins = np.cumsum(sizes) - sizes
    times = sizes[inverse]
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    columns = flat[np.repeat(begins[inverse], times) + within]
    return np.repeat(stream.owners, times), columns, np.repeat(stream.weights, times)
