"""Finds where terms occur in a document, in the text as it was given, to explain a prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from models.mail.fields import MailFields, Part
from models.text.alignment import AlignedWords, align_words
from models.text.counting import padded_ngrams, parts_of_word
from models.text.documents import TextDocument, language_of, parts_of
from models.text.languages import language_name
from models.text.parameters import CHARACTER_MARK, AnalyzerParameters
from models.text.word_terms import shared_word_terms

MAX_OCCURRENCES: Final = 10
"""Occurrences of a term that are listed."""

MAX_CHARACTERS: Final = 2**18
"""Characters of a document that are searched."""

_MAX_FORM_CHARACTERS: Final = 200


class Occurrence(NamedTuple):
    """Where a term occurs.

    Attributes:
        field: the name of the field; ``text`` in a text without fields.
        start: the first character, in code points from the beginning of the field.
        end: the character after the last one.
    """

    field: str
    start: int
    end: int


@dataclass(slots=True)
class TermOccurrences:
    """The occurrences of one term in a document.

    Attributes:
        words: the distinct forms of its words at these occurrences. For a character n-gram, the words that
            contain it.
        fields: the names of the fields in which it occurs.
        occurrences: where it occurs, by field and position; at most ``MAX_OCCURRENCES``. A word n-gram
            extends from its first word to its last, with the dropped words in between.
    """

    words: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    occurrences: list[Occurrence] = field(default_factory=list)


Matches: TypeAlias = "Iterator[tuple[int, Sequence[int], tuple[int, int]]]"
"""The feature, the numbers of the words, and the place in the prepared text of each occurrence."""


def find_occurrences(
    document: TextDocument,
    feature_of: Callable[[str], int | None],
    parameters: AnalyzerParameters,
    fields: MailFields,
) -> dict[int, TermOccurrences]:
    """Find where features occur in a document, in time proportional to its length.

    Args:
        document: the document.
        feature_of: returns the feature of a term; None if its occurrences are not needed.
        parameters: how a text is split into terms.
        fields: which fields are read, and which have terms of their own.

    Returns:
        the occurrences of each feature that occurs.

    >>> from models.mail.fields import DEFAULT_FIELDS
    >>> parameters = AnalyzerParameters(stemmer="porter")
    >>> find_occurrences("Invoices, the INVOICE", {"invoic": 7}.get, parameters, DEFAULT_FIELDS)[7].words
    ['Invoices', 'INVOICE']
    """
    found: dict[int, TermOccurrences] = {}
    for part, aligned, terms in _read(document, parameters, fields):
        text, place, spans = part.text, aligned.place, aligned.spans
        for feature, words, span in _Search(aligned, terms, part.prefix, feature_of).matches(parameters):
            occurrences = found.get(feature)
            if occurrences is None:
                occurrences = found[feature] = TermOccurrences()
            if part.field not in occurrences.fields:
                occurrences.fields.append(part.field)
            if len(occurrences.occurrences) < MAX_OCCURRENCES:
                occurrences.occurrences.append(Occurrence(part.field, *place(*span)))
                forms = [text[slice(*place(*spans[number]))] for number in words]
                form = forms[0] if len(forms) == 1 else " ".join(forms)
                if len(form) <= _MAX_FORM_CHARACTERS and form not in occurrences.words:
                    occurrences.words.append(form)
    return found


def words_of_parts(
    document: TextDocument, parts: Collection[str], parameters: AnalyzerParameters, fields: MailFields
) -> dict[str, dict[str, float]]:
    """Find the words of a document that contain parts of words, in time proportional to its length.

    Args:
        document: the document.
        parts: terms that are parts of words.
        parameters: how a text is split into terms.
        fields: which fields are read, and which have terms of their own.

    Returns:
        for each part that occurs: its words after analysis, with the sum of the weights of their fields.

    >>> from models.mail.fields import DEFAULT_FIELDS
    >>> parameters = AnalyzerParameters(character_ngrams=(3, 3))
    >>> words_of_parts("Nose, rose, rose", ["~ose", "~ant"], parameters, DEFAULT_FIELDS)
    {'~ose': {'nose': 1.0, 'rose': 2.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for part, _, terms in _read(document, parameters, fields):
        for term, n in Counter(term for term in terms if term is not None).items():
            word = part.prefix + term
            for gram in parts_of_word(word, parameters):
                if gram in parts:
                    words = found.setdefault(gram, {})
                    words[word] = words.get(word, 0.0) + n * part.weight
    return found


def _read(
    document: TextDocument, parameters: AnalyzerParameters, fields: MailFields
) -> Iterator[tuple[Part, AlignedWords, Sequence[str | None]]]:
    """Yield the texts of a document, their words, and the term of each word, or None if it is dropped."""
    language = language_name(language_of(document)) if parameters.by_language else None
    terms_of = shared_word_terms(parameters, language)
    rules = parameters.token_rules(language)
    left = MAX_CHARACTERS
    for part in parts_of(document, fields):
        searched = part._replace(text=part.text[:left])
        left -= len(searched.text)
        aligned = align_words(searched.text, rules)
        terms = aligned.words if terms_of.changes_nothing else [*map(terms_of.__getitem__, aligned.words)]
        yield searched, aligned, terms


@dataclass(frozen=True, slots=True)
class _Search:
    """Finds the occurrences of features in one text.

    Attributes:
        aligned: the words of the text.
        terms: the term of each word; None if it is dropped.
        prefix: begins the terms of the text.
        feature_of: returns the feature of a term; None if its occurrences are not needed.
    """

    aligned: AlignedWords
    terms: Sequence[str | None]
    prefix: str
    feature_of: Callable[[str], int | None]

    def matches(self, parameters: AnalyzerParameters) -> Matches:
        """Yield the occurrences of all features."""
        ngrams = parameters.ngrams
        if parameters.unit == "character":
            yield from self._character_ngrams(ngrams, self.prefix)
        elif parameters.unit == "spectrum":
            yield from self._spectrum(ngrams)
        else:
            yield from self._word_ngrams(ngrams)
            if parameters.character_ngrams is not None:
                yield from self._character_ngrams(parameters.character_ngrams, self.prefix + CHARACTER_MARK)

    def _word_ngrams(self, ngrams: tuple[int, int]) -> Matches:
        shortest, longest = ngrams
        spans, feature_of, prefix = self.aligned.spans, self.feature_of, self.prefix
        if longest == 1:
            features = {term: feature_of(prefix + term) for term in set(self.terms) if term is not None}
            for number, term in enumerate(self.terms):
                if term is not None and (feature := features[term]) is not None:
                    yield feature, (number,), spans[number]
            return
        kept = [(prefix + term, number) for number, term in enumerate(self.terms) if term is not None]
        for i in range(len(kept)):
            words = kept[i : i + longest]
            for length in range(shortest, len(words) + 1):
                feature = feature_of(" ".join([term for term, _ in words[:length]]))
                if feature is not None:
                    numbers = [number for _, number in words[:length]]
                    yield feature, numbers, (spans[numbers[0]][0], spans[numbers[-1]][1])

    def _character_ngrams(self, ngrams: tuple[int, int], prefix: str) -> Matches:
        features_of: dict[str, list[tuple[int, int, int]]] = {}
        for number, term in enumerate(self.terms):
            if term is None:
                continue
            features = features_of.get(term)
            if features is None:
                features = features_of[term] = [
                    (feature, start, end)
                    for gram, start, end in _places_of_ngrams(term, ngrams)
                    if (feature := self.feature_of(prefix + gram)) is not None
                ]
            for feature, start, end in features:
                yield feature, (number,), self._place(number, term, start, end)

    def _spectrum(self, ngrams: tuple[int, int]) -> Matches:
        """Yield n-grams across words, each without outer spaces."""
        texts = [" "]
        number_of = [-1]
        place_of = [(0, 0)]
        for number, term in enumerate(self.terms):
            if term is None:
                continue
            texts.append(f"{term} ")
            number_of += [number] * len(term) + [-1]
            place_of += [self._place(number, term, i, i + 1) for i in range(len(term))]
            place_of.append((0, 0))
        text = "".join(texts)
        for length in range(ngrams[0], ngrams[1] + 1):
            for start in range(len(text) - length + 1):
                feature = self.feature_of(self.prefix + text[start : start + length])
                if feature is not None:
                    inside = [i for i in range(start, start + length) if number_of[i] >= 0]
                    words = [*dict.fromkeys(number_of[i] for i in inside)]
                    yield feature, words, (place_of[inside[0]][0], place_of[inside[-1]][1])

    def _place(self, number: int, term: str, start: int, end: int) -> tuple[int, int]:
        """Return where some characters of a term are: the whole word if it does not begin with its term."""
        first, last = self.aligned.spans[number]
        is_beginning = self.aligned.words[number].startswith(term)
        return (first + start, first + end) if is_beginning else (first, last)


def _places_of_ngrams(word: str, ngrams: tuple[int, int]) -> Iterator[tuple[str, int, int]]:
    """Yield each character n-gram of a word, and which characters of the word it contains.

    >>> [*_places_of_ngrams("ab", (1, 2))]
    [('a', 0, 1), ('b', 1, 2), (' a', 0, 1), ('ab', 0, 2), ('b ', 1, 2)]
    """
    n = len(word)
    grams = iter(padded_ngrams(word, ngrams))
    for length in range(ngrams[0], ngrams[1] + 1):
        spaces = length == 1  # a space alone is no n-gram
        for start in range(-1 + spaces, n + 2 - length - spaces):
            yield next(grams), max(start, 0), min(start + length, n)
