"""The terms of words, which all models of a process share."""

from __future__ import annotations

from functools import lru_cache
from threading import local
from typing import Final

from models.text.analyzer import WordAnalysis
from models.text.languages import TURKIC_LANGUAGES
from models.text.parameters import AnalyzerParameters, StopWordList, TokenCharacters
from models.text.tokens import MAX_LENGTH

CACHED_WORDS: Final = 2**16
"""Words in each of the two generations of a cache."""

_CACHES: Final = 32
"""Caches with different parameters or languages."""


class WordTerms(dict[str, str | None]):
    """The term of each word, or None if the word is dropped. Threads can share it, and never wait.

    Stemming a word takes a hundred times as long as looking it up. A full cache becomes the old generation,
    from which words return when they occur again. So frequent words stay, and the memory is limited.

    Args:
        parameters: how a word is analyzed.
        language: the language for ``auto``.

    >>> WordTerms(AnalyzerParameters(stemmer="porter"), None)["invoices"]
    'invoic'
    """

    def __init__(self, parameters: AnalyzerParameters, language: str | None) -> None:
        super().__init__()
        self._parameters = parameters
        self._language = language
        self._old: dict[str, str | None] = {}
        self._of_thread = local()
        self.changes_nothing = WordAnalysis(parameters, language).changes_nothing
        """Whether each word is its own term. The cache then stays empty."""

    def __call__(self, word: str, /) -> str | None:
        """Return the term of a word, or None if the word is dropped."""
        return self[word]

    def __missing__(self, word: str) -> str | None:
        old = self._old
        term = old[word] if word in old else self._analysis()(word)
        if len(self) >= CACHED_WORDS:
            self._old = dict(self)
            self.clear()
        self[word] = term
        return term

    def _analysis(self) -> WordAnalysis:
        """Return the analysis of this thread, because stemmers are not thread-safe."""
        if not hasattr(self._of_thread, "analysis"):
            self._of_thread.analysis = WordAnalysis(self._parameters, self._language)
        analysis: WordAnalysis = self._of_thread.analysis
        return analysis


def shared_word_terms(parameters: AnalyzerParameters, language: str | None) -> WordTerms:
    """Return the terms of words, the same object for all parameters with the same analysis of words."""
    return _shared(_of_words(parameters, language), language)


@lru_cache(maxsize=_CACHES)
def _of_words(parameters: AnalyzerParameters, language: str | None) -> AnalyzerParameters:
    """Return the parameters that matter for the analysis of words, with the defaults of all others."""
    own_words = isinstance(parameters.stop_words, StopWordList)  # they are split like texts
    turkic = not TURKIC_LANGUAGES.isdisjoint((language, parameters.stop_list, parameters.stemmer))
    return AnalyzerParameters(
        unsegmented="bigrams" if parameters.bigrams else "none",
        lowercase=parameters.lowercase or not (own_words or turkic),
        fold_turkic_i=parameters.fold_turkic_i or not (own_words or turkic),
        token_characters=(
            parameters.token_characters if own_words or parameters.drop_numbers else TokenCharacters()
        ),
        drop_numbers=parameters.drop_numbers,
        stop_words=parameters.stop_words,
        stemmer=parameters.stemmer,
        min_length=parameters.min_length,
        max_length=parameters.max_length if own_words else MAX_LENGTH,
    )


_shared = lru_cache(maxsize=_CACHES)(WordTerms)
