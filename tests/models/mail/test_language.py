"""The language of a text."""

from __future__ import annotations

import pytest

from models.mail.language import detect_language, language_of_sample

ENGLISH = "Hello, the invoice that you sent us in May is wrong, please correct it and send it again. " * 4
GERMAN = "Guten Tag, die Rechnung vom Mai stimmt leider nicht, bitte schicken Sie uns eine neue. " * 4


def test_the_beginning_of_a_text_decides_if_its_language_is_certain() -> None:
    assert detect_language(ENGLISH + 5 * GERMAN) == "en"
    assert detect_language(GERMAN + 5 * ENGLISH) == "de"


@pytest.mark.parametrize("beginning", ["4711 0815 / " * 30, "ok " * 5 + "- " * 150])
def test_a_beginning_without_a_certain_language_is_read_on(beginning: str) -> None:
    assert language_of_sample(beginning[:300], 0.99) is None
    assert detect_language(beginning + GERMAN) == "de"


@pytest.mark.parametrize("text", ["", "ok", "4711 " * 500])
def test_a_text_of_few_letters_has_no_language(text: str) -> None:
    assert detect_language(text) is None
