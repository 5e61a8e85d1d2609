"""Mailboxes (mbox) and zips of messages."""

from __future__ import annotations

import io
import mailbox
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    assert raws(examples) == [box.get_bytes(key) for key in box.keys()]  # noqa: SIM118 - a mailbox is not a mapping
    assert report.label_counts == {'"Sales"': 4, "Billing": 4}
    assert report.kind == "email"
    box.close()


def test_text_lines_that_look_like_separators(tmp_path: Path) -> None:
    body = b"X-Gmail-Labels: a\n\nFrom what I know\n\nFrom here to there\nFrom me at 10:15\n"
    _, examples = read(SEPARATOR + body + b"\n" + SEPARATOR + body, "mbox", tmp_path)
    assert raws(examples) == [body, body]


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
    huge = SEPARATOR + b"X-Gmail-Labels: a\n\n" + b"a" * 300_000 + b"\nFrom\n\n"
    report, examples = read(
        good + huge + good, "mbox", tmp_path, limits=IngestLimits(record_bytes=1000), max_bad_records=1
    )
    assert examples.n_examples == 2
    assert report.bad_records[0].line == 6
    assert "longer than the limit of 1,000 bytes" in report.bad_records[0].reason


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
    assert report.warnings[:1] == ["files in the zip that do not end in .eml: 1; they were skipped"]
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


def test_an_outer_folder_can_be_removed_with_root(tmp_path: Path) -> None:
    content = make_zip(("mail/a/1.eml", b"one"), ("mail/b/2.eml", b"two"))
    report, _ = read(content, "eml_zip", tmp_path)
    assert list(report.label_counts) == ["mail/a", "mail/b"]
    assert report.warnings[:1] == [
        "every label begins with mail/; if mail is only an outer folder, set the option root to mail"
    ]
    report, _ = read(content, "eml_zip", tmp_path, root="mail")
    assert list(report.label_counts) == ["a", "b"]
    assert not any("root" in warning for warning in report.warnings)


def test_unusable_zips_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=r"contains no \.eml file"):
        read(make_zip(("a.txt", b"")), "eml_zip", tmp_path)
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
