"""Which documents are the same."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models.data.digests import digest_of, document_groups
from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.store import StoredExamples
from models.mail import Email, read_message


def mail(
    number: int,
    *,
    subject: str = "Invoice 17",
    sender: str = "ann@example.org",
    text: str = "The amount is wrong.\n",
    attachment: str = "invoice.pdf",
) -> bytes:
    """Return a message with a text, its HTML and an attachment.

    The number changes id, date, recipient, server, boundaries and the content of the attachment.
    """
    message = EmailMessage()
    message["Received"] = f"from mx{number}.example.org"
    message["Subject"] = subject
    message["From"] = sender
    message["To"] = f"desk{number}@example.com"
    message["Date"] = f"Mon, {number} Jun 2024 10:00:00 +0200"
    message["Message-ID"] = f"<{number}@example.org>"
    message.set_content(text)
    message.add_alternative(f"<p>{text}</p>", subtype="html")
    message.add_attachment(bytes(number), maintype="application", subtype="pdf", filename=attachment)
    for i, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"==={number}.{i}===")
    return message.as_bytes()


def same(*documents: object) -> bool:
    return len({digest_of(document) for document in documents}) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [["a", "bill", "of", "May"], ["a", "bill", "of", "May"] * 99])
def test_white_space_between_words_does_not_count(words: list[str]) -> None:
    assert same(" ".join(words), "\r\n\t".join(words) + "\n", " " + (" " * 999).join(words))
    assert not same(" ".join(words), " ".join(words).lower())


def test_a_space_can_make_another_document() -> None:
    assert not same("1 23", "12 3")


def test_digests_are_the_same_in_every_process() -> None:
    assert digest_of("a bill") == 5644740404999562062


def test_numeric_documents_are_the_same_if_their_values_are() -> None:
    rows = csr_array(
        (np.array([2.0, 1.0, 0.0, 2.0, 1.0, 2.0]), np.array([0, 1, 2, 0, 1, 1]), np.array([0, 2, 5, 6]))
    )
    examples = Examples("features", FeatureRows(["b", "a", "c"], rows), [(), (), ()])
    assert document_groups(examples).tolist() == [0, 0, 1]
    assert examples.document_digests()[0] == digest_of({"a": 1, "c": 0, "b": 2.0})
    assert not same({"a": 1.0}, {"b": 1.0}, {"a": 2.0}, {})


def test_a_message_that_is_sent_again_is_the_same_document() -> None:
    first, again = mail(1), mail(2)
    assert same(*(Email(raw=raw) for raw in (first, again, again.replace(b"\n", b"\r\n") + b"\r\n")))
    assert same(read_message(first), read_message(again))
    assert same(*(Email(subject="Hi", from_="Ann", to=to, text="a bill") for to in ("desk", "Ben")))


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "Offer"},
        {"sender": "ben@example.org"},
        {"text": "It is right."},
        {"attachment": "offer.pdf"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_message_with_other_content_is_another_document(change: dict[str, Any]) -> None:
    one, other = mail(1), mail(1, **change)
    assert not same(Email(raw=one), Email(raw=other))
    assert not same(read_message(one), read_message(other))


def test_a_quotation_is_a_document_of_its_own() -> None:
    text = "The amount is wrong.\n"
    quoting = mail(1, text=f"You wrote:\n> {text}")
    assert not same(Email(raw=mail(1, text=text)), Email(raw=quoting))
    assert not same(text, f"> {text}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"Hello\nAnn\n\nbye", b"Hello\nBen\n\nbye"),
        (b"Subject: a,\n b\n\nbye", b"Subject: a,\n c\n\nbye"),
        (b"Subject: x", b"Subject: y"),
        (b"", b"Subject: x"),
    ],
    ids=["no headers", "folded field", "no body", "empty"],
)
def test_unusual_messages_are_told_apart(one: bytes, other: bytes) -> None:
    assert not same(Email(raw=one), Email(raw=other))
    assert same(Email(raw=one), Email(raw=one + b"\n\n"))


@pytest.mark.parametrize("cached", [True, False])
def test_a_stored_data_set_has_the_digests_of_its_documents(cached: bool, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb+") as file:
        file.writelines(f'{{"text": "text {i % 3}", "labels": ["a"]}}\n'.encode() for i in range(7))
        file.seek(0)
        ingest(file, "jsonl", tmp_path / "set.parquet")
    stored = StoredExamples(tmp_path / "set.parquet")
    part = stored.where(np.arange(7) % 2 == 0)
    if cached:
        assert document_groups(stored).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert part.document_digests().tolist() == [digest_of(f"text {i % 3}") for i in (0, 2, 4, 6)]
