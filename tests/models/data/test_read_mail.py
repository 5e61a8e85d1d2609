"""Mailboxes (mbox) and zips of messages."""

from __future__ import annotations

import gzip
import io
import mailbox
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.advice import Suggestion
from models.data.examples import Examples
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.eml_zip import EmlZipOptions
from models.data.readers.registry import FORMATS
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.labels import LabelTree
from models.mail.email import Email


def read(content: bytes, format_: str, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    arguments = {name: options.pop(name) for name in ("limits", "max_bad_records") if name in options}
    report = ingest(
        io.BytesIO(content),
        format_,
        folder / "set.parquet",
        options=FORMATS[format_].options.model_validate({"format": format_, **options}),
        **arguments,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def raws(examples: Examples) -> list[bytes]:
    return [email.raw or b"" for email in examples.documents if isinstance(email, Email)]  # type: ignore[union-attr]


def message(labels: str, body: str = "hello\n") -> EmailMessage:
    result = EmailMessage()
    result["Subject"] = "s"
    result["X-Gmail-Labels"] = labels
    result.set_content(body)
    return result


SEPARATOR = b"From me@example.org Thu Jan 01 00:00:00 1970\n"


def test_a_mailbox_written_by_the_standard_library(tmp_path: Path) -> None:
    box = mailbox.mbox(tmp_path / "box")
    bodies = ["one\n", "From now on, all is well.\n\nFrom then on too.\n", "Grüße\n" * 50, ""]
    for body in bodies:
        box.add(mailbox.mboxMessage(message('Billing,"Sales"', body)))
    box.flush()
    report, examples = read((tmp_path / "box").read_bytes(), "mbox", tmp_path)
    # The standard library protects lines that begin with "From" and does not restore them.
    assert raws(examples) == [box.get_bytes(key).replace(b"\n>From ", b"\nFrom ") for key in box.keys()]  # noqa: SIM118 - a mailbox is not a mapping
    assert report.label_counts == {"Sales": 4, "Billing": 4}
    assert report.kind == "email"
    box.close()


def test_text_lines_that_look_like_separators(tmp_path: Path) -> None:
    body = b"X-Gmail-Labels: a\n\nFrom what I know\n\nFrom here to there\nFrom me at 10:15\n"
    report, examples = read(SEPARATOR + body + b"\n" + SEPARATOR + body, "mbox", tmp_path)
    assert raws(examples) == [body]  # two copies
    assert report.warnings[0].startswith(
        "lines inside messages that begin with 'From ': 6 (lines 4, 6, 7, 12, 14, ...)"
    )


def test_labels_of_a_mailbox(tmp_path: Path) -> None:
    content = b"\r\n".join(
        [
            SEPARATOR.strip(),
            b"x-gmail-LABELS: =?UTF-8?Q?Caf=C3=A9=2CInbox?=,",
            b"\t b",
            b"X-Gmail-Labels: c",
            b"",
            b"X-Gmail-Labels: in the body",
            b"",
            SEPARATOR.strip(),
            b"Subject: none",
            b"",
            b"text",
        ]
    )
    report, examples = read(content, "mbox", tmp_path, ignore=["Inbox"])
    assert list(examples.labels) == [("Café", "b", "c"), ()]
    assert report.n_unlabelled == 1
    keys = SEPARATOR + b"X-Keys: a b,c\n\nbody\n"
    _, examples = read(keys, "mbox", tmp_path, label_header="X-Keys", label_separator=" ")
    assert list(examples.labels) == [("a", "b,c")]


def labels_of(fields: str, folder: Path, **options: Any) -> tuple[str, ...]:
    _, examples = read(SEPARATOR + fields.encode() + b"\nbody\n", "mbox", folder, **options)
    return examples.labels[0]


def test_labels_in_quotes_can_contain_the_separator(tmp_path: Path) -> None:
    assert labels_of('X-Gmail-Labels: Inbox,"Sales, EMEA",Billing\n', tmp_path) == (
        "Billing",
        "Inbox",
        "Sales, EMEA",
    )
    folded = 'X-Gmail-Labels: =?UTF-8?Q?"K=C3=B6ln,_S=C3=BCd",Inbox?=,\r\n =?UTF-8?Q?B=C3=BCro?=\r\n'
    assert labels_of(folded, tmp_path, ignore=["Inbox"]) == ("Büro", "Köln, Süd")


def test_labels_of_several_header_fields(tmp_path: Path) -> None:
    fields = "X-Mozilla-Keys: urgent  billing   \nX-Team: sales emea\nX-Other: c\n"
    names = ["x-mozilla-keys", "X-Team"]
    expected = ("billing", "emea", "sales", "urgent")
    assert labels_of(fields, tmp_path, label_header=names, label_separator=" ") == expected
    only = labels_of(fields, tmp_path, label_header="X-Mozilla-Keys", label_separator=" ")
    assert only == ("billing", "urgent")


def test_messages_that_thunderbird_has_deleted_are_skipped_and_counted(tmp_path: Path) -> None:
    kept = SEPARATOR + b"X-Mozilla-Status: 0001\nX-Gmail-Labels: a\n\nX-Mozilla-Status: 0009\n\n"
    deleted = SEPARATOR + b"X-Mozilla-Status: 0009\nX-Gmail-Labels: b\n\ntwo\n\n"
    report, examples = read(kept + deleted, "mbox", tmp_path)
    assert list(examples.labels) == [("a",)]
    assert report.warnings[0].startswith(
        "messages that the mail program has deleted but not removed: 1 (line 7)"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "contains no examples"),
        (b"Subject: x\n\nbody\n", "line 1: a mailbox must begin with a line 'From"),
        (
            SEPARATOR + b"X-Gmail-Labels: \xff\n\n",
            "line 1, X-Gmail-Labels: the header field cannot",
        ),
        (SEPARATOR + b"X-Gmail-Labels: =?none?q?a?=\n\n", "the header field cannot be decoded"),
        (SEPARATOR + b"X-Gmail-Labels: a\x01b\n\n", "control characters"),
    ],
)
def test_invalid_mailboxes_are_rejected(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(content, "mbox", tmp_path)


def test_a_message_over_the_limit_is_rejected_and_the_next_one_read(tmp_path: Path) -> None:
    good = SEPARATOR + b"X-Gmail-Labels: a\n\nbody\n\n"
    other = SEPARATOR + b"X-Gmail-Labels: a\n\nother\n\n"
    huge = SEPARATOR + b"X-Gmail-Labels: a\n\n" + b"a" * 300_000 + b"\nFrom\n\n"
    report, examples = read(
        good + huge + other, "mbox", tmp_path, limits=IngestLimits(record_bytes=1000), max_bad_records=1
    )
    assert examples.n_examples == 2
    assert report.bad_records[0].line == 6
    assert "longer than the limit of 1,000 bytes" in report.bad_records[0].reason


MESSAGE = b"From: ann@example.org\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: s\n"


def mailbox_of(*messages: tuple[str, bytes]) -> bytes:
    return b"\n".join(SEPARATOR + b"X-Gmail-Labels: %b\n" % label.encode() + raw for label, raw in messages)


def test_copies_of_a_message_in_a_mailbox_are_one_example(tmp_path: Path) -> None:
    content = mailbox_of(
        ("a", b"Received: by x\nMessage-ID: <1@b.example>\n" + MESSAGE + b"\none\n"),
        ("b", b"Message-ID: <1@b.example>\n" + MESSAGE + b"\nother text\n"),
        ("c", b"MESSAGE-ID:\n <1@b.example>\nReceived: by y\n" + MESSAGE + b"\none\n\n"),
        ("d", b"Message-ID: <2@b.example>\n" + MESSAGE + b"\none\n"),
        ("a, e", (b"Message-ID: <1@b.example>\n" + MESSAGE + b"\none\n").replace(b"\n", b"\r\n")),
        ("", MESSAGE + b"\none\n"),
    )
    report, examples = read(content, "mbox", tmp_path)
    assert list(examples.labels) == [("a", "c", "e"), ("b",), ("d",), ()]
    assert [raw.count(b"Received: by x") for raw in raws(examples)] == [1, 0, 0, 0]
    assert report.warnings[0] == (
        "copies of messages, such as one message in several folders: 2; "
        "each message is one example with the labels of all its copies"
    )


def test_messages_without_a_message_id_are_copies_if_all_bytes_are_equal(tmp_path: Path) -> None:
    content = mailbox_of(
        ("a", MESSAGE + b"\none\n"), ("a", MESSAGE + b"\none\n"), ("b", MESSAGE + b"\none\n")
    )
    _, examples = read(content, "mbox", tmp_path)
    assert list(examples.labels) == [("a",), ("b",)]


def test_a_copy_with_an_invalid_label_is_reported(tmp_path: Path) -> None:
    raw = b"Message-ID: <1@b.example>\n" + MESSAGE + b"\none\n"
    content = mailbox_of(("a", raw), ("b\x01", raw), ("c", raw))
    report, examples = read(content, "mbox", tmp_path, max_bad_records=1)
    assert list(examples.labels) == [("a", "c")]
    assert "control characters" in report.bad_records[0].reason


def test_a_compressed_mailbox_is_read(tmp_path: Path) -> None:
    report, _ = read(gzip.compress(mailbox_of(("a", MESSAGE), ("b", MESSAGE + b"\nx"))), "mbox", tmp_path)
    assert report.n_examples == 2


def make_zip(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def test_folders_are_labels(tmp_path: Path) -> None:
    content = make_zip(
        ("sales/", b""),
        ("sales/2.eml", b"two"),
        ("sales/1.EML", b"one"),
        ("billing/x.eml", b"two"),
        ("billing/Ärger, 🚀/y.eml", b"three"),
        ("loose.eml", b"four"),
        ("notes.txt", b"none"),
        ("__MACOSX/sales/._1.eml", b"junk"),
        ("sales/.hidden.eml", b"junk"),
    )
    report, examples = read(content, "eml_zip", tmp_path)
    labels = dict(zip(raws(examples), examples.labels, strict=True))
    assert labels == {
        b"one": ("sales",),
        b"two": ("billing", "sales"),
        b"three": ("billing/Ärger, 🚀",),
        b"four": (),
    }
    assert report.warnings[:1] == [
        (
            "files in the zip that were not read: 3; files of the operating system: 1; files that are not "
            "messages: 1, such as 'notes.txt'; hidden files or files in hidden folders: 1, such as "
            "'sales/.hidden.eml'"
        )
    ]
    assert report.label_tree == {}


def test_nested_folders_can_be_a_label_tree(tmp_path: Path) -> None:
    content = make_zip(("a/b/c/1.eml", b"one"), ("a/2.eml", b"two"))
    report, examples = read(content, "eml_zip", tmp_path, tree=True)
    assert list(examples.labels) == [("a",), ("a", "a/b", "a/b/c")]
    assert report.label_tree == {"a/b": "a", "a/b/c": "a/b"}
    with pytest.raises(BadDataError, match="omit label_tree"):
        ingest(
            io.BytesIO(content),
            "eml_zip",
            tmp_path / "set.parquet",
            options=EmlZipOptions(format="eml_zip", tree=True),
            tree=LabelTree({"x": "y"}),
        )


def test_an_outer_folder_is_no_part_of_the_labels_unless_root_is_empty(tmp_path: Path) -> None:
    content = make_zip(("my/mail/a/1.eml", b"one"), ("my/mail/b/2.eml", b"two"))
    report, _ = read(content, "eml_zip", tmp_path)
    assert list(report.label_counts) == ["a", "b"]
    assert report.warnings[0] == (
        "the outer folder my/mail/ is not a part of the labels; if it is one, set the option root to ''"
    )
    assert [*report.suggestions.values()] == [Suggestion("options/root", "")]
    report, _ = read(content, "eml_zip", tmp_path, root="")
    assert list(report.label_counts) == ["my/mail/a", "my/mail/b"]
    assert [*report.suggestions.values()] == [Suggestion("options/root", "my")]
    report, _ = read(content, "eml_zip", tmp_path, root="my/mail")
    assert list(report.label_counts) == ["a", "b"]
    assert [*report.suggestions.values()] == []


def test_a_folder_with_messages_is_a_label(tmp_path: Path) -> None:
    report, _ = read(make_zip(("mail/1.eml", b"one")), "eml_zip", tmp_path)
    assert list(report.label_counts) == ["mail"]
    report, _ = read(make_zip(("mail/1.eml", b"one"), ("mail/a/2.eml", b"two")), "eml_zip", tmp_path)
    assert list(report.label_counts) == ["mail", "mail/a"]
    assert [*report.suggestions.values()] == [Suggestion("options/root", "mail")]


def test_unusable_zips_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        BadDataError, match=r"contains no messages; it contains empty files: 1, such as 'a\.txt'"
    ):
        read(make_zip(("a.txt", b"")), "eml_zip", tmp_path)
    with pytest.raises(BadDataError, match="in the folder 'b'; check the option root"):
        read(make_zip(("a/1.eml", b"")), "eml_zip", tmp_path, root="b")
    with pytest.raises(BadDataError, match="the zip is truncated"):
        read(b"PK\x03\x04", "eml_zip", tmp_path)
    content = make_zip(("a/1.eml", b"x"), ("a/2.eml", b"y" * 2000), ("a\x01b/3.eml", b"z"))
    with pytest.raises(BadDataError, match="2 records cannot be used") as caught:
        read(content, "eml_zip", tmp_path, limits=IngestLimits(record_bytes=1000))
    assert [record.field for record in caught.value.records] == ["a\x01b/3.eml", "a/2.eml"]
    bombs = make_zip(*((f"a/{i}.eml", bytes([i]) * 2**20) for i in range(40)))
    with pytest.raises(BadDataError, match="expands to more than 200 times"):
        read(bombs, "eml_zip", tmp_path)


def test_a_member_without_a_name_is_skipped(tmp_path: Path) -> None:
    content = bytearray(make_zip(("a/1.eml", b"one"), ("?", b"")))
    central = content.rindex(b"PK\x01\x02")
    content[central + 28] = 0  # the length of the name, which follows the fixed 46 bytes
    del content[central + 46]
    content[content.rindex(b"PK\x05\x06") + 12] -= 1  # the size of the directory
    report, _ = read(bytes(content), "eml_zip", tmp_path)
    assert report.n_examples == 1


def test_a_directory_offset_before_the_file_is_reported_as_damage(tmp_path: Path) -> None:
    content = bytearray(make_zip(("a/1.eml", b"one")))
    content[content.rindex(b"PK\x05\x06") + 16] += 50  # the offset of the directory
    path = tmp_path / "mail.zip"
    path.write_bytes(content)
    with (
        path.open("rb") as file,
        pytest.raises(BadDataError, match="before the beginning of the file"),
    ):
        ingest(file, "eml_zip", tmp_path / "set.parquet")


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=100), st.integers(0, 200), st.booleans())
def test_damaged_files_are_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int, is_zip: bool
) -> None:
    if is_zip:
        whole, format_ = make_zip(("a/1.eml", b"one" * 30), ("b/2.eml", b"two")), "eml_zip"
    else:
        whole, format_ = (SEPARATOR + b"X-Gmail-Labels: a\n\nbody\n\n") * 2, "mbox"
    damaged = whole[:place] + junk + whole[place + len(junk) :]
    try:
        report, examples = read(damaged, format_, tmp_path_factory.mktemp("fuzz"), max_bad_records=9)
    except BadDataError as error:
        assert str(error)  # noqa: PT017 - both outcomes are valid
    else:
        assert report.n_examples == examples.n_examples >= 1
