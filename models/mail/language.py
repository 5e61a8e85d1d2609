"""Detects the language of a text with the model of py3langid, which needs no network and no seed."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Final

from models.extras import require

try:
    from py3langid.langid import (  # type: ignore[import-untyped]
        MODEL_FILE,
        LanguageIdentifier,
    )
except ModuleNotFoundError:
    LanguageIdentifier = None

# fmt: off
_LANGUAGES: Final = frozenset({
    "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "ga",
    "he", "hi", "hr", "hu", "hy", "id", "it", "ja", "ko", "lt", "lv", "ms", "nb", "ne", "nl", "nn",
    "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "sw", "ta", "th", "tr", "uk", "vi", "zh",
})
# fmt: on
"""The languages of most mail. With all languages of the model, more short texts would be uncertain."""
_MIN_LETTERS: Final = 20
_SAMPLES: Final = ((300, 0.99), (2000, 0.6))
"""Characters from which a language is detected, and the confidence that suffices.

The time grows with the characters. The beginning almost always suffices, and with this confidence its
language is that of the longer sample.
"""


def detect_language(text: str) -> str | None:
    """Return the ISO 639-1 code of the language; None if the text is too short or the result uncertain.

    >>> detect_language("Guten Tag, die Rechnung vom Mai stimmt leider nicht."), detect_language("ok")
    ('de', None)
    """
    for characters, min_confidence in _SAMPLES if len(text) > _SAMPLES[0][0] else _SAMPLES[1:]:
        language = language_of_sample(text[:characters], min_confidence)
        if language is not None:
            return language
    return None


def language_of_sample(sample: str, min_confidence: float) -> str | None:
    """Return the language of all characters; None for few letters or a lower confidence (0 to 1)."""
    if sum(map(str.isalpha, sample)) < _MIN_LETTERS:
        return None
    language, confidence = identifier(_LANGUAGES).classify(sample)
    return str(language) if confidence >= min_confidence else None


@cache
def identifier(languages: frozenset[str]) -> LanguageIdentifier:
    """Return an identifier for some of the languages of the model, which is loaded once."""
    limited = copy(_identifier())
    limited.set_languages([name for name in limited.labels if name in languages])
    return limited


@cache
def _identifier() -> LanguageIdentifier:
    require(LanguageIdentifier, "py3langid", "detecting the language of mail")
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
