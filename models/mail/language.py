"""Which language a text is in, by a model that comes with its library (py3langid): no network, no seed."""

from __future__ import annotations

from functools import cache
from typing import Final

from py3langid.langid import (  # type: ignore[import-untyped]
    MODEL_FILE,
    LanguageIdentifier,
)

# fmt: off
_LANGUAGES: Final = frozenset({
    "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "ga",
    "he", "hi", "hr", "hu", "hy", "id", "it", "ja", "ko", "lt", "lv", "ms", "nb", "ne", "nl", "nn",
    "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "sw", "ta", "th", "tr", "uk", "vi", "zh",
})
# fmt: on
"""Those of most mail; with all that the model knows, short texts are in doubt more often."""
_LETTERS: Final = 20
_CHARACTERS: Final = 2000
_CONFIDENCE: Final = 0.6


def detect_language(text: str) -> str | None:
    """The ISO 639-1 code of the language, None where the text is too short or in doubt.

    >>> detect_language("Guten Tag, die Rechnung vom Mai stimmt leider nicht."), detect_language("ok")
    ('de', None)
    """
    sample = text[:_CHARACTERS]
    if sum(character.isalpha() for character in sample) < _LETTERS:
        return None
    language, confidence = _identifier().classify(sample)
    return str(language) if confidence >= _CONFIDENCE else None


@cache
def _identifier() -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([name for name in identifier.labels if name in _LANGUAGES])
    return identifier
