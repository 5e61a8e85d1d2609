"""Tokens, compared with an implementation that reads one character at a time."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text.tokens import split, words

INVISIBLE = "\u00ad\u200c\u200d\u200e\u2060\ufe0f\ufeff"
any_text = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(f"aZß_0²½\r\n\t .,'’´İΣçéЖहि木がﬁＡ🙂\u0301\u093f{INVISIBLE}\u200b\ud800"),
    ),
    max_size=40,
)


def literal_words(text: str, *, lowercase: bool) -> list[str]:
    """Return runs of letters and digits with their marks, one character at a time."""
    text = "".join(c for c in unicodedata.normalize("NFKC", text) if c not in INVISIBLE)
    text = text.lower() if lowercase else text
    result: list[str] = []
    inside = False
    for character in text:
        mark = unicodedata.category(character) in ("Mn", "Mc")
        if character.isalnum() or (inside and mark):
            if inside:
                result[-1] += character
            else:
                result.append(character)
            inside = True
        else:
            inside = False
    return result


@settings(max_examples=50, deadline=None)
@given(st.lists(any_text, max_size=6), st.booleans())
def test_many_texts_are_split_like_single_texts(texts: list[str], lowercase: bool) -> None:
    result = split(texts, lowercase=lowercase)
    apart = [
        [result.distinct[code] for code in result.codes[a:b]]
        for a, b in zip(result.bounds[:-1], result.bounds[1:], strict=True)
    ]
    assert apart == [words(text, lowercase=lowercase) for text in texts]
    assert len(set(result.distinct)) == len(result.distinct)


@settings(max_examples=50, deadline=None)
@given(
    st.text(st.sampled_from(f"aZß_0²½\r\n\t .,'’´İΣçéЖहि木がﬁＡ🙂\u0301\u093f{INVISIBLE}\u200b\ud800")),
    st.booleans(),
)
def test_words_are_runs_of_letters_and_digits(text: str, lowercase: bool) -> None:
    assert words(text, lowercase=lowercase) == literal_words(text, lowercase=lowercase)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\r\ntwo\rthree\n", ["one", "two", "three"]),
        ("snake_case_42", ["snake", "case", "42"]),
        ("don't don’t", ["don", "t", "don", "t"]),
        ("pay👍now 🙂🙂", ["pay", "now"]),
        ("1️⃣ first", ["1", "first"]),
        ("STRASSE Straße", ["strasse", "straße"]),
        ("Rech\u00adnung", ["rechnung"]),
        ("a\u200bb", ["a", "b"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ ﬁnd", ["full", "width", "find"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("İstanbul", ["i̇stanbul"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Привет,мир! שלום 東京、大阪", ["привет", "мир", "שלום", "東京", "大阪"]),
        ("\ufeffFirst", ["first"]),
        ("half \ud800surrogate", ["half", "surrogate"]),
        ("", []),
        ("--- ___ !!!", []),
    ],
)
def test_words_of_many_scripts_and_mailers(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert sorted(split([text]).distinct) == sorted(set(expected))


def test_lowercasing_is_optional() -> None:
    assert words("Ärger Re", lowercase=False) == ["Ärger", "Re"]
    assert sorted(split(["Re", "Ärger Re"], lowercase=False).distinct) == ["Re", "Ärger"]


def test_no_texts() -> None:
    result = split([])
    assert (result.distinct, result.codes.tolist(), result.bounds.tolist()) == ([], [], [0])
