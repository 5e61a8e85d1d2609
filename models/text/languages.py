"""Stop words and stemmers of natural languages.

The English stop words are the 318 of scikit-learn, and contractions. The list of the ``stop-words`` package
is four times as long, but contains many words that distinguish departments (computer, copy, free, help). A
few such words are also in the shorter list (bill, call, system). If they matter, use ``none``: boosting and
feature selection ignore stop words anyway. The stop words of other languages come from ``stop-words``, and
the stemmers from ``snowballstemmer``. ``porter`` is Porter's stemmer of 1980, which the papers use, and
``english`` is its successor. ``smart`` is the English list of the SMART system, which papers use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Final, Literal

import snowballstemmer
import stop_words  # type: ignore[import-untyped]
from pydantic import Field
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from typing_extensions import TypeAliasType

from models.text.smart import SMART_STOP_WORDS
from models.text.tokens import words

StopWords = TypeAliasType("StopWords", Annotated[Literal[
    "none", "auto", "arabic", "bulgarian", "catalan", "chinese", "czech", "danish", "dutch", "english",
    "finnish", "french", "german", "greek", "gujarati", "hebrew", "hindi", "hungarian", "indonesian",
    "italian", "japanese", "korean", "malaysian", "norwegian", "persian", "polish", "portuguese",
    "romanian", "russian", "slovak", "smart", "spanish", "swedish", "turkish", "ukrainian", "vietnamese",
], Field(description="The list of words to drop.")])  # fmt: skip
"""The stop words to drop: none, those of each document's language, or those of one language."""

Stemmer = TypeAliasType("Stemmer", Annotated[Literal[
    "none", "auto", "porter", "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch",
    "dutch_porter", "english", "esperanto", "estonian", "finnish", "french", "german", "greek", "hindi",
    "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "persian",
    "polish", "portuguese", "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil",
    "turkish", "yiddish",
], Field(description="How words are reduced to their stems.")])  # fmt: skip
"""The stemmer: none, that of each document's language, or a specific one."""

_NAMES: dict[str, str] = {
    **stop_words.LANGUAGE_MAPPING,
    "no": "norwegian", "nn": "norwegian", "hy": "armenian", "eu": "basque", "eo": "esperanto",
    "et": "estonian", "ga": "irish", "lt": "lithuanian", "ne": "nepali", "sr": "serbian", "st": "sesotho",
    "ta": "tamil", "yi": "yiddish", "az": "azerbaijani",
}  # fmt: skip

TURKIC_LANGUAGES: Final = frozenset({"turkish", "azerbaijani"})
"""The languages in which I is the capital of ı, and İ that of i."""


def language_name(language: str | None) -> str | None:
    """Return the name of a language from its name or from its code with or without a region; None if unknown.

    >>> language_name("de-AT"), language_name("German"), language_name(None)
    ('german', 'german', None)
    """
    if not language:
        return None
    plain = language.lower().replace("_", "-")
    return _NAMES.get(plain.split("-")[0], plain)


_TURKISH_LETTERS: Final = str.maketrans("ýþð", "ışğ")
"""The package has Turkish words in ISO 8859-9 that were read as ISO 8859-1."""
_TURKISH_ERRORS: Final = {"INSERmi": "mi"}


@cache
def stop_list(name: str, *, correct_turkish: bool = True) -> frozenset[str]:
    """Return the lowercase stop words of a language; empty for ``none`` and for languages without a list.

    Entries with an apostrophe or hyphen are split into words (``don't`` into ``don`` and ``t``), because
    texts are split in the same way. Models that do not fold the letters of Turkish were trained with the
    Turkish list as it is in the package, with wrong letters.

    >>> "the" in stop_list("english"), "shan" in stop_list("english"), stop_list("none")
    (True, True, frozenset())
    """
    if name == "smart":
        return frozenset(words(SMART_STOP_WORDS))
    if name not in stop_words.AVAILABLE_LANGUAGES:
        return frozenset()
    entries = stop_words.get_stop_words(name)
    if name == "turkish" and correct_turkish:
        entries = [_TURKISH_ERRORS.get(entry, entry).translate(_TURKISH_LETTERS) for entry in entries]
    if name == "english":
        entries = [*ENGLISH_STOP_WORDS, *(entry for entry in entries if "'" in entry)]
    return frozenset(word for entry in entries for word in words(entry))


def stemmer(name: str) -> Callable[[str], str]:
    """Return a function from a word to its stem; ``str`` for ``none`` and languages without a stemmer.

    The function is not thread-safe, because a stemmer stores the current word.

    >>> stemmer("porter")("invoices")
    'invoic'
    """
    if name not in snowballstemmer.algorithms():
        return str
    stem: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return stem
