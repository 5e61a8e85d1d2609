"""Counts the terms of a fixed vocabulary, in memory that does not grow with the documents seen."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.arrays import Ints, Matrix
from models.mail.fields import DEFAULT_FIELDS, MailFields, Part
from models.text.counting import (
    TermCounts,
    count_ngrams,
    count_terms,
    parts_of_word,
    split_prefix,
)
from models.text.documents import TextDocument, language_of, parts_of
from models.text.languages import language_name
from models.text.parameters import CHARACTER_MARK, AnalyzerParameters
from models.text.tokens import TokenRules, ascii_words, words
from models.text.word_terms import WordTerms, shared_word_terms

_CACHED_NUMBERS: Final = 2**15
"""Words whose numbers are cached, for each language."""

_CACHED_NGRAMS: Final = 2**14
"""Words whose character n-grams are cached."""

MAX_CHARACTERS: Final = 2**18
"""Characters of a document that ``count_one`` accepts, which limits the memory for its words."""

_UNKNOWN: Final = -1
_DROPPED: Final = -2
_HASH: Final = 2**62 - 1
_ITEM_BYTES: Final = 8


class Vocabulary:
    """Counts the terms of documents. Threads can share it, and never wait for each other.

    Other terms are counted in columns after those of the vocabulary, but they are not stored.

    Args:
        parameters: how a text is split into terms.
        terms: the vocabulary, with the numbers 0, 1, 2 ….
        fields: which fields of a document are read, and which have terms of their own.

    >>> Vocabulary(AnalyzerParameters(), ["rose", "is"]).count(["a rose is a rose"]).toarray().tolist()
    [[2.0, 1.0, 2.0]]
    """

    def __init__(
        self, parameters: AnalyzerParameters, terms: Sequence[str], fields: MailFields = DEFAULT_FIELDS
    ) -> None:
        self.parameters = parameters
        self.fields = fields
        self.n_terms = self.size = len(terms)
        self.pair_keys = self.pair_numbers = np.empty(0, dtype=np.int64)
        self._words: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self.strings: Sequence[str] = ()
        numbers = dict(zip(terms, range(len(terms)), strict=True))
        if parameters.unit == "character":
            self._parts = numbers
        elif parameters.ngrams[1] == 1 and parameters.character_ngrams is None:
            self._words = numbers
        else:
            self._add_pairs(numbers)
        self._parts_of: dict[str, bytes] = {}
        self._rules_of: dict[str | None, TokenRules] = {}
        self._terms_of: dict[str | None, WordTerms] = {}
        self._numbers_of: dict[tuple[str | None, str], _WordNumbers] = {}

    def count(self, documents: Sequence[TextDocument]) -> Matrix:
        """Count the terms of n documents. Each occurrence counts with the weight of its field.

        Returns:
            (n, m) counts. The first columns are the terms; each other column is another term.
        """
        return count_terms(documents, self.parameters, _Call(self))

    def analyzed(self, words: Sequence[str], language: str | None, prefix: str) -> list[int | str | None]:
        """Return the number of the term of each word, the term if it is unknown, None if it is dropped."""
        terms = self._terms(words, language, prefix)
        return [*map(self._words.get, terms, terms)]  # type: ignore[arg-type]  # None is no term either

    def count_one(self, document: TextDocument, *, unknown: bool = True) -> TermCounts | None:
        """Count the terms of one document, much faster than ``count`` does and with the same result.

        Args:
            document: the document.
            unknown: whether ``distinct`` counts unknown terms too. Otherwise, it takes half the time.

        Returns:
            The counts. None if the document is long, because each of its words is an object here.
        """
        parts = parts_of(document, self.fields)
        n_characters = sum([len(part.text) for part in parts])
        if n_characters > MAX_CHARACTERS:
            return None
        parameters = self.parameters
        language = language_name(language_of(document)) if parameters.by_language else None
        single_words = (
            parameters.unit == "word" and parameters.ngrams[1] == 1 and parameters.character_ngrams is None
        )
        if single_words and not unknown:
            return self._count_known_words(parts, language)
        if single_words:
            return self._count_words(parts, language)
        return self._count_ngrams(document, parts, language)

    def _count_ngrams(
        self,
        document: TextDocument,  # noqa: ARG002 - a subclass counts it like several documents
        parts: Sequence[Part],
        language: str | None,
    ) -> TermCounts:
        numbering = _Call(self)
        numbered = [
            (numbering.words(self._split(part.text, language), language, part.prefix), part.weight)
            for part in parts
        ]
        return count_ngrams(numbered, self.parameters, numbering, self.n_terms)

    def _count_words(self, parts: Sequence[Part], language: str | None) -> TermCounts:
        by_use: dict[tuple[float, str], list[str]] = {}
        for text, weight, _, prefix in parts:
            by_use.setdefault((weight, prefix), []).extend(self._split(text, language))
        counts: dict[str | None, float] = Counter(  # type: ignore[assignment]
            self._terms(by_use.pop((1.0, ""), []), language, "")
        )
        for (weight, prefix), others in by_use.items():
            terms = self._terms(others, language, prefix)
            for term, occurrences in Counter(terms).items():
                counts[term] = counts.get(term, 0) + weight * occurrences
        counts.pop(None, None)
        return self._numbered(counts)  # type: ignore[arg-type]  # None is no key any more

    def _numbered(self, counts: Mapping[str, float]) -> TermCounts:
        """Return the counts of terms by number."""
        numbers = np.array([*map(self._words.get, counts, repeat(-1))], dtype=np.int64)
        values = np.array([*counts.values()], dtype=np.float64)
        order = numbers.argsort()
        n_unknown = np.count_nonzero(numbers < 0)
        known, unknown = order[n_unknown:], float(values[order[:n_unknown]].sum())
        return TermCounts(numbers[known], values[known], len(counts), float(values.sum()), unknown)

    def _count_known_words(self, parts: Sequence[Part], language: str | None) -> TermCounts:
        numbers = []
        unknown = 0.0
        for text, weight, _, prefix in parts:
            known, n_unknown = self._numbers(text, language, prefix)
            numbers.append(known)
            unknown += n_unknown * weight
        if len(parts) == 1:
            terms, occurrences = _distinct(numbers[0])
            counts = occurrences.astype(np.float64) * parts[0].weight
        else:
            terms, inverse = np.unique(np.concatenate([np.empty(0, np.int32), *numbers]), return_inverse=True)
            weights = np.repeat(np.array([part.weight for part in parts]), [*map(len, numbers)])
            counts = np.bincount(inverse, weights=weights, minlength=len(terms)).astype(
                np.float64, copy=False
            )
        total = float(counts.sum()) + unknown
        return TermCounts(terms.astype(np.int64), counts, len(terms), total, unknown)

    def _split(self, text: str, language: str | None) -> list[str]:
        return words(text, self._rules(language))

    def _rules(self, language: str | None) -> TokenRules:
        rules = self._rules_of.get(language)
        if rules is None:
            rules = self._rules_of[language] = self.parameters.token_rules(language)
        return rules

    def _numbers(self, text: str, language: str | None, prefix: str) -> tuple[NDArray[np.int32], int]:
        """Return the number of each word of a text whose term is known, and how many have an unknown one."""
        key = (language, prefix)
        numbers_of = self._numbers_of.get(key)
        if numbers_of is None:
            numbers_of = self._numbers_of[key] = _WordNumbers(self, language, prefix)
        rules = self._rules(language)
        try:
            found = ascii_words(text, rules) if rules.are_simple_for(text) else words(text, rules)
            numbers = np.fromiter(map(numbers_of.__getitem__, found), dtype=np.int32, count=len(found))
        except _LongWordError:
            found = words(text, rules)
            numbers = np.fromiter(map(numbers_of.__getitem__, found), dtype=np.int32, count=len(found))
        return numbers[numbers >= 0], int(np.count_nonzero(numbers == _UNKNOWN))

    def parts(self, word: str) -> bytes:
        """Return the number of each part of a word as int64; negative for unknown parts.

        The number of an unknown part is derived from its hash, which takes less memory than the part.
        """
        cached = self._parts_of.get(word)
        if cached is None:
            known = self._parts
            numbers = array(
                "q",
                [
                    known[part] if part in known else -1 - (hash(part) & _HASH)
                    for part in parts_of_word(word, self.parameters)
                ],
            )
            cached = numbers.tobytes()
            if len(self._parts_of) > _CACHED_NGRAMS:
                self._parts_of = {}
            self._parts_of[word] = cached
        return cached

    def _terms(self, words: Sequence[str], language: str | None, prefix: str) -> Sequence[str | None]:
        """Return the prefix and the term of each word, or None if the word is dropped."""
        terms_of = self._terms_of.get(language)
        if terms_of is None:
            terms_of = self._terms_of[language] = shared_word_terms(self.parameters, language)
        terms = words if terms_of.changes_nothing else [*map(terms_of.__getitem__, words)]
        return [term and prefix + term for term in terms] if prefix else terms

    def _add_pairs(self, numbers: dict[str, int]) -> None:
        """Number the beginnings of all n-grams, and the words or characters in them, after the terms."""
        pairs: dict[int, int] = {}
        spectrum = self.parameters.unit == "spectrum"
        for term in [*numbers]:
            prefix, rest = split_prefix(term)
            if rest.startswith(CHARACTER_MARK):
                self._parts[term] = numbers[term]
                continue
            gram, *parts = [prefix + character for character in rest] if spectrum else term.split(" ")
            number = numbers.setdefault(gram, len(numbers))
            for part in parts:
                gram = gram + part[-1] if spectrum else f"{gram} {part}"
                key = number << 32 | numbers.setdefault(part, len(numbers))
                number = pairs[key] = numbers.setdefault(gram, len(numbers))
        self.size = len(numbers)
        if spectrum:
            self._parts = {
                string: number for string, number in numbers.items() if len(split_prefix(string)[1]) == 1
            }
        else:
            self._words = {
                string: number
                for string, number in numbers.items()
                if " " not in string and string not in self._parts
            }
            self.strings = [*numbers]
        keys = np.fromiter(pairs.keys(), dtype=np.int64, count=len(pairs))
        order = np.argsort(keys)
        self.pair_keys = keys[order]
        self.pair_numbers = np.fromiter(pairs.values(), dtype=np.int64, count=len(pairs))[order]


class _LongWordError(Exception):
    """A word is longer than the maximum length."""


class _WordNumbers(dict[str, int]):
    """The number of the term of each word; negative if the vocabulary does not contain it or it is dropped.

    One lookup takes the place of two, in much smaller tables. Threads can share it. A full cache begins anew.

    Args:
        vocabulary: the vocabulary.
        language: the language for ``auto``.
        prefix: begins the terms.
    """

    def __init__(self, vocabulary: Vocabulary, language: str | None, prefix: str) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._language = language
        self._prefix = prefix

    def __missing__(self, word: str) -> int:
        # A word of the cache need not be checked again.
        if len(word) > self._vocabulary.parameters.max_length:
            raise _LongWordError
        (term,) = self._vocabulary.analyzed([word], self._language, self._prefix)
        number = term if isinstance(term, int) else (_DROPPED if term is None else _UNKNOWN)
        if len(self) >= _CACHED_NUMBERS:
            self.clear()
        self[word] = number
        return number


def _distinct(numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], Ints]:
    """Return the distinct numbers, ascending, and how often each occurs, in less time than ``np.unique``."""
    numbers.sort()
    ends = np.empty(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=ends[:-1])
    ends[-1:] = True
    last = ends.nonzero()[0]
    occurrences = last + 1
    occurrences[1:] -= last[:-1] + 1
    return numbers[last], occurrences


class _Call:
    """The numbering of one call: unknown words and n-grams have numbers after those of the vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.fields = vocabulary.fields
        self._unknown: dict[str, int] = {}
        self._first_word = vocabulary.size
        self.size = vocabulary.size

    def words(self, distinct: Sequence[str], language: str | None, prefix: str) -> NDArray[np.int32]:
        """Return the number of each word after analysis, or -1 if the word is dropped."""
        unknown, first = self._unknown, self._first_word
        numbers = [
            unknown.setdefault(result, first + len(unknown))
            if isinstance(result, str)
            else (-1 if result is None else result)
            for result in self._vocabulary.analyzed(distinct, language, prefix)
        ]
        self.size = self._vocabulary.size + len(unknown)
        return np.array(numbers, dtype=np.int32)

    def lengths(self, words: Sequence[int]) -> Ints:
        """Return the number of characters of each word."""
        return np.array([*map(len, self._strings(words))], dtype=np.int64)

    def _strings(self, words: Sequence[int]) -> list[str]:
        known, unknown, first = self._vocabulary.strings, [*self._unknown], self._first_word
        return [unknown[word - first] if word >= first else known[word] for word in words]

    def pairs(self, first: Ints, second: Ints) -> Ints:
        """Return the number of each n-gram, which consists of a shorter n-gram and the following word."""
        keys, inverse = np.unique(first << 32 | second, return_inverse=True)
        numbers = self._number_others(len(keys))
        known = self._vocabulary.pair_keys
        if len(known):
            places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            found = known[places] == keys
            numbers[found] = self._vocabulary.pair_numbers[places[found]]
        return numbers[inverse]

    def parts(self, words: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the numbers of the parts of some words, and how many each word has."""
        parts = [*map(self._vocabulary.parts, self._strings(words))]
        sizes = np.array([*map(len, parts)], dtype=np.int64) // _ITEM_BYTES
        numbers = np.frombuffer(b"".join(parts), dtype=np.int64)
        others = numbers < 0
        distinct, inverse = np.unique(numbers[others], return_inverse=True)
        numbers = numbers.copy()
        numbers[others] = self._number_others(len(distinct))[inverse]
        return numbers, sizes

    def _number_others(self, count: int) -> Ints:
        """Return numbers for terms outside of the vocabulary."""
        self.size += count
        return np.arange(self.size - count, self.size, dtype=np.int64)
