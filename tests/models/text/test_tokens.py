"""What a token is, against a version that looks at one character at a time."""

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
    """Runs of letters and digits and the marks after them, read off one character at a time."""
    text = "".join(c for c in unicodedata.normalize("NFKC", text) if c not in INVISIBLE)
    text = text.lower() if lowercase else text
    found: list[str] = []
    inside = False
    for character in text:
        mark = unicodedata.category(character) in ("Mn", "Mc")
        if character.isalnum() or (inside and mark):
            if inside:
                found[-1] += character
            else:
                found.append(character)
            inside = True
        else:
            inside = False
    return found


@settings(max_examples=50, deadline=None)
@given(st.lists(any_text, max_size=6), st.booleans())
def test_many_texts_split_as_each_alone(texts: list[str], lowercase: bool) -> None:
    found = split(texts, lowercase=lowercase)
    apart = [
        [found.distinct[code] for code in found.codes[a:b]]
        for a, b in zip(found.bounds[:-1], found.bounds[1:], strict=True)
    ]
    assert apart == [words(text, lowercase=lowercase) for text in texts]
    assert len(set(found.distinct)) == len(found.distinct)


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


def test_case_is_kept_where_asked() -> None:
    assert words("Ärger Re", lowercase=False) == ["Ärger", "Re"]
    assert sorted(split(["Re", "Ärger Re"], lowercase=False).distinct) == ["Re", "Ärger"]


def test_no_texts() -> None:
    found = split([])
    assert (found.distinct, found.codes.tolist(), found.bounds.tolist()) == ([], [], [0])
