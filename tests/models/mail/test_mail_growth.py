"""Time and memory for a message grow in proportion to its size, whatever its structure."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Callable

import pytest
from adversarial import ALPHABETS, check_memory, check_time, factors, repeat

from models.mail import Email, read_email, read_message

SIZE = 8_000
"""Bytes or characters of the smallest message. The measured ones have this number and 8 times as many."""


def message(body: str | bytes, *headers: str) -> bytes:
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return "\n".join(["Subject: x", *headers, "", ""]).encode("utf-8", "surrogatepass") + content


def html(body: str) -> bytes:
    return message(body, "Content-Type: text/html; charset=utf-8")


def multipart(parts: str, subtype: str = "mixed") -> bytes:
    return message(parts, f'Content-Type: multipart/{subtype}; boundary="b"')


STRUCTURES: dict[str, Callable[[int], bytes]] = {
    "nested multiparts": lambda n: b"".join(
        f"Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n".encode() for i in range(n // 50)
    ),
    "many parts": lambda n: multipart("--b\n\nx\n" * (n // 7)),
    "parts without an end": lambda n: multipart("--b\n" * (n // 4)),
    "almost boundaries": lambda n: multipart("--b " * (n // 4)),
    "many headers": lambda n: b"A: b\n" * (n // 5) + b"\nx",
    "a folded header": lambda n: b"To: a\n" + b" b\n" * (n // 3) + b"\nx",
    "addresses": lambda n: b"To: " + b'"a" <a@b.c>, ' * (n // 13) + b"\n\nx",
    "comments": lambda n: b"From: " + b"(" * n + b"\n\nx",
    "quotes in addresses": lambda n: b"From: " + b'"\\' * (n // 2) + b"\n\nx",
    "domains": lambda n: b"From: " + b"@a." * (n // 3) + b"\n\nx",
    "encoded words": lambda n: b"Subject: " + b"=?utf-8?q?a?= " * (n // 14) + b"\n\nx",
    "broken encoded words": lambda n: b"Subject: " + b"=?" * (n // 2) + b"\n\nx",
    "content type parameters": lambda n: b"Content-Type: text/plain" + b"; a=b" * (n // 5) + b"\n\nx",
    "continued parameters": lambda n: (
        b"Content-Disposition: attachment"
        + b"".join(b"; filename*%d=a" % i for i in range(n // 14))
        + b"\n\nx"
    ),
    "charset": lambda n: b"Content-Type: text/plain; charset=" + b"a" * n + b"\n\n\xff",
    "bytes of no charset": lambda n: message(bytes(range(128, 256)) * (n // 128)),
    "wrong charset": lambda n: message(
        b"\xff\x81" * (n // 2), "Content-Type: text/plain; charset=iso-2022-jp"
    ),
    "stateful charset": lambda n: message(
        b"\x1b$B\x1b(B" * (n // 6), "Content-Type: text/plain; charset=iso-2022-jp"
    ),
    "utf-7": lambda n: message(b"+AAA-" * (n // 5), "Content-Type: text/plain; charset=utf-7"),
    "base64": lambda n: message(base64.b64encode(b"a\n" * (3 * n // 8)), "Content-Transfer-Encoding: base64"),
    "quoted-printable": lambda n: message(
        quopri.encodestring(b"\xff" * (n // 3)), "Content-Transfer-Encoding: quoted-printable"
    ),
    "soft line breaks": lambda n: message("=\n" * (n // 2), "Content-Transfer-Encoding: quoted-printable"),
    "bad base64": lambda n: message("QUJ!" * (n // 4), "Content-Transfer-Encoding: base64"),
    "short pieces of base64": lambda n: message("QQ==\n" * (n // 5), "Content-Transfer-Encoding: base64"),
    "base64 with errors": lambda n: message(
        ("QUJD" * 19 + "\n" + "QUJD" * 18 + "QU!\n") * (n // 153), "Content-Transfer-Encoding: base64"
    ),
    "soft line breaks with spaces": lambda n: message(
        "= \n" * (n // 6) + "=" + " " * (n // 2), "Content-Transfer-Encoding: quoted-printable"
    ),
    "bad encoded words": lambda n: (
        b"Subject: " + b"=?a?b?Q!A?= " * (n // 12) + b"=?a?b?" * (n // 6) + b"\n\nx"
    ),
    "odd header lines": lambda n: b"From: a@b\n" + b"odd\nX: y\n" * (n // 9) + b"\nx",
    "headers that are odd": lambda n: b"Subject : x\nno field\n" * (n // 21) + b"\nx",
    "carriage returns": lambda n: b"Subject: x\n\n" + b"\r" * n + b"x" + b"\r\r\n" * (n // 3),
    "undeclared boundaries": lambda n: multipart("--c\n" * (n // 8) + "--c d\nContent-A:\n" * (n // 34)),
    "different boundaries": lambda n: message(
        "".join(f"--b{i}\nContent-Type: multipart/mixed\n\n" for i in range(n // 40)), "MIME-Version: 1"
    ),
    "uuencoded files": lambda n: message("begin 644 a\n#0V%T\n`\nend\n" * (n // 24)),
    "beginnings of files": lambda n: message("begin 644 begin 644 b\n" * (n // 22)),
    "a file without an end": lambda n: message("begin 644 a\n" + "#0V%T\n" * (n // 6)),
    "calendars": lambda n: message(
        'BEGIN:VEVENT\nSUMMARY;A="b:":c\nDESCRIPTION;"a' + '"b"' * (n // 6) + "\n d" * (n // 6),
        "Content-Type: text/calendar",
    ),
    "IDN labels": lambda n: b"From: a@" + b"xn--" + b"a" * 59 + b".xn--99" * (n // 8) + b"\n\nx",
    "raw file names": lambda n: multipart(
        '--b\nContent-Disposition: attachment; filename="\xe4"\n\nx\n' * (n // 55)
    ),
    "Latin letters without a charset": lambda n: message("d\xe9ja vu \xfcber ".encode("latin-1") * (n // 14)),
    "Cyrillic without a charset": lambda n: message("Не могу войти ".encode("koi8-r") * (n // 14)),
    "Japanese without a charset": lambda n: message("返金を".encode("cp932") * (n // 6)),
    "Japanese escapes": lambda n: message(b"\x1b$B\x2d\x21\x1b(I6\n" * (n // 11)),
    "EUC-JP with row 13": lambda n: message(
        b"\xad\xa1a" * (n // 3), "Content-Type: text/plain; charset=euc-jp"
    ),
    "styles that hide": lambda n: html('<p style="font-size:0;overflow:hidden;height:0%">x' * (n // 50)),
    "zeros": lambda n: html(f'<p style="font-size:{"0" * n}x;opacity:.{"0" * n}y">x'),
    "nested sizes": lambda n: html('<a style="font-size:0"><a style="font-size:1px">' * (n // 47)),
    "comments that end": lambda n: html("<!--><!--->--!>" * (n // 15)),
    "raw text": lambda n: html("<style></style" * (n // 14)),
    "HTML in plain text": lambda n: message("<p>" * (n // 3)),
    "open elements": lambda n: html("<div>" * (n // 5)),
    "formatting elements": lambda n: html("<b><p>" * (n // 6)),
    "tables": lambda n: html("<table><tr><td>" * (n // 15)),
    "attributes": lambda n: html("<a " + "b=c " * (n // 4) + ">x"),
    "repeated attributes": lambda n: html("<a " + " ".join(f"b{i}" for i in range(n // 7)) + ">x"),
    "less-than signs": lambda n: html("<" * n),
    "open comments": lambda n: html("<!--" * (n // 4)),
    "open styles": lambda n: html("<style>" * (n // 7)),
    "entities": lambda n: html("&amp;&#x301;&notit;" * (n // 19)),
    "styles": lambda n: html(f'<p style="{"display:none;" * (n // 13)}">x'),
    "quotations": lambda n: html("<blockquote>x</blockquote>" * (n // 26)),
    "introductions": lambda n: message("On Monday, Ann wrote:\n" * (n // 22)),
    "header blocks": lambda n: message("From: a\nSent: b\nTo: c\nSubject: d\n" * (n // 34)),
    "attributions": lambda n: message("On 3/6/2024 10:00, Ann\n" * (n // 23)),
    "attributions without a date": lambda n: message("Ann wrote:\n\n" * (n // 12)),
    "fields of header blocks": lambda n: message("From: a\n" * (n // 8)),
    "signatures": lambda n: message("a\n-- \n" * (n // 6)),
    "signatures between quoted lines": lambda n: message("a\n-- \n> b\n" * (n // 10)),
    "armor": lambda n: message("-----BEGIN PGP MESSAGE-----\n" * (n // 28)),
    "signed messages": lambda n: message("-----BEGIN PGP SIGNED MESSAGE-----\nHash: a\n" * (n // 43)),
    "rules": lambda n: message("-----Original Message-----\n" * (n // 27)),
    "quotation marks": lambda n: message(">" * n),
    "blank lines": lambda n: message(" \n" * (n // 2)),
}


@factors
@pytest.mark.parametrize("structure", STRUCTURES)
def test_time_grows_with_the_size_of_a_message(structure: str, factor: int) -> None:
    build = STRUCTURES[structure]
    check_time(structure, lambda n: _read(build(n)), SIZE * factor)


@factors
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_time_grows_with_the_text_of_a_message(alphabet: str, factor: int) -> None:
    def run(n: int) -> None:
        text = repeat(ALPHABETS[alphabet], n)
        _read(message(text, "Content-Type: text/plain; charset=utf-8"))
        _read(html(text))
        _read(f"Subject: {text}\nFrom: {text}\nMessage-ID: {text}\nContent-Type: {text}\n\nx".encode())
        read_email(Email(subject=text, from_=text, to=text, text=text)).language  # noqa: B018 - detects it
        read_email(Email(html=text))

    check_time(alphabet, run, SIZE * factor // 2)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_memory_grows_with_the_size_of_a_message(structure: str) -> None:
    raw = STRUCTURES[structure](4 * SIZE)
    check_memory(structure, lambda _: _read(raw), 0, len(raw))


def _read(raw: bytes) -> None:
    document = read_message(raw)
    document.learning_parts()
    document.language  # noqa: B018 - detects it
