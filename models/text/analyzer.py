"""Splits documents into terms and counts them.

The steps are Unicode normalization and lowercasing (see :mod:`models.text.tokens`), removal of numbers, short
words and stop words, stemming, and n-grams of the remaining words. Each step is optional. Analyzing a word is
much slower than looking it up, so the result of each distinct word is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints, Matrix
from models.mail.fields import DEFAULT_FIELDS, MailFields
from models.text.counting import count_terms, parts_of_word
from models.text.documents import TextDocument
from models.text.languages import stemmer, stop_list
from models.text.parameters import AnalyzerParameters, StopWordList
from models.text.tokens import words
from models.text.unsegmented import begins_unsegmented


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
        self._bigrams = parameters.bigrams
        self._drop_numbers = parameters.drop_numbers
        self._stop_list = stop_list(choose(parameters.stop_list), correct_turkish=parameters.fold_turkic_i)
        if isinstance(parameters.stop_words, StopWordList):
            rules = replace(parameters.token_rules(language), lowercase=True)
            own = (word for entry in parameters.stop_words.words for word in words(entry, rules))
            self._stop_list = self._stop_list.union(own)
        self._stem = stemmer(choose(parameters.stemmer))
        self._folds_turkic = parameters.is_turkic(language)
        further = parameters.token_characters.inside + parameters.token_characters.anywhere
        self._without_further = str.maketrans("", "", further) if further else None
        self.changes_nothing = (
            self._min_length == 1
            and not self._drop_numbers
            and not self._stop_list
            and self._stem is str
            and not self._folds_turkic
        )

    def __call__(self, word: str) -> str | None:
        """Return the term, or None if the word is dropped."""
        if len(word) < self._min_length and not (self._bigrams and begins_unsegmented(word)):
            return None
        if self._drop_numbers:
            plain = word if self._without_further is None else word.translate(self._without_further)
            if plain.isdigit():
                return None
        if self._stop_list and word.lower() in self._stop_list:
            return None
        term = self._stem(word)
        return (term.replace("ı", "i") if self._folds_turkic else term) or None


class TermOfWord(Protocol):
    """Converts a word to a term."""

    changes_nothing: bool
    """Whether each word is its own term."""

    def __call__(self, word: str, /) -> str | None:
        """Return the term, or None if the word is dropped."""
        ...


class Analyzer:
    """Counts the terms of training documents, and numbers the terms in the order of their first appearance.

    It stores every term. It is not thread-safe. To count the terms of a fixed vocabulary, use
    :class:`models.text.vocabulary.Vocabulary`.

    Args:
        parameters: how a text is split into terms.
        fields: which fields of a document are read, and which have terms of their own.
        analysis: returns the analysis of words for some parameters and a language.
    """

    def __init__(
        self,
        parameters: AnalyzerParameters,
        fields: MailFields = DEFAULT_FIELDS,
        analysis: Callable[[AnalyzerParameters, str | None], TermOfWord] = WordAnalysis,
    ) -> None:
        self.parameters = parameters
        self.fields = fields
        self._analysis = analysis
        self._strings: list[str] = []
        self._numbers: dict[str, int] = {}
        self._words: dict[tuple[str | None, str], tuple[TermOfWord, dict[str, int]]] = {}
        self._pairs: dict[int, int] = {}
        self._parts: dict[int, list[int]] = {}

    @property
    def terms(self) -> list[str]:
        """Strings by their numbers: all terms so far, and the words that n-grams consist of."""
        return [*self._strings]

    def count(self, documents: Sequence[TextDocument]) -> Matrix:
        """Count the terms of n documents. Each occurrence counts with the weight of its field.

        Returns:
            (n, len(terms)) counts. The columns are the numbers of the terms.

        >>> analyzer = Analyzer(AnalyzerParameters())
        >>> counts = analyzer.count(["a rose is a rose", "is it?"])
        >>> analyzer.terms, counts.toarray().tolist()
        (['a', 'rose', 'is', 'it'], [[2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
        """
        return count_terms(documents, self.parameters, self)

    @property
    def size(self) -> int:
        """Number of strings so far."""
        return len(self._strings)

    def words(self, distinct: Sequence[str], language: str | None, prefix: str) -> NDArray[np.int32]:
        """Return the number of each word after analysis, or -1 if the word is dropped."""
        key = (language, prefix)
        if key not in self._words:
            analysis = self._analysis(self.parameters, language)
            self._words[key] = (analysis, self._numbers if analysis.changes_nothing and not prefix else {})
        analysis, known = self._words[key]
        missing = [word for word in distinct if word not in known]
        if known is self._numbers:
            known.update(zip(missing, range(len(known), len(known) + len(missing)), strict=True))
            self._strings.extend(missing)
        else:
            for word in missing:
                term = analysis(word)
                known[word] = -1 if term is None else self._number(prefix + term)
        return np.array([*map(known.__getitem__, distinct)], dtype=np.int32)

    def lengths(self, words: Sequence[int]) -> Ints:
        """Return the number of characters of each word."""
        return np.array([len(self._strings[word]) for word in words], dtype=np.int64)

    def pairs(self, first: Ints, second: Ints) -> Ints:
        """Return the number of each n-gram, which consists of a shorter n-gram and the following word."""
        keys, inverse = np.unique(first << 32 | second, return_inverse=True)
        known, strings = self._pairs, self._strings
        spectrum = self.parameters.unit == "spectrum"
        distinct = keys.tolist()
        for key in distinct:
            if key not in known:
                gram, word = strings[key >> 32], strings[key & 0xFFFFFFFF]
                known[key] = self._number(gram + word[-1] if spectrum else f"{gram} {word}")
        numbers: Ints = np.array([*map(known.__getitem__, distinct)], dtype=np.int64)[inverse]
        return numbers

    def parts(self, words: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the numbers of the parts of some words, and how many each word has."""
        ngrams = []
        for word in words:
            known = self._parts.get(word)
            if known is None:
                grams = parts_of_word(self._strings[word], self.parameters)
                known = self._parts[word] = [*map(self._number, grams)]
            ngrams.append(known)
        sizes = np.array([*map(len, ngrams)], dtype=np.int64)
        return np.array([number for numbers in ngrams for number in numbers], dtype=np.int64), sizes

    def _number(self, string: str) -> int:
        number = self._numbers.get(string)
        if number is None:
            number = len(self._strings)
            self._strings.append(string)
            self._numbers[string] = number
        return number
