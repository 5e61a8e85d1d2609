"""Splits documents into terms and counts them.

The steps are Unicode normalization and lowercasing (see :mod:`models.text.tokens`), removal of numbers, short
words and stop words, stemming, and n-grams of the remaining words. Each step is optional. Analyzing a word is
much slower than looking it up, so the result of each distinct word is cached.
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

MAX_NGRAM = 8


class AnalyzerParameters(BaseModel):
    """How a text is split into terms. A token is a maximal run of letters and digits."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    unit: Literal["word", "character"] = "word"
    """Unit of the n-grams: words, or the characters of each word with a space at both ends."""

    lowercase: bool = True
    """Convert letters to lower case."""

    drop_numbers: bool = False
    """Drop tokens that only have digits."""

    stop_words: StopWords = "none"
    """Drop the stop words of a language, regardless of case. `auto` uses the language of each document."""

    stemmer: Stemmer = "none"
    """Reduce words to stems, after dropping stop words. `auto` uses the language of each document."""

    min_length: Annotated[int, Field(ge=1, le=100)] = 1
    """Drop tokens with fewer characters, counted before stemming."""

    ngrams: tuple[Annotated[int, Field(ge=1, le=MAX_NGRAM)], Annotated[int, Field(ge=1, le=MAX_NGRAM)]] = (
        1,
        1,
    )
    """Minimum and maximum length of n-grams. N-grams of words join adjacent remaining words with a space."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.ngrams[0] > self.ngrams[1]:
            raise ValueError("ngrams must be [minimum, maximum], with the minimum first")
        return self


class WordAnalysis:
    """Converts a word to a term, without a cache. It is not thread-safe, because stemmers are not.

    Args:
        parameters: parameters of the analyzer.
        language: the language for ``auto``.

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
        """Return the term, or None if the word is dropped."""
        if len(word) < self._min_length or (self._drop_numbers and word.isdigit()):
            return None
        if self._stop_list and word.lower() in self._stop_list:
            return None
        return self._stem(word) or None


class Analyzer:
    """Counts the terms of documents, and numbers the terms in the order of their first appearance.

    Args:
        parameters: how a text is split into terms.
        terms: terms with the numbers 0, 1, 2 ….
        cache_size: number of other words and terms after which the cache is reset to ``terms``; None for no
            limit. Without a limit, the cache of a long-running service grows with every new word.
    """

    def __init__(
        self, parameters: AnalyzerParameters, *, terms: Sequence[str] = (), cache_size: int | None = None
    ) -> None:
        self.parameters = parameters
        self._initial_terms = terms
        self._cache_size = cache_size
        self._cache = _Cache(parameters, terms)
        self._initial_size = self._cache.size

    @property
    def terms(self) -> list[str]:
        """Strings by their numbers: all terms so far, and the words that n-grams consist of."""
        return [*self._cache.strings]

    def count(self, documents: Sequence[TextDocument]) -> Matrix:
        """Count the terms of n documents. Each occurrence counts with the weight of its field.

        Returns:
            (n, len(terms)) counts. The columns are the numbers of the terms.

        >>> analyzer = Analyzer(AnalyzerParameters())
        >>> counts = analyzer.count(["a rose is a rose", "is it?"])
        >>> analyzer.terms, counts.toarray().tolist()
        (['a', 'rose', 'is', 'it'], [[2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
        """
        cache = self._cache
        if self._cache_size is not None and cache.size - self._initial_size > self._cache_size:
            cache = self._cache = _Cache(
                self.parameters, self._initial_terms
            )  # other threads keep using the old one
        stream = self._read(documents, cache)
        if self.parameters.unit == "character":
            rows, columns, weights = _character_ngrams(stream, cache)
        else:
            rows, columns, weights = _word_ngrams(stream, self.parameters, cache)
        shape = (len(documents), len(cache.strings))
        positions = (rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False))
        # The conversion to CSC and back is a counting sort in linear time, twice as fast as sorting each row.
        return csr_array(coo_array((weights, positions), shape=shape).tocsc().tocsr())

    def _read(self, documents: Sequence[TextDocument], cache: _Cache) -> _WordStream:
        texts: dict[str | None, list[tuple[str, int]]] = {}
        document_of: list[int] = []
        weights: list[float] = []
        by_language = "auto" in (self.parameters.stop_words, self.parameters.stemmer)
        for i, document in enumerate(documents):
            language = language_name(language_of(document)) if by_language else None
            for text, weight in parts_of(document):
                texts.setdefault(language, []).append((text, len(document_of)))
                document_of.append(i)
                weights.append(weight)

        words, fields = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
        for language, fields_of_language in texts.items():
            split_texts = split([text for text, _ in fields_of_language], lowercase=self.parameters.lowercase)
            word = cache.words(split_texts.distinct, language)[split_texts.codes]
            field = np.repeat(
                np.array([n for _, n in fields_of_language], dtype=np.int32), np.diff(split_texts.bounds)
            )
            kept = word >= 0
            words.append(word[kept])
            fields.append(field[kept])
        field_of = np.concatenate(fields)
        return _WordStream(
            words=np.concatenate(words),
            fields=field_of,
            documents=np.array(document_of, dtype=np.int32)[field_of],
            weights=np.array(weights, dtype=np.float64)[field_of],
        )


@dataclass(frozen=True)
class _WordStream:
    """The remaining words of some documents after analysis, in their order.

    Attributes:
        words: (w,) the number of each word.
        fields: (w,) the field of each word. The fields of all documents are numbered consecutively.
        documents: (w,) the document of each word.
        weights: (w,) the weight of each word's field.
    """

    words: NDArray[np.int32]
    fields: NDArray[np.int32]
    documents: NDArray[np.int32]
    weights: Floats


class _Cache:
    """The numbers of terms, and the results of analyzing words and n-grams.

    Entries are never changed or removed, so only additions need a lock.
    """

    def __init__(self, parameters: AnalyzerParameters, terms: Sequence[str]) -> None:
        self.strings = [*terms]
        self._parameters = parameters
        self._numbers = dict(zip(terms, range(len(terms)), strict=True))
        self._words: dict[str | None, tuple[WordAnalysis, dict[str, int]]] = {}
        self._pairs: dict[int, int] = {}
        self._character_ngrams: dict[int, list[int]] = {}
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Number of cached words and n-grams."""
        return len(self.strings) + len(self._pairs) + sum(len(known) for _, known in self._words.values())

    def words(self, distinct: list[str], language: str | None) -> NDArray[np.int32]:
        """Return the number of each word after analysis, or -1 if the word is dropped."""
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
        """Return the number of each n-gram, which consists of a shorter n-gram and the following word."""
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

    def character_ngrams(self, word: int) -> list[int]:
        """Return the numbers of all character n-grams of a word, including repeated ones."""
        known = self._character_ngrams.get(word)
        if known is None:
            shortest, longest = self._parameters.ngrams
            padded = f" {self.strings[word]} "
            grams = [
                padded[start : start + length]
                for length in range(shortest, longest + 1)
                for start in range(len(padded) - length + 1)
            ]
            with self._lock:
                known = self._character_ngrams[word] = [self._number(gram) for gram in grams if gram != " "]
        return known

    def _number(self, string: str) -> int:
        number = self._numbers.get(string)
        if number is None:
            number = len(self.strings)
            self.strings.append(string)
            self._numbers[string] = number
        return number


_Occurrences: TypeAlias = tuple[AnyArray, AnyArray, Floats]
"""The documents, terms and weights of occurrences of terms."""


def _word_ngrams(stream: _WordStream, parameters: AnalyzerParameters, cache: _Cache) -> _Occurrences:
    """Return word n-grams, by length. An n-gram consists of an (n-1)-gram and the following word."""
    shortest, longest = parameters.ngrams
    if longest == 1:
        return stream.documents, stream.words, stream.weights
    rows, columns, weights = [], [], []
    words = stream.words.astype(np.int64)
    grams, starts = words, np.arange(len(words))
    for length in range(1, longest + 1):
        if length > 1:
            fits = starts + length - 1 < len(words)
            starts, grams = starts[fits], grams[fits]
            fits = stream.fields[starts] == stream.fields[starts + length - 1]
            starts, grams = starts[fits], grams[fits]
            grams = cache.pairs(grams, words[starts + length - 1])
        if length >= shortest:
            rows.append(stream.documents[starts])
            columns.append(grams)
            weights.append(stream.weights[starts])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


def _character_ngrams(stream: _WordStream, cache: _Cache) -> _Occurrences:
    """Return the character n-grams of all words."""
    distinct, inverse = np.unique(stream.words, return_inverse=True)
    ngrams = [cache.character_ngrams(word) for word in distinct.tolist()]
    sizes = np.array([len(numbers) for numbers in ngrams], dtype=np.int64)
    flat = np.array([number for numbers in ngrams for number in numbers], dtype=np.int64)
    begins = np.cumsum(sizes) - sizes
    times = sizes[inverse]
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    columns = flat[np.repeat(begins[inverse], times) + within]
    return np.repeat(stream.documents, times), columns, np.repeat(stream.weights, times)
