"""What a language brings to the analysis of a word: its stop words and its stemmer.

English stop words are scikit-learn's 318, and contractions: the ``stop-words`` package lists four times
as many, and among them many that tell departments apart (computer, copy, free, help). A few such words are
in the shorter list too (bill, call, system); where they matter, ``none`` is the better choice, since
boosting and selection leave stop words aside by themselves. Those of other languages come from
``stop-words``, stemmers from ``snowballstemmer``; ``porter`` is Porter's stemmer of 1980, which the papers
use, ``english`` its successor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, TypeAlias

import snowballstemmer
import stop_words  # type: ignore[import-untyped]
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from models.text.tokens import words

StopWords: TypeAlias = Literal[
    "none", "auto", "arabic", "bulgarian", "catalan", "chinese", "czech", "danish", "dutch", "english",
    "finnish", "french", "german", "greek", "gujarati", "hebrew", "hindi", "hungarian", "indonesian",
    "italian", "japanese", "korean", "malaysian", "norwegian", "persian", "polish", "portuguese",
    "romanian", "russian", "slovak", "spanish", "swedish", "turkish", "ukrainian", "vietnamese",
]  # fmt: skip
"""A list of stop words: none, that of the document's own language, or that of one language."""

Stemmer: TypeAlias = Literal[
    "none", "auto", "porter", "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch",
    "dutch_porter", "english", "esperanto", "estonian", "finnish", "french", "german", "greek", "hindi",
    "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "persian",
    "polish", "portuguese", "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil",
    "turkish", "yiddish",
]  # fmt: skip
"""A stemmer: none, that of the document's own language, or one by name."""

_NAMES: dict[str, str] = {
    **stop_words.LANGUAGE_MAPPING,
    "no": "norwegian", "nn": "norwegian", "hy": "armenian", "eu": "basque", "eo": "esperanto",
    "et": "estonian", "ga": "irish", "lt": "lithuanian", "ne": "nepali", "sr": "serbian", "st": "sesotho",
    "ta": "tamil", "yi": "yiddish",
}  # fmt: skip


def language_name(language: str | None) -> str | None:
    """The name of a language that may be given as a code, with or without a region; None if there is none.

    >>> language_name("de-AT"), language_name("German"), language_name(None)
    ('german', 'german', None)
    """
    if not language:
        return None
    plain = language.lower().replace("_", "-")
    return _NAMES.get(plain.split("-")[0], plain)


@cache
def stop_list(name: str) -> frozenset[str]:
    """The stop words of a language, in lower case; empty for ``none`` and for languages without a list.

    An entry with an apostrophe or hyphen stands for its pieces (``don't`` for ``don`` and ``t``), because
    such are the words that texts are split into.

    >>> "the" in stop_list("english"), "shan" in stop_list("english"), stop_list("none")
    (True, True, frozenset())
    """
    if name not in stop_words.AVAILABLE_LANGUAGES:
        return frozenset()
    entries = stop_words.get_stop_words(name)
    if name == "english":
        entries = [*ENGLISH_STOP_WORDS, *(entry for entry in entries if "'" in entry)]
    return frozenset(word for entry in entries for word in words(entry))


def stemmer(name: str) -> Callable[[str], str]:
    """A function from a word to its stem; for ``none`` and languages without a stemmer, ``str`` itself.

    A stemmer keeps the word it works on in itself: one may not be used by two threads at a time.

    >>> stemmer("porter")("invoices")
    'invoic'
    """
    if name not in snowballstemmer.algorithms():
        return str
    stem: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return stem
