"""Zips of mail as mail programs and operating systems write them: layouts, names and copies."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from models.data.examples import Examples
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.mail_stores.folders import is_mail_store
from models.data.readers.eml_zip import EmlZipOptions
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.labels import LabelTree

SEPARATOR = b"From ann@example.org Thu Jan  1 00:00:00 2026\n"


def message(n: object, fields: bytes = b"") -> bytes:
    return (
        fields + f"From: ann@example.org\nSubject: {n}\nMessage-ID: <{n}@b.example>\n\nhello {n}\n".encode()
    )


def mailbox_of(*messages: bytes) -> bytes:
    return b"\n".join(SEPARATOR + raw for raw in messages)


def make_zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def read(
    content: bytes, folder: Path, format_: str | None = "eml_zip", **options: Any
) -> tuple[DatasetReport, Examples]:
    limits = options.pop("limits", None)
    parsed = EmlZipOptions.model_validate({"format": "eml_zip", **options}) if format_ else None
    report = ingest(io.BytesIO(content), format_, folder / "set.parquet", options=parsed, limits=limits)
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def labels_by_subject(examples: Examples) -> dict[str, tuple[str, ...]]:
    subjects = [email.raw.split(b"Subject: ")[1].split(b"\n")[0].decode() for email in examples.documents]  # type: ignore[union-attr]
    return dict(zip(subjects, examples.labels, strict=True))


def read_labels(members: dict[str, bytes], folder: Path, **options: Any) -> dict[str, tuple[str, ...]]:
    _, examples = read(make_zip(members), folder, **options)
    return labels_by_subject(examples)


# Copies


def test_one_message_in_several_folders_is_one_example(tmp_path: Path) -> None:
    raw = message(1)
    members = {
        "billing/1.eml": b"Received: by x; 1\n" + raw,
        "ship/1.eml": b"Received: by y; 2\nDelivered-To: b@b.example\n" + raw,
        "sales/1.eml": raw.replace(b"\n", b"\r\n"),
        "other/1.eml": raw + b"P.S. not the same\n",
        "loose.eml": raw,
        "billing/2.eml": message(2),
    }
    report, examples = read(make_zip(members), tmp_path)
    assert list(examples.labels) == [("billing", "sales", "ship"), ("billing",), ("other",)]
    assert report.warnings[0].startswith("copies of messages, such as one message in several folders: 3;")


def test_copies_in_several_mailboxes_and_files_are_one_example(tmp_path: Path) -> None:
    members = {
        "a.mbox": mailbox_of(message(1), message(2, b"Status: R\n")),
        "b.mbox": mailbox_of(message(3), message(1, b"X-Mozilla-Status: 0001\n")),
        "c/cur/1700.M1P1.host:2,S": message(2),
    }
    assert read_labels(members, tmp_path) == {"1": ("a", "b"), "2": ("a", "c"), "3": ("b",)}


def test_a_forged_message_id_merges_nothing(tmp_path: Path) -> None:
    members = {f"{name}/1.eml": message(1) + name.encode() for name in ("a", "b", "c")}
    _, examples = read(make_zip(members), tmp_path)
    assert list(examples.labels) == [("a",), ("b",), ("c",)]


def test_a_message_id_after_a_long_header_is_found(tmp_path: Path) -> None:
    long = b"".join(b"Received: from host%d by host; %d\n" % (i, i) for i in range(1500))
    _, examples = read(make_zip({"a/1.eml": long + message(1), "b/1.eml": message(1)}), tmp_path)
    assert list(examples.labels) == [("a", "b")]


# Layouts


def test_maildir(tmp_path: Path) -> None:
    members = {
        "Billing/cur/1700.M1P1.host:2,S": message(1),
        "Billing/new/1701.M2P1.host": message(2),
        "Billing/tmp/1702.M3P1.host": message(3),
        "Billing/cur/1703.M4P1.host;2,S": message(4),
        "Ship/new/1704.M5P1.host": message(5),
        "Ship/dovecot-uidlist": b"3 V1 N2",
        "new/6.eml": message(6),
    }
    report, examples = read(make_zip(members), tmp_path)
    assert labels_by_subject(examples) == {
        "1": ("Billing",),
        "2": ("Billing",),
        "4": ("Billing",),
        "5": ("Ship",),
        "6": ("new",),
    }
    assert report.warnings[0] == (
        "files in the zip that were not read: 2; unfinished deliveries in a folder tmp of a Maildir: 1, such "
        "as 'Billing/tmp/1702.M3P1.host'; index files of mail programs: 1, such as 'Ship/dovecot-uidlist'"
    )


def test_maildir_with_subfolders(tmp_path: Path) -> None:
    members = {
        "mail/cur/1.host:2,": message(1),
        "mail/.Billing/cur/2.host:2,": message(2),
        "mail/.Billing.2026/cur/3.host:2,": message(3),
        "mail/.Entw&APw-rfe/new/4.host": message(4),
        "mail/.Entw&APw-rfe/cur/5.eml": message(5),
        "mail/.Billing/.hidden": b"",
    }
    report, examples = read(make_zip(members), tmp_path, root="mail", tree=True)
    assert labels_by_subject(examples) == {
        "1": (),
        "2": ("Billing",),
        "3": ("Billing", "Billing/2026"),
        "4": ("Entwürfe",),
        "5": ("Entwürfe",),
    }
    assert report.label_tree == {"Billing/2026": "Billing"}


def test_mh_folders_and_files_without_a_known_suffix(tmp_path: Path) -> None:
    members = {
        "billing/1": message(1),
        "billing/12.": message(2),
        "billing/.mh_sequences": b"cur: 2\n",
        "spam/00001.7c53336b37003a92": SEPARATOR + message(3),
        "spam/notes.txt": message(4),
        "spam/readme.txt": b"Note: this is no message\nSubject: x\n",
        "spam/list.csv": b"a,b\n",
    }
    report, examples = read(make_zip(members), tmp_path)
    assert labels_by_subject(examples) == {
        "1": ("billing",),
        "2": ("billing",),
        "3": ("spam",),
        "4": ("spam",),
    }
    assert "files that are not messages: 2, such as 'spam/readme.txt'" in report.warnings[0]
    assert [email.raw[:5] for email in examples.documents] == [b"From:"] * 4  # type: ignore[union-attr,index]


def test_thunderbird_mailboxes(tmp_path: Path) -> None:
    members = {
        "Inbox": mailbox_of(message(1)),
        "Inbox.msf": b"// <!-- <mdb:mork-z",
        "Inbox.sbd/Billing": mailbox_of(message(2)),
        "Inbox.sbd/Billing.sbd/2026": mailbox_of(message(3), message(4)),
        "Trash": b"",
        "msgFilterRules.dat": b'version="9"\n',
    }
    report, examples = read(make_zip(members), tmp_path, tree=True)
    assert labels_by_subject(examples) == {
        "1": ("Inbox",),
        "2": ("Inbox", "Inbox/Billing"),
        "3": ("Inbox", "Inbox/Billing", "Inbox/Billing/2026"),
        "4": ("Inbox", "Inbox/Billing", "Inbox/Billing/2026"),
    }
    assert "index files of mail programs: 2" in report.warnings[0]
    assert "empty files: 1, such as 'Trash'" in report.warnings[0]
    with pytest.raises(BadDataError, match="omit label_tree"):
        ingest(
            io.BytesIO(make_zip(members)),
            "eml_zip",
            tmp_path / "x.parquet",
            options=EmlZipOptions(format="eml_zip", tree=True),
            tree=LabelTree({"x": "y"}),
        )


def test_apple_mail(tmp_path: Path) -> None:
    raw = message(2)
    plist = b'<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict/></plist>\n'
    members = {
        "Billing.mbox/mbox": mailbox_of(message(1)),
        "Billing.mbox/table_of_contents": b"\0\0",
        "Work.mbox/Ship.mbox/4F-A1/Data/1/Messages/2.emlx": b"%-10d\n" % len(raw) + raw + plist,
        "Work.mbox/Ship.mbox/4F-A1/Data/1/Messages/3.partial.emlx": b"7\n" + message(3) + plist,
        "Work.mbox/Ship.mbox/4F-A1/Data/1/Messages/4.emlx": message(4),
    }
    _, examples = read(make_zip(members), tmp_path)
    assert labels_by_subject(examples) == {
        "1": ("Billing",),
        "2": ("Work/Ship",),
        "3": ("Work/Ship",),
        "4": ("Work/Ship",),
    }
    assert [email.raw for email in examples.documents] == [message(n) for n in range(1, 5)]  # type: ignore[union-attr]


def test_google_takeout(tmp_path: Path) -> None:
    members = {
        "Takeout/archive_browser.html": b"<html></html>",
        "Takeout/Mail/All mail.mbox": mailbox_of(
            message(1, b'X-Gmail-Labels: Inbox,"Sales, EMEA"\n'),
            message(2, b"X-Gmail-Labels: =?UTF-8?Q?B=C3=BCro?=,Inbox\n"),
            message(3),
        ),
    }
    expected = {"1": ("Sales, EMEA",), "2": ("Büro",), "3": ()}
    assert read_labels(members, tmp_path, ignore=["Inbox"]) == expected
    report, _ = read(make_zip(members), tmp_path)
    assert "files that are not messages: 1, such as 'Takeout/archive_browser.html'" in report.warnings[0]
    assert not any("root" in warning for warning in report.warnings)


def test_labels_in_a_header_field_of_files(tmp_path: Path) -> None:
    members = {
        "x/1.eml": message(1, b"X-Team: a;b\n"),
        "y.mbox": mailbox_of(message(2, b"X-Team: c\n")),
        "x/3.eml": message(3),
    }
    options = {"label_header": "X-Team", "label_separator": ";"}
    assert read_labels(members, tmp_path, **options) == {"1": ("a", "b"), "2": ("c",), "3": ()}
    assert read_labels(members, tmp_path, ignore=["x"]) == {"1": (), "2": ("y",), "3": ()}


def test_odd_lines_of_mailboxes_are_counted_for_each_mailbox(tmp_path: Path) -> None:
    odd = b"From -\n" + message(1)
    members = {f"{name}.mbox": odd.replace(b"1", name.encode()) for name in "abcde"}
    report, _ = read(make_zip(members), tmp_path)
    assert report.warnings[0] == (
        "separator lines without a date in 'a.mbox': 1 (line 1); a header field follows each of them, so a "
        "message begins there"
    )
    assert report.warnings[3] == "other mailboxes with such lines: 2"


def test_messages_of_outlook_and_data_files_state_what_to_do(tmp_path: Path) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    with pytest.raises(BadDataError, match=r"line 1, billing/a\.msg: .*Outlook.*save the message as \.eml"):
        read(make_zip({"billing/a.msg": ole}), tmp_path)
    assert read_labels({"billing/a.msg": message(1)}, tmp_path) == {"1": ("billing",)}
    with pytest.raises(BadDataError, match=r"no messages; it contains data files of Outlook .* with readpst"):
        read(make_zip({"a/x.pst": b"!BDN"}), tmp_path)


@pytest.mark.parametrize(
    "members",
    [
        {"a/cur/1.host:2,S": message(1)},
        {"a/1": message(1), "a/2": message(2)},
        {"a.mbox": mailbox_of(message(1)), "b.mbox": mailbox_of(message(2))},
        {"Takeout/Mail/a.mbox": mailbox_of(message(1))},
        {"Inbox": mailbox_of(message(1)), "Inbox.msf": b"x"},
        {"a/1.emlx": message(1)},
        {"a/b.mbox/mbox": mailbox_of(message(1))},
    ],
)
def test_zips_of_mail_are_detected(members: dict[str, bytes], tmp_path: Path) -> None:
    assert is_mail_store(members)
    report, _ = read(make_zip(members), tmp_path, None)
    assert report.kind == "email"


# Names and members


def with_raw_names(names: dict[bytes, bytes], extra: dict[bytes, bytes] | None = None) -> bytes:
    """Return a zip whose names have these bytes, without the UTF-8 flag."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for j, (raw, content) in enumerate(names.items()):
            info = zipfile.ZipInfo(f"{j:0{len(raw)}d}")
            info.extra = (extra or {}).get(raw, b"")
            archive.writestr(info, content)
    content_ = out.getvalue()
    for j, raw in enumerate(names):
        content_ = content_.replace(f"{j:0{len(raw)}d}".encode(), raw)
    return content_


@pytest.mark.parametrize(
    ("encoding", "name", "guess"),
    [
        ("utf-8", "Größe/größe-1.eml", None),
        ("utf-8", "請求書/mail-1.eml", None),
        ("cp1252", "Grün/message-1.eml", "cp1252"),
        ("cp1252", "Café – été/mail.eml", "cp1252"),
        ("cp437", "Grün/message-1.eml", "cp437"),
        ("cp437", "Straße/message-1.eml", "cp437"),
        ("cp437", "Élèves à Noël/mail.eml", None),
    ],
)
def test_names_without_the_utf8_flag(encoding: str, name: str, guess: str | None, tmp_path: Path) -> None:
    raw = name.encode(encoding, "replace")
    report, examples = read(with_raw_names({raw: message(1), b"ascii/number-2.eml": message(2)}), tmp_path)
    folder = raw.decode(encoding).rpartition("/")[0]
    assert labels_by_subject(examples)["1"] == (folder,)
    if guess:
        assert report.warnings[0] == (
            f"names in the zip whose encoding is not stated: 1; they were read as {guess}, such as "
            f"{raw.decode(encoding)!r}; if this is wrong, set the option name_encoding"
        )


def test_the_encoding_of_names_can_be_set(tmp_path: Path) -> None:
    content = with_raw_names({"請求書/message-1.eml".encode("cp932"): message(1)})
    report, examples = read(content, tmp_path, name_encoding="cp932")
    assert list(examples.labels) == [("請求書",)]
    assert not any("encoding" in warning for warning in report.warnings)


def test_a_unicode_name_in_an_extra_field_is_used(tmp_path: Path) -> None:
    raw = b"Gr?n/message-\xff1.eml"
    field = b"\x01" + struct.pack("<I", zlib.crc32(raw)) + "Grün/1.eml".encode()
    content = with_raw_names({raw: message(1)}, {raw: struct.pack("<HH", 0x7075, len(field)) + field})
    _, examples = read(content, tmp_path)
    assert list(examples.labels) == [("Grün",)]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("billing\\2026\\1.eml", "billing/2026"),
        ("./billing/1.eml", "billing"),
        ("/billing/1.eml", "billing"),
        ("C:\\mail\\1.eml", "mail"),
        ("../billing//1.eml", "billing"),
        ("...billing/cur/1.eml", "billing"),
    ],
)
def test_paths_are_normalized(name: str, label: str, tmp_path: Path) -> None:
    content = with_raw_names({name.encode(): message(1)})
    assert list(read(content, tmp_path)[1].labels) == [(label,)]


def test_every_member_is_read_or_counted(tmp_path: Path) -> None:
    members = {
        "a/1.eml": message(1),
        "a/.hidden/2.eml": message(2),
        ".a/3.eml": message(3),
        "__MACOSX/a/._1.eml": b"x",
        "a/.DS_Store": b"x",
        "a/Thumbs.db": b"x",
        "a/b.zip": b"PK",
        "a/b.pdf": b"%PDF",
        "a/empty": b"",
        "b/9.eml": message(9),
    }
    report, examples = read(make_zip(members), tmp_path, root="a")
    assert labels_by_subject(examples) == {"1": ()}
    assert report.warnings[0] == (
        "files in the zip that were not read: 9; files of the operating system: 3; "
        "hidden files or files in hidden folders: 2, such as 'a/.hidden/2.eml'; "
        "archives inside the zip: 1, such as 'a/b.zip' (extract them first); "
        "files that are not messages: 1, such as 'a/b.pdf'; empty files: 1, such as 'a/empty'; "
        "messages or mailboxes outside the folder 'a': 1, such as 'b/9.eml'"
    )


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_members_are_rejected(method: int, tmp_path: Path) -> None:
    whole = make_zip({"a/1.eml": message(1) * 20, "a/2.eml": message(2)}, method)
    start = whole.index(b"a/1.eml") + len(b"a/1.eml")
    for place in (start + 4, start - 30 - len(b"a/1.eml")):
        damaged = whole[:place] + b"\xff\xff" + whole[place + 2 :]
        with pytest.raises(BadDataError, match=r"the member 'a/1\.eml' of the zip is damaged"):
            read(damaged, tmp_path)


def test_large_members_are_read(tmp_path: Path) -> None:
    raw = message(1) + bytes(range(256)) * 2**13
    _, examples = read(make_zip({"a/1.eml": raw}, zipfile.ZIP_STORED), tmp_path)
    assert [email.raw for email in examples.documents] == [raw]  # type: ignore[union-attr]
    with pytest.raises(BadDataError, match="longer than the limit of 1,000 bytes"):
        read(make_zip({"a/1.eml": raw}), tmp_path, limits=IngestLimits(record_bytes=1000))


def test_the_limit_on_decompressed_bytes_counts_each_member_once(tmp_path: Path) -> None:
    members = {f"a/{i}.eml": message(i) for i in range(20)} | {"b.mbox": mailbox_of(message("x"))}
    total = sum(map(len, members.values()))
    assert (
        read(make_zip(members), tmp_path, limits=IngestLimits(decompressed_bytes=total))[0].n_examples == 21
    )
    with pytest.raises(BadDataError, match="after decompression"):
        read(make_zip(members), tmp_path, limits=IngestLimits(decompressed_bytes=total - 1))
