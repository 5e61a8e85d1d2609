"""Where messages begin and end in mailboxes (mbox), as people have them."""

from __future__ import annotations

import io
import mailbox
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.data.mail_stores.mailbox_file import Oddities, Places, split_mailbox
from models.errors import BadDataError

DATED = "From ann@example.org Thu Jan  1 00:00:00 2026\n"


def split(content: str | bytes, step: int = 2**20, max_bytes: int = 2**20) -> tuple[list[str], list[str]]:
    """Return the messages, and the warnings up to the first semicolon."""
    file = io.BytesIO(content.encode() if isinstance(content, str) else content)
    oddities = Oddities()
    messages = list(split_mailbox(lambda size: file.read(min(size, step)), max_bytes, oddities))
    texts = [(message.raw or b"").decode("latin-1") for message in messages]
    return texts, [warning.partition(";")[0] for warning in oddities.warnings()]


A = "Subject: a\nFrom: ann@example.org\n\none\n"
B = "Received: by b.example\nSubject: b\n\ntwo\n"


@pytest.mark.parametrize(
    "separator",
    [
        "From ann@example.org Thu Jan  1 00:00:00 2026",
        "From ann@example.org  Thu, 1 Jan 2026 00:00:00 +0100 (CET) remote from uucp",
        "From 1850@xxx Thu Jan 01 00:00:00 +0000 2026",
        "From - Thu Jan 01 00:00:00 2026",
        "From ???@??? Thu Jan 01 00:00:00 2026",
        "From MAILER-DAEMON Thu Jan 01 00:00:00 2026",
        "From ann@example.org 2026-01-01 00:00:00",
        'From "Ann Lee" <ann@example.org> Thu Jan  1 00:00:00 2026',
    ],
)
def test_separators_with_a_date(separator: str) -> None:
    assert split(f"{separator}\n{A}\n{separator}\n{B}\n") == ([A, B], [])


@pytest.mark.parametrize("separator", ["From ", "From -", "From - ", "From ann@example.org", "From ann"])
def test_separators_without_a_date(separator: str) -> None:
    messages, warnings = split(f"{separator}\n{A}\n{separator}\n{B}\n")
    assert messages == [A, B]
    assert warnings == ["separator lines without a date: 2 (lines 1, 7)"]


def test_separators_without_a_blank_line_before_them() -> None:
    assert split(DATED + A + DATED + B) == (
        [A, B],
        ["separator lines without a blank line before them: 1 (line 6)"],
    )


@pytest.mark.parametrize(
    "text",
    [
        "From now on at 12:30 we meet upstairs.\n",
        "From now on at 12:30 we meet upstairs.\nNote: the lift is broken.\n",
        "From 10:00 until 11:00\nThe office is closed.\n",
        "From London\nDear: nobody\n",
        "From me at 10:15\nSubject: one field alone is a line of text\n\n",
        "From ann@example.org I heard\nthat it is late.\n",
        "From ann@example.org Thu Jan  1 00:00:00 2026\nwrote a letter.\n",
        "From \n\n",
    ],
)
@pytest.mark.parametrize("blank", ["", "\n"])
def test_lines_of_text_that_begin_with_from(text: str, blank: str) -> None:
    body = f"Subject: a\n\nHello\n{blank}{text}bye\n"
    messages, warnings = split(f"{DATED}{body}\n{DATED}{B}")
    assert messages == [body, B]
    line = 5 + len(blank)
    assert warnings == [f"lines inside messages that begin with 'From ': 1 (line {line})"]


def test_protected_lines_are_restored_in_the_body() -> None:
    protected = ">From a to b\n>>From quoted\n> From x\n>Fromage\n"
    body = "From a to b\n>From quoted\n> From x\n>Fromage\n"
    header = ">From ann@example.org Thu Jan  1 00:00:00 2026\nSubject: a\n\n"
    assert split(DATED + header + protected) == ([header + body], [])


def test_the_content_length_is_not_used() -> None:
    for length in (0, 3, 10**9):
        message = f"Content-Length: {length}\nSubject: a\n\none\n"
        assert split(DATED + message + "\n" + DATED + B)[0] == [message, B]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
@pytest.mark.parametrize("step", [1, 7, 2**20])
def test_line_ends(end: str, step: int) -> None:
    content = (DATED + A + "\n" + DATED + B + "\n").replace("\n", end)
    messages, warnings = split(content, step if end != "\r" else 2**20)
    assert warnings == []
    assert [text.replace("\r", "").rstrip("\n") for text in messages] == [A.rstrip("\n"), B.rstrip("\n")]
    if end == "\r\n":
        assert messages == [A.replace("\n", end), B.replace("\n", end)]


def test_blank_lines_and_a_byte_order_mark_before_the_first_separator() -> None:
    assert split("\ufeff" + DATED + A) == ([A], [])
    assert split("\n\r\n \n" + DATED + A, step=3) == ([A], [])


def test_mailboxes_without_messages() -> None:
    assert split("") == ([], [])
    assert split("\n \n", step=1) == ([], [])


@pytest.mark.parametrize("content", ["Subject: x\n\n", "F", " From ann@example.org\n", "\nfrom x\n"])
def test_files_that_do_not_begin_with_a_separator_are_rejected(content: str) -> None:
    with pytest.raises(BadDataError, match="a mailbox must begin with a line 'From ADDRESS DATE'"):
        split(content, step=1)


def test_messages_without_content() -> None:
    assert split(DATED) == ([""], [])
    assert split(DATED.strip()) == ([""], [])
    assert split(DATED + DATED + A) == (["", A], [])
    assert split(DATED + "\n" + DATED + A) == (["", A], [])


def test_lines_are_numbered() -> None:
    content = f"{DATED}{A}\n{DATED}{B}\n{DATED}x".encode()
    for step in (1, 64, 2**20):
        file = io.BytesIO(content)
        lines = [m.line for m in split_mailbox(lambda size: file.read(min(size, step)), 2**20)]  # noqa: B023
        assert lines == [1, 7]


def test_a_message_over_the_limit_takes_little_memory() -> None:
    content = (DATED + A + "\n" + DATED + "Subject: x\n\n" + ("x" * 99 + "\n") * 300_000 + DATED + B).encode()
    file = io.BytesIO(content)
    tracemalloc.start()
    try:
        messages = list(split_mailbox(file.read, 1000))
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
    assert [message.raw and message.raw.decode() for message in messages] == [A, None, B]
    assert [message.line for message in messages] == [1, 7, 300_010]


def test_a_separator_line_longer_than_a_buffer() -> None:
    file = io.BytesIO(b"From " + b"x" * 10**6 + b"\n" + A.encode())
    assert [message.raw for message in split_mailbox(file.read, 10**5)] == [A.encode()]


def test_the_standard_library_reads_the_same_messages_where_it_applies_the_same_rule(tmp_path: Path) -> None:
    """It splits at every line ``From `` after a blank line, and does not restore protected lines."""
    box = mailbox.mbox(tmp_path / "box")
    bodies = ["one\n", "two\n\nFrom then on\nFrom x\n", "", "\n\nthree\n\n"]
    for body in bodies:
        box.add(f"Subject: s\n\n{body}".encode())
    box.flush()
    messages, warnings = split((tmp_path / "box").read_bytes())
    expected = [box.get_bytes(key).decode() for key in box.keys()]  # noqa: SIM118 - a mailbox is not a mapping
    box.close()
    assert messages == [text.replace(">From ", "From ") for text in expected]
    assert warnings == []


PIECES = [
    *("From a@example.org Mon Jun 10 09:14:00 2024\n", "From \n", "Subject: x\n", "X-Mozilla-Status: 0008\n"),
    *("\n", "\r\n", "text\n", ">From now on\n", ">>From\n", "From here\n", "long " * 20 + "\n", "\ufeff"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(3, 100))
def test_messages_are_read_again_from_their_places(pieces: list[str], step: int) -> None:
    content = ("From a@example.org Mon Jun 10 09:14:00 2024\nSubject: first\n\n" + "".join(pieces)).encode()
    for raw in (content, b"\xef\xbb\xbf\n" + content):
        file, places = io.BytesIO(raw), Places()

        def read(n_bytes: int, file: io.BytesIO = file) -> bytes:
            return file.read(min(n_bytes, step))

        messages = list(split_mailbox(read, 60, places=places))
        assert list(places.messages(io.BytesIO(raw).read)) == messages
        places.remove_last()
        assert list(places.messages(io.BytesIO(raw).read)) == messages[:-1]
