"""Own stop words, and those of the SMART system."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.text import Analyzer, AnalyzerParameters, Vocabulary
from models.text.languages import stop_list
from models.text.smart import SMART_STOP_WORDS


def terms(text: str, **options: Any) -> list[str]:
    analyzer = Analyzer(AnalyzerParameters.model_validate(options))
    analyzer.count([text])
    return analyzer.terms


def test_the_smart_list_is_complete() -> None:
    """The published list has 571 lines, one of which is repeated."""
    words = SMART_STOP_WORDS.split()
    assert len(words) == len(set(words)) == 570
    assert words == sorted(words, key=words.index)
    assert {"a's", "c'mon", "inasmuch", "uucp", "zero"} < set(words)
    assert {"inasmuch", "uucp", "mon", "don"} < stop_list("smart")


def test_smart_stop_words_are_dropped() -> None:
    assert terms("Greetings, don't welcome the invoice", stop_words="smart") == ["invoice"]


def test_own_stop_words_are_dropped_regardless_of_case() -> None:
    own = {"words": ["Acme", "Mit freundlichen", "don't"]}
    assert terms("ACME acme invoice mit Freundlichen don t the", stop_words=own) == ["invoice", "the"]
    assert terms("Acme acme X", stop_words=own, lowercase=False) == ["X"]


def test_own_stop_words_can_extend_a_list() -> None:
    own = {"words": ["acme"], "include": "english"}
    assert terms("the acme invoice", stop_words=own) == ["invoice"]
    auto = {"words": ["acme"], "include": "auto"}
    german = "Guten Tag, die Rechnung vom Mai stimmt leider nicht mehr, acme"
    assert "die" not in terms(german, stop_words=auto)
    assert "acme" not in terms(german, stop_words=auto)


def test_own_stop_words_are_split_like_texts() -> None:
    assert terms("退款 e-mail 包裹", stop_words={"words": ["退款"]}) == ["e", "mail", "包裹"]
    assert terms("退款金 包裹", stop_words={"words": ["退款金"]}) == ["包裹"]
    options: dict[str, Any] = {"token_characters": {"inside": "-"}, "stop_words": {"words": ["E-Mail"]}}
    assert terms("e-mail e mail", **options) == ["e", "mail"]
    assert terms("abcd", max_length=2, stop_words={"words": ["abcd"]}) == []


def test_one_document_drops_the_same_words() -> None:
    parameters = AnalyzerParameters.model_validate({"stop_words": {"words": ["acme"], "include": "smart"}})
    counts = Vocabulary(parameters, ["acme", "invoice"]).count_one("The acme invoice")
    assert counts is not None
    assert counts.terms.tolist() == [1]
    assert counts.distinct == 1


@pytest.mark.parametrize(
    "own",
    [
        {"words": []},
        {"words": [""]},
        {"words": ["a" * 101]},
        {"words": ["a"] * 10_001},
        {"words": ["a"], "include": "klingon"},
        {"words": "the"},
        {},
    ],
)
def test_lists_are_limited(own: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AnalyzerParameters.model_validate({"stop_words": own})
