"""The reader takes shortcuts for common content. They give the same result as the general way."""

from __future__ import annotations

import hashlib
import json
import re
from email import policy
from email.message import Message
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.mail import mime, read_message
from models.mail.charsets import _ASCII_SUPERSETS, clean, find_codec
from models.mail.diagnostics import Diagnostics
from models.mail.headers import Headers, _parse_malformed_headers, decode_encoded_words, parse_headers
from models.mail.html_text import html_to_text
from models.mail.introductions import find_introduction
from models.mail.limits import MAX_QUOTE_LINE_CHARS
from models.mail.mime import _boundary_lines, normalize_newlines
from models.mail.quoting import is_quoted, split_quoted_text

few = settings(max_examples=60, deadline=None, derandomize=True)


# Headers

HEADER_BLOCKS = st.lists(
    st.sampled_from(
        [b"Subject: a", b"subject:b", b"X:", b"Y: \t", b"To:\t a", b" folded", b"\tfolded", b" ", b"Z:\xe4:",
         b"From a@b Mon", b"no field", b": no name", b"Sp ace: x", b"Late:\x0b\x0c\x1c x\x85"]
    ),
    max_size=6,
).map(b"\n".join)  # fmt: skip


@few
@given(HEADER_BLOCKS, st.sampled_from([b"", b"\n"]))
def test_a_header_block_has_the_fields_and_defects_that_the_standard_library_finds(
    lines: bytes, end: bytes
) -> None:
    fast, slow = Diagnostics(), Diagnostics()
    headers, left_over = parse_headers(lines + end, fast)
    expected, expected_left_over = _parse_malformed_headers(lines + end, slow, "text/plain")
    assert (headers._fields, left_over) == (expected._fields, expected_left_over)
    assert fast.defects == slow.defects


def test_well_formed_headers_do_not_need_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(BytesParser, "parsebytes")
    monkeypatch.delattr(Message, "get_param")
    raw = b'Subject: x\nTo: a@b,\n c@d\nContent-Type: text/html; charset="utf-8";\n\tformat=flowed\n\n<p>Hi'
    assert read_message(raw).new_text == "Hi"


CONTENT_TYPES = [
    "text/plain",
    "Text/HTML; Charset=UTF-8",
    'text/plain; charset="us-ascii"; format=flowed',
    "text/plain ; charset = utf-8 ;",
    "\n text/plain;\n\tcharset=utf-8",
    'multipart/mixed; boundary="=_b;c"',
    'multipart/mixed; boundary=" b c  "',
    "multipart/mixed; boundary=----=_b",
    "multipart/mixed; boundary=b; boundary=c",
    'application/pdf; name="a/b.pdf"',
    'application/pdf; name="=?utf-8?q?M=C3=A4rz?="',
    # just outside of the common form
    "",
    "text",
    "text/plain/x",
    "text/plain charset=utf-8",
    "charset=utf-8",
    "text/plain; charset",
    "text/plain; charset=",
    'text/plain; charset=""',
    "text/plain; charset=<utf-8>",
    'text/plain; charset="<utf-8>"',
    "text/plain; charset='utf-8'",
    "text/plain; charset=utf 8",
    "text/plain (c); charset=utf-8",
    'text/plain; charset="utf-8',
    'text/plain; charset="utf-8" x; name=a',
    "text/plain; charset*=utf-8''latin-1; name*0=a; name*1*=%20b",
    'multipart/mixed; boundary="b\\"c"',
    'multipart/mixed; boundary="b\n c"',
    'application/pdf; name="C:\\\\x\\\\a.pdf"',
    "application/pdf; name=<a.pdf>",
    ";name=a",
    "application/pdf;;; name=a",
]
DISPOSITIONS = [
    "attachment",
    "attachment; filename=a.pdf",
    'inline; size=1; FILENAME="a (1).pdf"',
    "filename; filename=a.pdf",
    "attachment; filename=a b.pdf",
    "attachment; filename*=utf-8'de'M%C3%A4rz",
]


@pytest.mark.parametrize("field", CONTENT_TYPES)
def test_a_content_type_is_read_as_by_the_standard_library(field: str) -> None:
    message = Message(policy.compat32)
    message.set_raw("content-type", field)
    headers = Headers({"content-type": [field]}, Diagnostics())
    assert headers.content_type == clean(message.get_content_type())
    assert headers.charset == message.get_content_charset()
    boundary = (message.get_boundary() or "").replace("\n", "").encode("utf-8", "surrogateescape")
    assert (headers.boundary or b"") == boundary
    assert headers._raw_filename() == collapse_rfc2231_value(message.get_param("name") or "")


@pytest.mark.parametrize("field", DISPOSITIONS)
def test_a_disposition_is_read_as_by_the_standard_library(field: str) -> None:
    message = Message(policy.compat32)
    message.set_raw("content-disposition", field)
    headers = Headers({"content-disposition": [field], "content-type": ["a/b; name=n"]}, Diagnostics())
    name = message.get_param("filename", None, "content-disposition")
    assert headers._raw_filename() == (collapse_rfc2231_value(name) if name else "n")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("a\tb\n c ", "a b c"),
        ("a\x0bb\x1cc\x1fd\x7f", "a b cd"),
        ("a\u2028b\u00adc\u3000", "a bc"),
        ("=?utf-8?q?a?=\n =?utf-8?q?b?=", "ab"),
        ("a=?b", "a=?b"),
    ],
)
def test_a_field_becomes_one_line(field: str, text: str) -> None:
    assert decode_encoded_words(field, "subject", Diagnostics()) == text


# Characters


@pytest.mark.parametrize("codec", sorted(_ASCII_SUPERSETS))
def test_ascii_is_read_as_ascii_in_these_codecs(codec: str) -> None:
    assert bytes(range(128)).decode(codec) == bytes(range(128)).decode("ascii")
    assert find_codec(codec) in _ASCII_SUPERSETS


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("utf-7", b"M+AOQ-rz", "März"),
        ("iso-2022-jp", b"\x1b$BJV6b\x1b(B", "返金"),
        ("hz", b"~{VPND~}", "中文"),
        ("utf-16-le", b"a\x00b\x00", "ab"),
        ("ibm037", b"  ", ""),
        ("us-ascii", b"plain", "plain"),
    ],
)
def test_ascii_bytes_are_read_in_a_charset_that_gives_them_another_meaning(
    charset: str, body: bytes, text: str
) -> None:
    assert read_message(f"Content-Type: text/plain; charset={charset}\n\n".encode() + body).new_text == text


@few
@given(
    st.text(st.sampled_from("ab \t\r\n\x00\x1f\x7f\x80\x85\x86\x9f\xa0\xad\xe4\u200b\u2060\ufeff\ud800😀"))
)
def test_every_character_that_must_not_stay_is_removed(text: str) -> None:
    expected = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n").replace("\xa0", " ")
    expected = re.sub("[\u00ad\u200b\u2060\ufeff]", "", expected)
    expected = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "", expected)
    assert clean(text) == re.sub("[\ud800-\udfff]", "\ufffd", expected)


# Parts


@few
@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"\r\r\n", b"a", b"\xef\xbb\xbf"])).map(b"".join),
    st.integers(1, 5),
)
def test_line_ends_become_the_same_in_every_chunk(raw: bytes, chunk_bytes: int) -> None:
    expected = re.sub(rb"\r{2,}\n", b"\n", raw.removeprefix(b"\xef\xbb\xbf"))
    expected = expected.replace(b"\r\n", b"\n").replace(b"\r", b"\n").lstrip(b"\n")
    with pytest.MonkeyPatch.context() as patch:
        assert normalize_newlines(raw) == expected
        patch.setattr(mime, "_CHUNK_BYTES", chunk_bytes)
        assert normalize_newlines(raw) == expected


class _Replacing:
    """A pattern that remembers the length of each text in which it replaces."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def sub(self, new: bytes, text: bytes) -> bytes:
        self.lengths.append(len(text))
        return mime_repeated_cr.sub(new, text)


mime_repeated_cr = mime._REPEATED_CR


def test_line_ends_are_replaced_in_pieces_so_that_other_threads_run(monkeypatch: pytest.MonkeyPatch) -> None:
    replacing = _Replacing()
    monkeypatch.setattr(mime, "_REPEATED_CR", replacing)
    normalize_newlines(b"a: b" + b"\r\n\r" * 100_000)
    assert len(replacing.lengths) > 1
    assert max(replacing.lengths) <= mime._CHUNK_BYTES + 2


@few
@given(st.lists(st.sampled_from([b"\n--b", b"--b", b"--", b"\n", b" ", b"\t", b"b", b"-"])).map(b"".join))
def test_boundaries_are_the_lines_with_only_a_boundary(data: bytes) -> None:
    pattern = re.compile(rb"\n--b(--)?[ \t]*(?=\n|\Z)")
    expected = [
        (line.start(), line.end(), line[1] is not None) for line in pattern.finditer(data, 1, len(data) - 1)
    ]
    assert list(_boundary_lines(data, b"b", 1, len(data) - 1)) == expected


# Quotations


def literal_split(text: str) -> tuple[str, str]:
    """Return the new and the quoted text, with an attempt to find an introduction at every line."""
    lines = text.split("\n")
    owners = ["new"] * len(lines)
    number = 0
    while number < len(lines):
        if is_quoted(lines[number]):
            owners[number] = "quoted"
            number += 1
            continue
        found = find_introduction(lines, number) if len(lines[number]) <= MAX_QUOTE_LINE_CHARS else None
        after = number + (found.length if found else 1)
        marks_follow = is_quoted(next((line for line in lines[after:] if line.strip()), ""))
        if found and (found.certain or marks_follow):
            owners[number:after] = ["introduction"] * found.length
            if not marks_follow:
                owners[after:] = ["quoted"] * (len(lines) - after)
                break
        number = after if owners[number] == "introduction" else number + 1
    for number in range(len(lines) - 1, 0, -1):
        stretch = next((n for n in range(number, len(lines)) if owners[n] != "new"), len(lines))
        after_text = any(
            line.strip() and owner == "new" for line, owner in zip(lines[:number], owners, strict=False)
        )
        if lines[number] == "-- " and owners[number] == "new" and stretch - number <= 25 and after_text:
            owners[number] = ""
            owners[number + 1 : stretch] = ["introduction"] * (stretch - number - 1)
    new = [line for line, owner in zip(lines, owners, strict=True) if owner == "new"]
    quoted = [
        re.sub(r"^(?: ?>)+ ?", "", line) if owner == "quoted" and is_quoted(line) else line
        for line, owner in zip(lines, owners, strict=True)
        if owner in ("quoted", "introduction")
    ]
    return tidied(new), tidied(quoted)


def tidied(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


LINES = [
    "text", "", " \t", "a\u3000", "> q", " > q", ">> q", "> > q", ">q", "  > q", "> ", ">",
    "On Monday, Ann wrote:", "On 3 June 2024", "Ann <a@b.c>", "wrote:", "On", "Am 3. Juni 2024 schrieb Ann:",
    "   > On Monday, Ann wrote:", "El 3/6/2024 escribió:", "2024/06/03 10:00 Ann <a@b.c>:", "schrieb Ann:",
    "2024年1月2日 10:00 Ann <a@b.c> 写道：", "3 jun 2024 10:00", "skrev Ann <a@b.c>:",
    "Begin forwarded message:",
    "From: Ann", "*Sent:* Monday", "Von: Ann <a@b.c>", "Gesendet: b", "Do: x", "보낸 사람: a",
    "보낸 날짜： b",
    "  :", "*  :", "\u202bmאת <a@b.c> 10:00 2024:\u202c", "： x",
    "Name: Bob", "http://example.org", "Hello all:", "ends with a colon: ", "-- ", "--", "__", "_" * 32,
    "-----Original Message-----", "  --- Forwarded message ---", "-----Oprindelig meddelelse-----", "Fra: a",
    "x" * 201 + ":", "y" * 200,
]  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(LINES), max_size=12).map("\n".join))
def test_text_is_separated_as_if_every_line_was_looked_at(text: str) -> None:
    assert split_quoted_text(text) == literal_split(text)


# HTML


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p class="a" hidden="">x</p>y', "y"),
        ("<p class=a hidden>x</p>y", "y"),
        ('<P ID="a" STYLE="Display: None">x</P>y', "y"),
        ('<p style="color:red" style="display:none">x</p>y', "x\ny"),
        ('<p style="&#100;isplay:none">x</p>y', "y"),
        ('<p title="a > b" style="display:none">x</p>y', "y"),
        ('<p title="a" style="display:none"/>x</p>y', "y"),
        ('<p title="a"style="display:none">x</p>y', "y"),
        ('<p title="a" style="display:none>x</p>y', ""),
        ('<div class="gmail_quote">q\n\tr</div>s', "> q r\ns"),
        ("<p>a\n\t b\u3000c</p><pre>a\n\t b\u3000c</pre>", "a b c\na\nb c"),
        ("<STYLE>x</STYLE>y<!-- z --><ScRiPt>u</sCrIpT >v", "yv"),
        ("<ſtyle>x</ſtyle>y", "<ſtyle>xy"),
        ("É<STYLE>x</style>y<script>z", "Éy"),
    ],
)
def test_attributes_in_every_notation_are_read(html: str, text: str) -> None:
    assert html_to_text(html, Diagnostics()) == text


@pytest.mark.parametrize("size", [1, 2047, 2048, 4095, 2**15, 2**15 + 1])
def test_the_digest_of_a_body_that_is_read_in_pieces_is_that_of_the_whole_body(size: int) -> None:
    body = bytes(97 + n % 26 for n in range(size))
    expected = hashlib.sha256(json.dumps(["", "", "x"]).encode() + body).hexdigest()
    assert read_message(b"Subject: x\n\n" + body).body_digest == expected


def test_only_marks_at_the_start_of_a_line_are_quotation_marks() -> None:
    assert split_quoted_text("a > b\n<c>\n  > d") == ("a > b\n<c>\n  > d", "")
    assert split_quoted_text("> a\nb") == ("b", "a")
    assert split_quoted_text("b\n > a") == ("b", "a")
