"""Characters other than letters and digits that belong to tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from models.mail.fields import DEFAULT_FIELDS
from models.text import Analyzer, AnalyzerParameters, Vocabulary
from models.text.occurrences import find_occurrences
from models.text.tokens import TokenRules, split, words


@pytest.mark.parametrize(
    ("text", "inside", "anywhere", "expected"),
    [
        ("Write to Ann@Example.org.", "@.", "", ["write", "to", "ann@example.org"]),
        ("e-mail -- well-known-", "-", "", ["e-mail", "well-known"]),
        ("wait...what a..b", ".", "", ["wait", "what", "a", "b"]),
        ("snake_case _x", "_", "", ["snake_case", "x"]),
        ("snake_case _x", "", "_", ["snake_case", "_x"]),
        ("C++ and C# and #42", "", "+#", ["c++", "and", "c#", "and", "#42"]),
        ("10€ – Größe-L", "-", "€", ["10€", "größe-l"]),
        ("don’t don't", "'", "", ["don", "t", "don't"]),
        ("cafe\u0301-bar", "-", "", ["café-bar"]),
        ("iphone-手机-壳 a-b", "-", "", ["iphone", "手机", "壳", "a-b"]),
    ],
)
def test_tokens_contain_the_characters(text: str, inside: str, anywhere: str, expected: list[str]) -> None:
    rules = TokenRules(inside=inside, anywhere=anywhere, bigrams=True)
    assert words(text, rules) == expected
    result = split([text, "x"], rules)
    assert [result.distinct[code] for code in result.codes[: result.bounds[1]]] == expected


TEXTS = st.text(st.sampled_from("aZß_0 .-@+'é手机\u0301\u093fह🙂"), max_size=30)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(1, 5), st.booleans())
def test_all_ways_to_split_a_text_agree(text: str, max_length: int, bigrams: bool) -> None:
    parameters = AnalyzerParameters.model_validate(
        {
            "max_length": max_length,
            "unsegmented": "bigrams" if bigrams else "none",
            "token_characters": {"inside": ".-@", "anywhere": "+_"},
        }
    )
    expected = words(text, parameters.token_rules(None))
    assert max(map(len, expected), default=0) <= max_length
    analyzer = Analyzer(parameters)
    counts = analyzer.count([text]).toarray()[0]
    assert dict(zip(analyzer.terms, counts, strict=True)) == {t: expected.count(t) for t in expected}
    for unknown in (True, False):
        one = Vocabulary(parameters, analyzer.terms).count_one(text, unknown=unknown)
        assert one is not None
        assert one.counts.tolist() == counts.tolist()
    found = find_occurrences(
        text, dict(zip(analyzer.terms, range(100), strict=False)).get, parameters, DEFAULT_FIELDS
    )
    assert set(found) == set(range(len(analyzer.terms)))


def test_numbers_with_the_characters_are_numbers() -> None:
    parameters = AnalyzerParameters.model_validate(
        {"drop_numbers": True, "token_characters": {"inside": ".,-", "anywhere": "#"}}
    )
    analyzer = Analyzer(parameters)
    analyzer.count(["12.50 and 2024-01-31 #42 v1.2"])
    assert analyzer.terms == ["and", "v1.2"]


@pytest.mark.parametrize(
    "characters", ["a", "1", " ", ">", ":", "~", "\u0301", "\u00ad", "…", "\n", "\ud800", "--"]
)
@pytest.mark.parametrize("place", ["inside", "anywhere"])
def test_characters_that_cannot_belong_to_tokens_are_refused(place: str, characters: str) -> None:
    with pytest.raises(ValidationError):
        AnalyzerParameters.model_validate({"token_characters": {place: characters}})


def test_a_character_is_in_one_set() -> None:
    with pytest.raises(ValidationError, match="twice"):
        AnalyzerParameters.model_validate({"token_characters": {"inside": "-", "anywhere": "-"}})
