"""Which fields of a message a model reads, and as which terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_array

from models import catalog
from models.errors import ParameterError
from models.features import TextFeatures, TextFeaturesParameters
from models.mail import Email, MailDocument, read_email, read_message
from models.mail.addresses import find_addresses
from models.mail.fields import MailFieldsParameters
from models.mail.limits import MAX_ADDRESSES_CHARS, MAX_DOMAINS

RAW = (
    b"From: Ann <ann@mail.shop.example>\nTo: Billing <billing@help.example>\nCc: bob@help.example\n"
    b"List-Id: Users <users.help.example>\nSubject: Wrong invoice\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\n'
    b"The invoice shows a payment twice.\n\n> Your invoice is here.\n--b\n"
    b'Content-Type: application/pdf; name="scan.pdf"\nContent-Disposition: attachment\n\nx\n--b--\n'
)
MAIL = read_message(RAW)
FORWARD = MailDocument(subject="Fwd", new_text="FYI", quoted_text="The parcel is late.")
EVERYTHING: dict[str, Any] = {
    **{name: {"weight": 1} for name in ("sender_domain", "recipients", "list_id", "attachment_types")},
    "subject": {"weight": 2, "own_terms": True},
    "quoted_text": {"weight": 0.25, "own_terms": True},
}


AS_PARTS = Email(
    subject="Wrong invoice",
    from_="Ann <ann@mail.shop.example>",
    to="Billing <billing@help.example>, bob@help.example",
    text="The invoice shows a payment twice.\n\n> Your invoice is here.\n",
    list_id="Users <users.help.example>",
    attachments=(("C:\\Temp\\scan.pdf", "Application/PDF "),),
)


def test_a_message_in_parts_has_the_fields_of_the_raw_one() -> None:
    parts = read_email(AS_PARTS)
    assert parts.mailing_list == MAIL.mailing_list == "users.help.example"
    assert parts.attachments == MAIL.attachments == (("scan.pdf", "application/pdf"),)
    _, rows = fitted(EVERYTHING, [MAIL, parts])
    assert rows[0] == rows[1]
    assert parts.body_digest != read_email(replace(AS_PARTS, attachments=())).body_digest


def fitted(
    fields: dict[str, Any], documents: list[MailDocument], *, weighting: str = "tf", **others: Any
) -> tuple[TextFeatures, list[dict[str, float]]]:
    features = TextFeatures(
        TextFeaturesParameters.model_validate(
            {"kind": "text", "weighting": weighting, "fields": fields, **others}
        )
    )
    X = features.fit_transform(documents, csr_array(np.ones((len(documents), 1), dtype=np.int8)))
    rows = [{features.names_[j]: x for j, x in enumerate(row) if x} for row in X.toarray().tolist()]
    for document, row in zip(documents, X.toarray(), strict=True):
        assert features.transform([document]).toarray()[0].tolist() == row.tolist()
        vector = features.vector(document)
        assert vector is not None
        assert vector.to_matrix(len(features.names_)).toarray()[0].tolist() == row.tolist()
    return features, rows


def test_by_default_subject_text_attachment_names_and_quoted_text_are_read_and_no_addresses() -> None:
    _, [row] = fitted({}, [MAIL])
    assert row == {
        "wrong": 1,
        "the": 1,
        "shows": 1,
        "a": 1,
        "payment": 1,
        "twice": 1,
        "scan": 1,
        "pdf": 1,
        "your": 0.5,
        "is": 0.5,
        "here": 0.5,
        "invoice": 2.5,
    }


def test_each_field_has_its_weight_and_can_have_terms_of_its_own() -> None:
    _, [row] = fitted({**EVERYTHING, "attachment_names": {"weight": 0}}, [MAIL])
    assert row == {
        "subject:wrong": 2,
        "subject:invoice": 2,
        "the": 1,
        "invoice": 1,
        "shows": 1,
        "a": 1,
        "payment": 1,
        "twice": 1,
        ">your": 0.25,
        ">invoice": 0.25,
        ">is": 0.25,
        ">here": 0.25,
        **{f"sender_domain:{word}": 1 for word in ("mail", "shop", "example")},
        "recipients:billing": 1,
        "recipients:bob": 1,
        "recipients:help": 2,
        "recipients:example": 2,
        **{f"list_id:{word}": 1 for word in ("users", "help", "example")},
        "attachment_types:application": 1,
        "attachment_types:pdf": 1,
    }


def test_fields_without_terms_of_their_own_share_the_terms_of_the_text() -> None:
    _, [row] = fitted(
        {"list_id": {"weight": 3, "own_terms": False}, "quoted_text": {"weight": 0}},
        [MailDocument(new_text="users write here", quoted_text="gone", mailing_list="users.example")],
    )
    assert row == {"users": 4, "write": 1, "here": 1, "example": 3}


@pytest.mark.parametrize("weighting", ["binary", "tfidf", "pivoted"])
@pytest.mark.parametrize(
    "analyzer", [{}, {"ngrams": [1, 2], "stemmer": "porter"}, {"unit": "character", "ngrams": [2, 3]}]
)
def test_one_message_has_the_same_features_alone(weighting: str, analyzer: dict[str, Any]) -> None:
    others = [
        MAIL,
        FORWARD,
        MailDocument(),
        MailDocument(subject="Größe 10 falsch", sender_domain="x.example"),
    ]
    fitted(EVERYTHING, others, weighting=weighting, analyzer=analyzer, scaling="unit")


def test_ngrams_of_a_field_with_terms_of_its_own_consist_of_them() -> None:
    features, _ = fitted({"subject": {"own_terms": True}}, [MAIL], analyzer={"ngrams": [2, 2]})
    assert "subject:wrong subject:invoice" in features.names_
    features, _ = fitted(
        {"subject": {"own_terms": True}}, [MAIL], analyzer={"unit": "character", "ngrams": [3, 3]}
    )
    assert {"subject: wr", "subject:wro"} <= set(features.names_)


def test_quoted_text_has_terms_of_its_own_with_binary_weights_unless_they_are_turned_off() -> None:
    _, [own] = fitted({}, [MAIL], weighting="binary")
    _, [shared] = fitted({"quoted_text": {"own_terms": False}}, [MAIL], weighting="binary")
    assert {">invoice", ">here"} <= set(own)
    assert {term for term in shared if term.startswith(">")} == set()
    assert "here" in shared


def test_quoted_text_of_a_message_with_little_new_text_is_used_like_new_text() -> None:
    _, [row] = fitted(
        {"new_text": {"weight": 3, "own_terms": True}, "quoted_text": {"own_terms": True}}, [FORWARD]
    )
    assert row["new_text:late"] == 3
    _, [without] = fitted({"quoted_text": {"weight": 0}}, [FORWARD])
    assert set(without) == {"fwd", "fyi"}
    _, [only_quoted] = fitted({"new_text": {"weight": 0}}, [FORWARD])
    assert only_quoted == {"fwd": 1, "the": 0.5, "parcel": 0.5, "is": 0.5, "late": 0.5}


def test_parts_of_a_message_in_json_give_the_same_features_as_the_raw_message() -> None:
    parts = read_email(
        Email(
            subject="Wrong invoice",
            from_="Ann <ann@mail.shop.example>",
            to="Billing <billing@help.example>, bob@help.example",
            text="The invoice shows a payment twice.\n\n> Your invoice is here.",
        )
    )
    fields = EVERYTHING | {
        name: {"weight": 0} for name in ("list_id", "attachment_types", "attachment_names")
    }
    _, [raw, json] = fitted(fields, [MAIL, parts])
    assert raw == json
    assert "recipients:billing" in json


def test_fields_of_a_loaded_model_are_those_of_its_parameters() -> None:
    features, _ = fitted(EVERYTHING, [MAIL, FORWARD])
    loaded = TextFeatures(features.parameters).set_state(features.get_state())
    assert loaded.transform([MAIL]).toarray().tolist() == features.transform([MAIL]).toarray().tolist()


def test_some_field_must_be_read() -> None:
    off = {name: {"weight": 0} for name in MailFieldsParameters.model_fields}
    with pytest.raises(ValidationError, match="at least one field needs a positive weight"):
        MailFieldsParameters.model_validate(off)


@pytest.mark.parametrize(
    "fields", [{"subject": {"weight": -1}}, {"subject": {"weight": 101}}, {"body": {"weight": 1}}]
)
def test_invalid_fields_are_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MailFieldsParameters.model_validate(fields)


def test_texts_have_no_fields() -> None:
    features = catalog.FEATURES_PARAMETERS.validate_python(
        {"kind": "text", "fields": {"subject": {"weight": 2}}}
    )
    learner = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"})
    catalog.check_features(features, learner, "email")
    with pytest.raises(ParameterError) as error:
        catalog.check_features(features, learner, "text")
    assert error.value.pointer == "/features/fields"


@pytest.mark.parametrize(
    ("line", "addresses"),
    [
        ("", ()),
        ("undisclosed-recipients:;", ()),
        ("<Support@Shop.example>", ("support@shop.example",)),
        ("a@x.example,b@x.example; a@x.example", ("a@x.example", "b@x.example")),
        ('"c@d.example" <e@f.example> (g@h.example)', ("e@f.example",)),
        ("jörg@münchen.example", ("jörg@münchen.example",)),
        ("a@xn--mller-kva.example", ("a@müller.example",)),
    ],
)
def test_addresses_are_found(line: str, addresses: tuple[str, ...]) -> None:
    assert find_addresses(line) == addresses


def test_the_number_of_addresses_is_limited() -> None:
    many = ", ".join(f"user{i}@example.org" for i in range(3000))
    mail = read_message(f"To: {many}\nSubject: Hi\n\nHello".encode())
    assert len(mail.recipients) == MAX_DOMAINS
    assert len(mail.recipient_lines) <= MAX_ADDRESSES_CHARS
