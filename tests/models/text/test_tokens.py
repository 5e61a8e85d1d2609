"""Tokens, compared with an implementation that reads one character at a time."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text.tokens import TokenRules, split, words

INVISIBLE = "\u00ad\u200c\u200d\u200e\u2060\ufe0f\ufeff"
any_text = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(f"aZß_0²½\r\n\t .,'’´İΣçéЖहि木がﬁＡ🙂\u0301\u093f{INVISIBLE}\u200b\ud800"),
    ),
    max_size=40,
)


UNSEGMENTED = ("CJK", "HIRAGANA", "KATAKANA", "IDEOGRAPHIC", "THAI", "LAO", "KHMER", "MYANMAR")


def literal_bigrams(text: str) -> list[str]:
    """Return words, with the bigrams of adjacent characters of some scripts, one character at a time."""
    result: list[str] = []
    for word in literal_words(text, lowercase=True):
        runs: list[tuple[bool, list[str]]] = []
        for character in word:
            if unicodedata.category(character) in ("Mn", "Mc"):
                runs[-1][1][-1] += character
                continue
            found = unicodedata.name(character, "").startswith(UNSEGMENTED) and not character.isdecimal()
            if not runs or runs[-1][0] is not found:
                runs.append((found, []))
            runs[-1][1].append(character)
        for found, run in runs:
            bigrams = found and len(run) > 1
            result += [a + b for a, b in pairwise(run)] if bigrams else ["".join(run)]
    return result


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
    result = split(texts, TokenRules(lowercase=lowercase))
    apart = [
        [result.distinct[code] for code in result.codes[a:b]]
        for a, b in zip(result.bounds[:-1], result.bounds[1:], strict=True)
    ]
    assert apart == [words(text, TokenRules(lowercase=lowercase)) for text in texts]
    assert len(set(result.distinct)) == len(result.distinct)


@settings(max_examples=50, deadline=None)
@given(
    st.text(st.sampled_from(f"aZß_0²½\r\n\t .,'’´İΣçéЖहि木がﬁＡ🙂\u0301\u093f{INVISIBLE}\u200b\ud800")),
    st.booleans(),
)
def test_words_are_runs_of_letters_and_digits(text: str, lowercase: bool) -> None:
    assert words(text, TokenRules(lowercase=lowercase)) == literal_words(text, lowercase=lowercase)


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
    assert words("Ärger Re", TokenRules(lowercase=False)) == ["Ärger", "Re"]
    assert sorted(split(["Re", "Ärger Re"], TokenRules(lowercase=False)).distinct) == ["Re", "Ärger"]


def test_no_texts() -> None:
    result = split([])
    assert (result.distinct, result.codes.tolist(), result.bounds.tolist()) == ([], [], [0])


MIXED = st.text(
    st.sampled_from("a1é_ .,ß包裹退款返をおｶﾞー々〇ก่ำน๔ខ្មလာຄວ한국हि🙂\u0301\u093f\u200b\U00020000\U00010400"),
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(MIXED, max_size=4))
def test_runs_of_scripts_without_spaces_become_bigrams(texts: list[str]) -> None:
    expected = [literal_bigrams(text) for text in texts]
    assert [words(text, TokenRules(bigrams=True)) for text in texts] == expected
    result = split(texts, TokenRules(bigrams=True))
    bounds = zip(result.bounds[:-1], result.bounds[1:], strict=True)
    assert [[result.distinct[code] for code in result.codes[a:b]] for a, b in bounds] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "我的包裹还没有到，请退款",
            ["我的", "的包", "包裹", "裹还", "还没", "没有", "有到", "请退", "退款"],
        ),
        ("返金をお願い", ["返金", "金を", "をお", "お願", "願い"]),
        ("ﾊﾟｿｺﾝ サーバー", ["パソ", "ソコ", "コン", "サー", "ーバ", "バー"]),
        ("คืนเงิน", ["คืน", "นเ", "เงิ", "งิน"]),
        ("订单4711号 iPhone手机", ["订单", "4711", "号", "iphone", "手机"]),
        ("เลข ๔๗๑๑", ["เล", "ลข", "๔๗๑๑"]),
        ("배송이 늦어요", ["배송이", "늦어요"]),
        ("Größe привет", ["größe", "привет"]),
    ],
)
def test_bigrams_of_languages(text: str, expected: list[str]) -> None:
    assert words(text, TokenRules(bigrams=True)) == expected


@pytest.mark.parametrize("text", ["Größe, „привет“ – naïve", "Ελληνικά हिन्दी שלום 한국어", "🙂 \ud800 ａｂ"])
def test_texts_of_other_scripts_have_no_bigrams(text: str) -> None:
    assert words(text, TokenRules(bigrams=True)) == words(text)


def test_bigrams_are_not_longer_than_the_longest_word() -> None:
    marks = "ก" + "ิ" * 40
    assert max(map(len, words(marks * 3, TokenRules(max_length=30, bigrams=True)))) == 30
    assert (
        words("包裹x", TokenRules(max_length=1, bigrams=True))
        == words("包裹x", TokenRules(max_length=1))
        == ["包", "裹", "x"]
    )
