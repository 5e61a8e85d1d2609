"""Explanations over HTTP: the words of the document, their fields and places."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import problem_of
from in_process_api import InProcessApi, api

from models.mail.fields import MailFieldsParameters

RAW = (
    b"From: ann@shop.example\nTo: billing@help.example\nSubject: Wrong INVOICES\nMIME-Version: 1.0\n"
    b"Content-Type: text/html\n\n<p>My <b>in</b>voice is caf&eacute; wrong, please help me.</p>"
)
FEATURES = {
    "kind": "text",
    "analyzer": {"stemmer": "porter"},
    "fields": {"subject": {"weight": 2, "own_terms": True}, "recipients": {"weight": 1}},
}


def mails() -> list[dict[str, Any]]:
    kinds = {
        "billing": ("Wrong invoice", "the invoices show a payment twice"),
        "shipping": ("Late parcel", "parcels of a courier are late"),
    }
    return [
        {
            "email": {"subject": subject, "text": text, "to": f"{label}@help.example"},
            "labels": [label],
        }
        for _ in range(10)
        for label, (subject, text) in kinds.items()
    ]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """The API with a model of e-mails (``mail``) and a model of texts (``m``)."""
    with (
        pytest.MonkeyPatch.context() as patch,
        api(tmp_path_factory.mktemp("explanations"), migrated_sqlite, patch) as service,
    ):
        service.train(service.dataset())
        service.train(service.dataset(mails()), model="mail", features=FEATURES, learner={"algorithm": "svm"})
        yield service


def predict(client: InProcessApi, model: str, instance: dict[str, Any]) -> dict[str, Any]:
    body = {"instances": [instance], "explain": True}
    (prediction,) = client.call("POST", f"/v1/models/{model}/predict", 200, json=body)["predictions"]
    return dict(prediction)


def terms_of(prediction: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {term["term"]: term for item in prediction["explanation"] for term in item["terms"]}


def test_a_message_is_explained_by_its_words_and_their_places_in_the_returned_texts(
    client: InProcessApi,
) -> None:
    prediction = predict(client, "mail", {"raw_email": base64.b64encode(RAW).decode()})
    assert prediction["labels"] == ["billing"]
    texts = prediction["texts"]
    assert texts["subject"] == "Wrong INVOICES"
    assert texts["new_text"] == "My invoice is café wrong, please help me."
    terms = terms_of(prediction)
    assert terms["subject:invoic"]["words"] == ["INVOICES"]
    assert terms["subject:invoic"]["occurrences"] == [{"field": "subject", "start": 6, "end": 14}]
    assert terms["invoic"]["words"] == ["invoice"]
    assert terms["invoic"]["occurrences"] == [{"field": "new_text", "start": 3, "end": 10}]
    assert terms["recipients:bill"]["fields"] == ["recipients"]
    assert set(texts) == {field for term in terms.values() for field in term["fields"]}
    for term in terms.values():
        for place in term["occurrences"]:
            word = texts[place["field"]][place["start"] : place["end"]]
            assert word in term["words"]


def test_a_text_is_explained_by_places_in_it_and_not_returned(client: InProcessApi) -> None:
    text = "\U0001f642 My INVOICE, invoice"
    prediction = predict(client, "m", {"text": text})
    assert "texts" not in prediction
    places = [place for term in terms_of(prediction).values() for place in term["occurrences"]]
    assert places
    assert {place["field"] for place in places} == {"text"}
    assert {text[place["start"] : place["end"]].lower() for place in places} <= {"my", "invoice"}


def test_the_text_that_a_model_of_texts_reads_in_a_message_is_returned(client: InProcessApi) -> None:
    prediction = predict(client, "m", {"email": {"subject": "My invoice", "text": "is wrong"}})
    assert prediction["texts"] == {"text": "My invoice\nis wrong"}


@pytest.mark.parametrize(
    ("kind", "fields", "pointer"),
    [
        ("text", {"subject": {"weight": 2}}, "/features/fields"),
        ("email", {"subject": {"weight": "heavy"}}, "/features/fields/subject/weight"),
        ("email", {"body": {"weight": 1}}, "/features/fields/body"),
        ("email", {name: {"weight": 0} for name in MailFieldsParameters.model_fields}, "/features/fields"),
    ],
)
def test_invalid_fields_are_rejected_at_their_place(
    client: InProcessApi, kind: str, fields: dict[str, Any], pointer: str
) -> None:
    body = {
        "model": "other",
        "dataset_id": client.dataset(mails() if kind == "email" else None),
        "features": {"kind": "text", "fields": fields},
        "learner": {"algorithm": "svm"},
    }
    response = client.send("POST", "/v1/training-jobs", json=body)
    problem = problem_of(response, 422, response.json()["code"])
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_a_version_tells_which_fields_it_reads(client: InProcessApi) -> None:
    fields = client.call("GET", "/v1/models/mail/versions/1", 200)["features"]["fields"]
    assert fields["subject"] == {"weight": 2, "own_terms": True}
    assert fields["recipients"] == {"weight": 1, "own_terms": True}
    assert fields["sender_domain"]["weight"] == 0
