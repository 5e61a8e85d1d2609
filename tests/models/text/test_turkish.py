"""Upper and lower case of the letters I, ı, İ and i in Turkish and Azerbaijani words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from models.mail.fields import DEFAULT_FIELDS, MailFields, Part
from models.text import Analyzer, AnalyzerParameters, TextDocument, Vocabulary
from models.text.languages import stop_list
from models.text.occurrences import find_occurrences
from models.text.tokens import TokenRules, words

LONG = "Sayın yetkili, faturamı hâlâ alamadım ve siparişimin durumu hakkında bilgi istiyorum. "


@dataclass(frozen=True)
class Text:
    """A text with a given language."""

    text: str
    language: str | None

    def learning_parts(self, fields: MailFields) -> list[Part]:
        del fields
        return [Part(self.text)]


def terms(text: TextDocument, **options: Any) -> list[str]:
    analyzer = Analyzer(AnalyzerParameters.model_validate(options))
    analyzer.count([text])
    return analyzer.terms


@pytest.mark.parametrize(
    ("upper", "lower"), [("İADE", "iade"), ("IŞIK", "ışık"), ("KIRIK", "kırık"), ("DİYARBAKIR", "diyarbakır")]
)
@pytest.mark.parametrize(
    "options", [{}, {"stop_words": "turkish"}, {"stemmer": "turkish"}, {"stemmer": "auto"}]
)
def test_words_match_whatever_their_case(upper: str, lower: str, options: dict[str, Any]) -> None:
    for language in (None, "tr", "az"):
        documents = [Text(word, language) for word in (upper, lower)]
        assert terms(documents[0], **options) == terms(documents[1], **options) != []


def test_a_capital_letter_with_a_dot_is_one_character() -> None:
    assert terms("İstanbul") == ["istanbul"]
    assert terms("I\u0307stanbul") == ["istanbul"]


def test_words_match_in_documents_of_known_and_of_unknown_language() -> None:
    short, long = "IŞIK", f"{LONG} Işık"
    assert terms(short, stop_words="auto")[0] in terms(long, stop_words="auto")


def test_stop_words_and_stemmers_get_the_lower_case_of_the_language() -> None:
    assert terms("KIRK NASIL FATURA", stop_words="turkish") == ["fatura"]
    assert terms("KAPININ", stemmer="turkish") == terms("kapının", stemmer="turkish") == ["kap"]


def test_the_letters_of_turkish_stop_words_are_correct() -> None:
    assert {"şey", "altı", "kırk", "mi", "bazı"} < stop_list("turkish")
    assert not {letter for word in stop_list("turkish") for letter in word} & {*"ýþð"}


def test_other_languages_keep_their_letters() -> None:
    assert terms("INVOICE Information", stemmer="english") == ["invoic", "inform"]


def test_without_folding_each_letter_stays() -> None:
    assert terms("IŞIK ışık", fold_turkic_i=False) == ["işik", "ışık"]
    assert terms("IŞIK ışık", lowercase=False) == ["IŞIK", "ışık"]


def test_one_document_has_the_counts_of_a_batch() -> None:
    for options in ({}, {"stemmer": "turkish"}, {"stop_words": "auto"}):
        parameters = AnalyzerParameters.model_validate(options)
        texts = ["INFO ışık IŞIK", LONG + "KIRIK Kırık", "İADE iade INVOICE"]
        analyzer = Analyzer(parameters)
        analyzer.count(texts)
        vocabulary = Vocabulary(parameters, analyzer.terms)
        rows = vocabulary.count(texts).toarray()
        for text, row in zip(texts, rows, strict=True):
            for unknown in (True, False):
                counts = vocabulary.count_one(text, unknown=unknown)
                assert counts is not None
                assert {int(t): c for t, c in zip(counts.terms, counts.counts, strict=True)} == {
                    i: count for i, count in enumerate(row) if count
                }


def test_occurrences_are_found_at_their_places() -> None:
    for stemmer in ("none", "turkish"):
        parameters = AnalyzerParameters(stemmer=stemmer)
        found = find_occurrences("x İADE, ışık IŞIK", {"işik": 1, "iade": 2}.get, parameters, DEFAULT_FIELDS)
        assert found[1].words == ["ışık", "IŞIK"]
        assert [place[1:] for place in found[1].occurrences] == [(8, 12), (13, 17)]
        if stemmer == "none":
            assert found[2].words == ["İADE"]


def test_lower_case_has_three_forms() -> None:
    text = "İIıi"
    assert words(text, TokenRules(turkic="lower")) == ["iııi"]
    assert words(text, TokenRules(turkic="fold")) == ["iiii"]
    assert words(text, TokenRules(turkic="none")) == ["i\u0307iıi"]
