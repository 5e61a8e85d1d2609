"""Records that are made from the labels that people chose for messages."""

from __future__ import annotations

import base64
import io
import json
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from models.data.examples import SelectedBy
from models.data.ingestion.feedback_records import FeedbackRecords
from models.data.ingestion.ingest import ingest, store_items
from models.data.ingestion.message_labels import MessageLabels, identity
from models.data.record import Declarations, Record
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail.email import Email
from models.mail.reader import message_key


def raw(number: int, text: str = "") -> bytes:
    """Return a message."""
    head = f"Message-ID: <{number}@example.org>\r\nFrom: ann@example.org\r\nSubject: s\r\n\r\n"
    return f"{head}{text or number}\r\n".encode()


def decisions(*of: tuple[str, bytes, list[str]], selected_by: SelectedBy = "doubt") -> MessageLabels:
    """Return the labels of decisions: their ids, messages and labels, the oldest first."""
    labels = MessageLabels(max_id_chars=500)
    for time, (id_, message, names) in enumerate(of):
        message_id, digest = identity(Email(raw=message))
        labels.add(
            id_, message_id, message_key(message_id, digest), names, time=time, selected_by=selected_by
        )
    labels.sort()
    return labels


def stored(folder: Path, *examples: dict[str, Any]) -> StoredExamples:
    """Return a data set."""
    content = "".join(json.dumps(example) + "\n" for example in examples).encode()
    ingest(io.BytesIO(content), "jsonl", folder / "other.parquet")
    return StoredExamples(folder / "other.parquet")


def example(message: bytes, *labels: str, **fields: Any) -> dict[str, Any]:
    return {"raw_email": base64.b64encode(message).decode(), "labels": list(labels), **fields}


class Store:
    """Keeps messages by the ids of their decisions, and notes which were read."""

    def __init__(self, messages: Mapping[str, bytes]) -> None:
        self._messages = messages
        self.asked: list[str] = []

    def __call__(self, ids: Sequence[str]) -> Iterator[tuple[str, Email]]:
        self.asked += ids
        for id_ in ids:
            if id_ in self._messages:
                yield id_, Email(raw=self._messages[id_])


def summary(items: Iterator[Any]) -> list[tuple[Any, ...]]:
    """Return the id, labels and split of each record."""
    return [
        (item.id, tuple(item.labels), item.split)
        for item in list(items)
        if not isinstance(item, Declarations)
    ]


def test_kept_messages_get_the_labels_of_the_feedback() -> None:
    labels = decisions(("dec_1", raw(1), ["b", "a"]), ("dec_2", raw(2), []), ("dec_3", raw(3), ["a"]))
    records = FeedbackRecords(labels, None, Store({"dec_1": raw(1), "dec_2": raw(2)}), with_splits=False)
    items = list(records.records())
    assert summary(iter(items)) == [
        ("1@example.org", ("a", "b"), None),
        ("2@example.org", (), None),
    ]
    assert records.counts.n_without_message == 1
    last = items[-1]
    assert isinstance(last, Declarations)
    assert last.warnings == [
        "decisions with feedback whose message is not available: 1 of 3; they are not in the data set"
    ]


def test_a_message_of_the_other_data_set_gets_the_new_labels_and_keeps_its_split(tmp_path: Path) -> None:
    other = stored(
        tmp_path,
        example(raw(1), "old", id="x", split="test", weight=2.0, fold=3, unknown_labels=["maybe"]),
        example(raw(9), "old", id="y", split="train"),
    )
    store = Store({"dec_1": raw(1), "dec_2": raw(2)})
    labels = decisions(("dec_1", raw(1), ["new"]), ("dec_2", raw(2), ["new"]))
    records = FeedbackRecords(labels, other, store, with_splits=True)
    items = [item for item in records.records() if isinstance(item, Record)]
    assert summary(iter(items)) == [
        ("x", ("new",), "test"),
        ("y", ("old",), "train"),
        ("2@example.org", ("new",), "train"),
    ]
    assert (items[0].weight, items[0].fold, items[0].unknown) == (2.0, 3, ())
    assert (records.counts.n_relabelled, records.counts.n_new) == (1, 1)
    assert store.asked == ["dec_2"], "the message of the other data set is not read again"


def test_the_random_sample_tests_and_what_a_version_doubted_trains(tmp_path: Path) -> None:
    other = stored(tmp_path, example(raw(0), "old", id="x", split="test"))
    labels = MessageLabels(max_id_chars=500)
    selections: list[SelectedBy] = ["sample", "doubt", "fallback", "volunteered", "doubt"] * 4
    for number, selected_by in enumerate(selections):
        message_id, digest = identity(Email(raw=raw(number)))
        key = message_key(message_id, digest)
        labels.add(f"dec_{number}", message_id, key, ["new"], time=number, selected_by=selected_by)
    labels.sort()
    assert labels.n_sampled == 4
    messages = {f"dec_{number}": raw(number) for number in range(20)}
    uploaded = [  # the upload asks to test on a message of each kind
        Record(line=n, labels=(), email=Email(raw=raw(n)), split="test") for n in range(1, 6)
    ]
    records = FeedbackRecords(labels, other, Store(messages), with_splits=True, warnings=["look"])
    *items, last = records.records(uploaded)
    assert isinstance(last, Declarations)
    assert last.warnings == ["look"]
    first, *added = (item for item in items if isinstance(item, Record))
    assert (first.split, first.selected_by, first.labels) == ("test", None, ("new",)), "as it was selected"
    assert len(added) == 19
    assert all((item.split == "test") == (item.selected_by == "sample") for item in added)


def test_a_selection_that_does_not_exist_is_rejected_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(
        BadDataError, match=r"line 1, /selected_by: selected_by must be one of sample, doubt, "
    ):
        stored(tmp_path, example(raw(1), selected_by="luck"))


def test_a_large_sample_is_for_training_too() -> None:
    messages = {f"dec_{number:03}": raw(number) for number in range(100)}
    of = [(id_, message, ["a"]) for id_, message in messages.items()]

    def tested(n_decisions: int) -> set[str]:
        labels = decisions(*of[:n_decisions], selected_by="sample")
        return {id_ for id_, is_test in zip(labels.ids, labels.is_test, strict=True) if is_test}

    assert len(tested(100)) == 20, "a fifth of all messages"
    assert len(tested(50)) == 10
    assert len(tested(100) & tested(50)) >= 5, "mostly the same as before"
    assert tested(100) == tested(100)


@pytest.mark.parametrize(
    "copy",
    [
        example(raw(1), id="7"),  # the same message
        example(b"Received: x\r\n" + raw(1), id="7"),  # one that a server has passed on
        example(raw(1, "other text"), id="7"),  # the same Message-ID
        {"email": {"text": "hi"}, "id": "<1@example.org>", "labels": []},
        {"email": {"text": "hi"}, "id": "dec_1", "labels": []},
    ],
)
def test_a_message_is_found_by_content_message_id_or_id(copy: dict[str, Any], tmp_path: Path) -> None:
    labels = decisions(("dec_1", raw(1), ["new"]), ("dec_2", raw(2), ["other"]))
    records = FeedbackRecords(labels, stored(tmp_path, copy), Store({}), with_splits=False)
    assert summary(records.records()) == [(copy["id"], ("new",), None)]


def test_a_message_id_of_several_messages_identifies_none_of_them(tmp_path: Path) -> None:
    same = [raw(1, f"text {i}") for i in range(3)]
    labels = decisions(("dec_1", same[0], ["a"]), ("dec_2", same[1], ["b"]))
    other = stored(tmp_path, example(same[1], "old", id="x"), example(same[2], "old", id="y"))
    records = FeedbackRecords(labels, other, Store({"dec_1": same[0]}), with_splits=False)
    assert summary(records.records()) == [
        ("x", ("b",), None),
        ("y", ("old",), None),
        ("1@example.org", ("a",), None),
    ]


def test_the_latest_labels_of_a_message_count(tmp_path: Path) -> None:
    labels = MessageLabels(max_id_chars=500)
    for id_, time, name in (("dec_2", 5.0, "newest"), ("dec_1", 2.0, "older")):
        labels.add(id_, None, "same content", [name], time=time, selected_by="doubt")
    labels.sort()
    position = labels.find("same content", None)
    assert position is not None
    assert labels.labels(position) == ("newest",)


def test_an_id_that_exists_is_replaced_by_the_id_of_the_decision(tmp_path: Path) -> None:
    two = [raw(1, "one text"), raw(1, "another text")]
    labels = decisions(("dec_1", two[0], ["a"]), ("dec_2", two[1], ["b"]))
    records = FeedbackRecords(labels, None, Store({"dec_1": two[0], "dec_2": two[1]}), with_splits=False)
    assert summary(records.records()) == [("1@example.org", ("a",), None), ("dec_2", ("b",), None)]


def test_uploaded_messages_are_joined_and_others_are_omitted(tmp_path: Path) -> None:
    labels = decisions(
        ("dec_1", raw(1), ["a"]), ("dec_2", raw(2), ["b"]), ("dec_3", raw(3), ["c"]), ("dec_4", raw(4), ["d"])
    )
    other = stored(tmp_path, example(raw(1), "old", id="x"))
    records = FeedbackRecords(labels, other, Store({"dec_3": raw(3)}), with_splits=False)
    mailbox = b"".join(b"From a\n" + raw(i).replace(b"\r", b"") + b"\n" for i in (1, 2, 9))
    report = ingest(io.BytesIO(mailbox), "mbox", tmp_path / "t.parquet", transform=records.records)
    (batch,) = StoredExamples(tmp_path / "t.parquet").batches()
    assert list(zip(batch.ids, batch.labels, strict=True)) == [
        ("x", ("a",)),
        ("2@example.org", ("b",)),
        ("3@example.org", ("c",)),
    ]
    counts = records.counts
    assert (counts.n_relabelled, counts.n_new, counts.n_without_message) == (1, 2, 1)
    assert (counts.n_unlabelled, counts.n_repeated) == (1, 1)
    assert "uploaded messages without feedback: 1; they are not in the data set" in report.warnings


def test_an_upload_of_other_documents_is_an_error(tmp_path: Path) -> None:
    records = FeedbackRecords(decisions(("dec_1", raw(1), ["a"])), None, Store({}), with_splits=False)
    content = io.BytesIO(b'{"text": "no mail", "labels": []}\n')
    with pytest.raises(BadDataError, match="only e-mails can be joined with feedback"):
        ingest(content, "jsonl", tmp_path / "t.parquet", transform=records.records)


def test_no_feedback_and_no_message_are_errors(tmp_path: Path) -> None:
    target = tmp_path / "t.parquet"
    with pytest.raises(BadDataError, match="no decision has feedback in this time"):
        store_items(FeedbackRecords(decisions(), None, Store({}), with_splits=False).records(), target)
    records = FeedbackRecords(decisions(("dec_1", raw(1), ["a"])), None, Store({}), with_splits=False)
    with pytest.raises(BadDataError, match=r"no message of the 1 decisions .* set keep_messages"):
        store_items(records.records(), target)
    assert not target.exists()


def test_a_label_that_no_data_set_can_have_is_omitted() -> None:
    labels = decisions(("dec_1", raw(1), ["a", " ", "b\nc"]))
    *records, last = FeedbackRecords(labels, None, Store({"dec_1": raw(1)}), with_splits=False).records()
    assert summary(iter(records)) == [("1@example.org", ("a",), None)]
    assert isinstance(last, Declarations)
    assert last.warnings == [
        "labels of feedback that are blank or have control characters were omitted: ' ', 'b\\nc'"
    ]


def test_a_message_takes_few_bytes() -> None:
    n = 20_000
    tracemalloc.start()
    labels = MessageLabels(max_id_chars=500)
    for i in range(n):
        labels.add(
            f"dec_{i:025}", f"{i}@example.org", f"{i:064}", [f"l{i % 10}"], time=i, selected_by="sample"
        )
    labels.sort()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / n < 250


def test_messages_are_read_from_the_store_one_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.data.ingestion.feedback_records.PAGE_SIZE", 10)
    messages = {f"dec_{i:03}": raw(i) for i in range(35)}
    pages: list[int] = []

    def read(ids: Sequence[str]) -> Iterator[tuple[str, Email]]:
        pages.append(len(ids))
        yield from ((id_, Email(raw=messages[id_])) for id_ in ids)

    labels = decisions(*((id_, message, ["a"]) for id_, message in messages.items()))
    records = iter(FeedbackRecords(labels, None, read, with_splits=False).records())
    for _ in range(10):
        next(records)
    assert pages == [10], "later messages are not read yet"
    assert len(summary(records)) == 25
    assert pages == [10, 10, 10, 5]
