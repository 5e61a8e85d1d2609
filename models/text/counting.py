"""Counts the n-grams of documents, with any numbering of words and n-grams."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from models.arrays import AnyArray, Floats, Ints, Matrix
from models.mail.fields import PREFIXES, MailFields
from models.text.documents import TextDocument, language_of, parts_of
from models.text.languages import language_name
from models.text.parameters import CHARACTER_MARK, AnalyzerParameters
from models.text.tokens import split

_AFTER_MARK: Final = chr(ord(CHARACTER_MARK) + 1)

MAX_NGRAMS: Final = 2**20
"""N-grams of one document that are counted, which limits the memory. Words after this limit are ignored:
with word n-grams of 1 to 8 words, the words after the 131,072nd. Repeated words of character n-grams do not
count."""


class Numbering(Protocol):
    """Assigns numbers to words and n-grams."""

    fields: MailFields
    """Which fields of a document are read, and which have terms of their own."""

    @property
    def size(self) -> int:
        """Number of columns of a matrix of counts; an upper bound of all numbers so far."""
        ...

    def words(self, distinct: Sequence[str], language: str | None, prefix: str) -> NDArray[np.int32]:
        """Return the number of the prefix and each word after analysis, or -1 if the word is dropped."""
        ...

    def lengths(self, words: Sequence[int]) -> Ints:
        """Return the number of characters of each word."""
        ...

    def pairs(self, first: Ints, second: Ints) -> Ints:
        """Return the number of each n-gram, which consists of a shorter n-gram and the following word."""
        ...

    def parts(self, words: Sequence[int]) -> tuple[Ints, Ints]:
        """Return the numbers of the parts of some words (see ``parts_of_word``), and how many each has."""
        ...


def count_terms(
    documents: Sequence[TextDocument], parameters: AnalyzerParameters, numbering: Numbering
) -> Matrix:
    """Count the terms of n documents, (n, numbering.size). Each occurrence counts with its field's weight."""
    stream = _read(documents, parameters, numbering)
    rows, columns, weights = _count(stream, parameters, numbering)
    shape = (len(documents), numbering.size)
    positions = (rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False))
    # The conversion to CSC and back is a counting sort in linear time, twice as fast as sorting each row.
    return csr_array(coo_array((weights, positions), shape=shape).tocsc().tocsr())


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The counts of one document.

    Attributes:
        terms: (t,) the numbers of its known terms, ascending.
        counts: (t,) their counts.
        distinct: number of all its distinct terms, known or not.
        total: sum of the counts of all its terms.
        unknown: sum of the counts of its unknown terms.
    """

    terms: Ints
    counts: Floats
    distinct: int
    total: float
    unknown: float


def count_ngrams(
    fields: Sequence[tuple[NDArray[np.int32], float]],
    parameters: AnalyzerParameters,
    numbering: Numbering,
    n_known: int,
) -> TermCounts:
    """Count the terms of one document.

    Args:
        fields: the words of each field after analysis, by number or -1, and the weight of the field.
        parameters: how a text is split into terms.
        numbering: numbers n-grams.
        n_known: terms with smaller numbers are known.
    """
    kept = [words[words >= 0] for words, _ in fields]
    field_of = np.repeat(np.arange(len(kept), dtype=np.int32), [len(words) for words in kept])
    stream = _WordStream(
        words=np.concatenate([np.empty(0, dtype=np.int32), *kept]),
        fields=field_of,
        documents=np.zeros(len(field_of), dtype=np.int32),
        weights=np.array([weight for _, weight in fields], dtype=np.float64)[field_of],
    )
    _, columns, weights = _count(stream, parameters, numbering)
    terms, inverse = np.unique(columns, return_inverse=True)
    counts = np.bincount(inverse, weights=weights, minlength=len(terms)).astype(np.float64, copy=False)
    first_unknown = int(np.searchsorted(terms, n_known))
    return TermCounts(
        terms[:first_unknown].astype(np.int64),
        counts[:first_unknown],
        len(terms),
        float(counts.sum()),
        float(counts[first_unknown:].sum()),
    )


def split_prefix(term: str) -> tuple[str, str]:
    """Return the prefix of a term of a field with terms of its own, or an empty string, and the rest.

    >>> split_prefix("subject:invoice"), split_prefix(">invoice"), split_prefix("invoice")
    (('subject:', 'invoice'), ('>', 'invoice'), ('', 'invoice'))
    """
    if not term.startswith(PREFIXES):
        return "", term
    prefix = next(filter(term.startswith, PREFIXES))
    return prefix, term[len(prefix) :]


def parts_of_word(word: str, parameters: AnalyzerParameters) -> list[str]:
    """Return the parts of which the terms of a word consist, if these are character n-grams.

    Returns:
        The character n-grams of the word; with the unit ``spectrum``, a space and the characters of the word.
        If a word has a prefix, its parts have it, too.

    >>> parts_of_word("ab", AnalyzerParameters(character_ngrams=(3, 3)))
    ['~ ab', '~ab ']
    >>> parts_of_word("subject:ab", AnalyzerParameters(unit="spectrum", ngrams=(2, 2)))
    ['subject: ', 'subject:a', 'subject:b']
    """
    prefix, word = split_prefix(word)
    if parameters.unit == "spectrum":
        return [prefix + character for character in f" {word}"]
    if parameters.character_ngrams is None:
        return [prefix + gram for gram in padded_ngrams(word, parameters.ngrams)]
    prefix += CHARACTER_MARK
    return [prefix + gram for gram in padded_ngrams(word, parameters.character_ngrams)]


def parts_of_words(terms: Sequence[str]) -> list[slice]:
    """Return where parts of words are among terms that are sorted by code point.

    >>> terms = ["ab", "subject:ab", "subject:~ ab", "subject:~ab ", "~ ab", "~ab "]
    >>> [terms[columns] for columns in parts_of_words(terms) if terms[columns]]
    [['~ ab', '~ab '], ['subject:~ ab', 'subject:~ab ']]
    """
    marks = [prefix + CHARACTER_MARK for prefix in ("", *PREFIXES)]
    return [slice(bisect_left(terms, mark), bisect_left(terms, mark[:-1] + _AFTER_MARK)) for mark in marks]


def padded_ngrams(word: str, ngrams: tuple[int, int]) -> list[str]:
    """Return the character n-grams of a word with a space at both ends, but not a space alone.

    >>> padded_ngrams("ab", (1, 3))
    ['a', 'b', ' a', 'ab', 'b ', ' ab', 'ab ']
    """
    padded = f" {word} "
    grams = [
        padded[start : start + length]
        for length in range(ngrams[0], ngrams[1] + 1)
        for start in range(len(padded) - length + 1)
    ]
    return [gram for gram in grams if gram != " "]


@dataclass(frozen=True)
class _WordStream:
    """The remaining words of some documents after analysis. The words of a document are adjacent.

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


def _read(
    documents: Sequence[TextDocument], parameters: AnalyzerParameters, numbering: Numbering
) -> _WordStream:
    texts: dict[tuple[str | None, str], list[tuple[str, int]]] = {}
    document_of: list[int] = []
    weights: list[float] = []
    for i, document in enumerate(documents):
        language = language_name(language_of(document)) if parameters.by_language else None
        for text, weight, _, prefix in parts_of(document, numbering.fields):
            texts.setdefault((language, prefix), []).append((text, len(document_of)))
            document_of.append(i)
            weights.append(weight)

    words, fields = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
    for (language, prefix), fields_of_language in texts.items():
        split_texts = split([text for text, _ in fields_of_language], parameters.token_rules(language))
        word = numbering.words(split_texts.distinct, language, prefix)[split_texts.codes]
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


_Occurrences: TypeAlias = tuple[AnyArray, AnyArray, Floats]
"""The documents, terms and weights of occurrences of terms."""


def _count(stream: _WordStream, parameters: AnalyzerParameters, numbering: Numbering) -> _Occurrences:
    """Return the occurrences of all terms."""
    if parameters.unit == "character":
        return _character_ngrams(stream, parameters.ngrams, numbering)
    if parameters.unit == "spectrum":
        return _word_ngrams(_characters(stream, numbering), parameters.ngrams, numbering)
    if parameters.character_ngrams is None:
        return _word_ngrams(stream, parameters.ngrams, numbering)
    words = _word_ngrams(stream, parameters.ngrams, numbering)
    characters = _character_ngrams(stream, parameters.character_ngrams, numbering)
    rows, columns, weights = map(np.concatenate, zip(words, characters, strict=True))
    return rows, columns, weights


def _characters(stream: _WordStream, numbering: Numbering) -> _WordStream:
    """Return the characters of the words as a stream, with a space before each word and after the last."""
    if not len(stream.words):
        return stream
    distinct, word = np.unique(stream.words, return_inverse=True)
    characters, sizes = numbering.parts(distinct.tolist())
    firsts = np.cumsum(sizes) - sizes
    sizes, firsts = sizes[word], firsts[word]
    ends = np.cumsum(sizes)
    of_stream = np.repeat(firsts - ends + sizes, sizes) + np.arange(ends[-1])
    last = np.flatnonzero(np.diff(stream.fields, append=-1))  # the last word of each field
    expanded = _WordStream(
        words=characters[of_stream].astype(np.int32),
        fields=np.repeat(stream.fields, sizes),
        documents=np.repeat(stream.documents, sizes),
        weights=np.repeat(stream.weights, sizes),
    )
    at = ends[last]
    return _WordStream(
        words=np.insert(expanded.words, at, characters[firsts[last]]),
        fields=np.insert(expanded.fields, at, stream.fields[last]),
        documents=np.insert(expanded.documents, at, stream.documents[last]),
        weights=np.insert(expanded.weights, at, stream.weights[last]),
    )


def _word_ngrams(stream: _WordStream, ngrams: tuple[int, int], numbering: Numbering) -> _Occurrences:
    """Return word n-grams, by length. An n-gram consists of an (n-1)-gram and the following word."""
    shortest, longest = ngrams
    if longest == 1:
        return stream.documents, stream.words, stream.weights
    kept = _within_limit(stream.documents, np.full(len(stream.words), longest - shortest + 1))
    documents, fields, all_weights = stream.documents[kept], stream.fields[kept], stream.weights[kept]
    rows, columns, weights = [], [], []
    words = stream.words[kept].astype(np.int64)
    grams, starts = words, np.arange(len(words))
    for length in range(1, longest + 1):
        if length > 1:
            fits = starts + length - 1 < len(words)
            starts, grams = starts[fits], grams[fits]
            fits = fields[starts] == fields[starts + length - 1]
            starts, grams = starts[fits], grams[fits]
            grams = numbering.pairs(grams, words[starts + length - 1])
        if length >= shortest:
            rows.append(documents[starts])
            columns.append(grams.astype(np.int32))
            weights.append(all_weights[starts])
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


def _character_ngrams(stream: _WordStream, ngrams: tuple[int, int], numbering: Numbering) -> _Occurrences:
    """Return character n-grams: the words of each document times the n-grams of each word."""
    distinct, word = np.unique(stream.words, return_inverse=True)
    _, first, inverse = np.unique(
        stream.documents * np.int64(max(1, len(distinct))) + word, return_index=True, return_inverse=True
    )
    weight = np.bincount(inverse, weights=stream.weights, minlength=len(first))
    order = np.argsort(first)  # the words of a document in the order of their first appearance
    first, weight = first[order], weight[order]
    document, word = stream.documents[first], word[first]
    lengths = np.arange(ngrams[0], ngrams[1] + 1)
    padded = numbering.lengths(distinct.tolist()) + 2
    kept = _within_limit(document, np.maximum(0, padded[:, None] + 1 - lengths).sum(axis=1)[word])
    document, word, weight = document[kept], word[kept], weight[kept]

    used, word = np.unique(word, return_inverse=True)
    numbers, sizes = numbering.parts(distinct[used].tolist())
    n_documents = int(document.max(initial=-1)) + 1
    words_of = csr_array(coo_array((weight, (document, word)), shape=(n_documents, len(used))))
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ngrams_of = csr_array((np.ones(len(numbers)), numbers, bounds), shape=(len(used), numbering.size))
    ngrams_of.sum_duplicates()
    counts = (words_of @ ngrams_of).tocoo()
    rows, columns = counts.coords
    return rows, columns, counts.data.astype(np.float64, copy=False)


def _within_limit(documents: NDArray[np.int32], sizes: Ints) -> slice | NDArray[np.bool_]:
    """Return which words of each document are within ``MAX_NGRAMS``, given the number of n-grams of each."""
    if sizes.sum() <= MAX_NGRAMS:
        return slice(None)
    total = np.cumsum(sizes)
    begins = np.flatnonzero(np.diff(documents, prepend=-1))
    before = np.repeat((total - sizes)[begins], np.diff(begins, append=len(documents)))
    within: NDArray[np.bool_] = total - before <= MAX_NGRAMS
    return within
