"""Terms are found in a document in the words and at the places where they occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.mail import MailDocument
from models.mail.fields import DEFAULT_FIELDS, MailFields, MailFieldsParameters
from models.text import Analyzer, AnalyzerParameters, TextDocument
from models.text.documents import parts_of
from models.text.occurrences import MAX_OCCURRENCES, Occurrence, TermOccurrences, find_occurrences

OWN = MailFields(
    MailFieldsParameters.model_validate(
        {"subject": {"own_terms": True}, "recipients": {"weight": 1}, "attachment_types": {"weight": 1}}
    ),
    binary=True,
)
MAIL = MailDocument(
    subject="Invoice: the INVOICES",
    new_text="My invoice is wrong, please send the invoices again.",
    quoted_text="> your invoice",
    recipient_lines="Billing <billing@help.example>",
    attachments=(("Invoice-7.pdf", "application/pdf"),),
)
CHINESE = MailDocument(
    subject="请退款", new_text="我的包裹，请退款。Cafe\u0301 4711 und die Rechnungen vom Mai"
)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"stemmer": "porter", "stop_words": "english", "drop_numbers": True},
    {"stemmer": "auto", "stop_words": "auto", "ngrams": [1, 3]},
    {"ngrams": [2, 2], "min_length": 3},
    {"unit": "character", "ngrams": [1, 4]},
    {"unit": "character", "ngrams": [3, 3], "stemmer": "porter", "stop_words": "english"},
]


def find(
    document: TextDocument, *terms: str, fields: MailFields = DEFAULT_FIELDS, **options: Any
) -> list[TermOccurrences]:
    numbers = {term: number for number, term in enumerate(terms)}
    found = find_occurrences(document, numbers.get, AnalyzerParameters(**options), fields)
    return [found.get(number, TermOccurrences()) for number in range(len(terms))]


def texts_at(
    document: TextDocument, found: TermOccurrences, fields: MailFields = DEFAULT_FIELDS
) -> list[str]:
    texts = {part.field: part.text for part in parts_of(document, fields)}
    return [texts[field][start:end] for field, start, end in found.occurrences]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("fields", [DEFAULT_FIELDS, OWN])
@pytest.mark.parametrize(
    "document", [MAIL, CHINESE, "Invoices! The ﬁrst invoice, and co\u00adop; x² I\u0307"]
)
def test_every_term_is_found_and_its_place_has_it_again(
    document: TextDocument, fields: MailFields, options: dict[str, Any]
) -> None:
    parameters = AnalyzerParameters(**options)
    analyzer = Analyzer(parameters, fields)
    counts = analyzer.count([document]).toarray()[0].tolist()
    terms = [term for term, count in zip(analyzer.terms, counts, strict=True) if count]
    assert terms
    for term, found in zip(terms, find(document, *terms, fields=fields, **options), strict=True):
        parts = {part.field: part for part in parts_of(document, fields)}
        assert found.occurrences
        assert found.words
        for field, start, end in found.occurrences:
            assert field in found.fields
            part = parts[field]
            again = Analyzer(parameters)
            language = None if isinstance(document, str) else document.language
            again.count([_Slice(part.text[start:end], language)])
            if parameters.unit == "word":
                assert term in {
                    " ".join(part.prefix + word for word in string.split(" ")) for string in again.terms
                }
            elif parameters.stemmer == "none":
                assert term in {part.prefix + string for string in again.terms}


class _Slice(MailDocument):
    def __init__(self, text: str, language: str | None) -> None:
        super().__init__(new_text=text)
        self.__dict__["language"] = language


def test_terms_that_do_not_occur_are_not_found() -> None:
    assert find_occurrences(MAIL, {"balloon": 1, "help": 2}.get, AnalyzerParameters(), DEFAULT_FIELDS) == {}


def test_a_stem_is_found_in_its_forms_by_field() -> None:
    (found,) = find(MAIL, "invoic", stemmer="porter")
    assert found.words == ["Invoice", "INVOICES", "invoice", "invoices"]
    assert found.fields == ["subject", "new_text", "attachment_names", "quoted_text"]
    assert found.occurrences[:3] == [
        Occurrence("subject", 0, 7),
        Occurrence("subject", 13, 21),
        Occurrence("new_text", 3, 10),
    ]
    assert texts_at(MAIL, found)[-2:] == ["Invoice", "invoice"]


def test_terms_of_a_field_are_found_in_this_field_only() -> None:
    subject, quoted, recipients, text, kind = find(
        MAIL,
        "subject:invoice",
        ">invoice",
        "recipients:billing",
        "invoice",
        "attachment_types:pdf",
        fields=OWN,
    )
    assert (subject.fields, subject.words) == (["subject"], ["Invoice"])
    assert (quoted.fields, quoted.words) == (["quoted_text"], ["invoice"])
    assert (recipients.fields, recipients.words) == (["recipients"], ["billing"])
    assert text.fields == ["new_text", "attachment_names"]
    assert texts_at(MAIL, kind, OWN) == ["pdf"]


def test_an_ngram_extends_over_dropped_words_but_its_words_do_not() -> None:
    (found,) = find(
        "Send the Invoices to me", "send invoic", stop_words="english", stemmer="porter", ngrams=(2, 2)
    )
    assert found.words == ["Send Invoices"]
    assert found.occurrences == [Occurrence("text", 0, 17)]


def test_a_character_ngram_is_found_in_the_word_that_contains_it() -> None:
    middle, beginning = find("An invoice", "voi", " in", unit="character", ngrams=(3, 3))
    assert (middle.words, texts_at("An invoice", middle)) == (["invoice"], ["voi"])
    assert (beginning.words, texts_at("An invoice", beginning)) == (["invoice"], ["in"])


def test_bigrams_of_scripts_without_spaces_are_found_as_characters() -> None:
    (found,) = find("我的包裹，请退款", "退款")
    assert (found.words, found.occurrences) == (["退款"], [Occurrence("text", 6, 8)])


def test_offsets_count_code_points_of_the_text_as_given() -> None:
    text = "\U0001f642 ﬁ Cafe\u0301 co\u00adop"
    cafe, coop = find(text, "café", "coop")
    assert cafe.occurrences == [Occurrence("text", 4, 9)]
    assert coop.occurrences == [Occurrence("text", 10, 15)]
    assert coop.words == ["co\u00adop"]


def test_the_number_of_occurrences_is_limited() -> None:
    (found,) = find(MailDocument(new_text="rose " * 1000, quoted_text="rose"), "rose")
    assert len(found.occurrences) == MAX_OCCURRENCES
    assert found.words == ["rose"]
    assert found.fields == ["new_text", "quoted_text"]


def test_a_form_of_unreasonable_length_is_left_out() -> None:
    (found,) = find("ro" + "\u00ad" * 1000 + "se", "rose")
    assert (found.words, found.occurrences) == ([], [Occurrence("text", 0, 1004)])


def test_random_texts_have_their_terms_at_the_places_found() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        text = "".join(rng.choice([*"ab AB.é\u0301我的\u00ad½ﬁ"], 25))
        analyzer = Analyzer(AnalyzerParameters())
        analyzer.count([text])
        for term, found in zip(analyzer.terms, find(text, *analyzer.terms), strict=True):
            for start, end in (place[1:] for place in found.occurrences):
                again = Analyzer(AnalyzerParameters())
                again.count([text[start:end]])
                assert term in again.terms
