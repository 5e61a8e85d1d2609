"""One error in the structure or encoding of a message does not lose the rest of it."""

from __future__ import annotations

import base64

import pytest

from models.mail import Email, read_email, read_message

TEXT = "Die Rechnung für März ist falsch, bitte prüfen Sie den Betrag und senden Sie eine neue. " * 4


def encoded(body: bytes, encoding: str = "base64") -> str:
    field = f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n"
    return read_message(field.encode() + body).new_text


def multipart(parts: str, declared: str = 'Content-Type: multipart/mixed; boundary="a"') -> bytes:
    return f"Subject: x\nMIME-Version: 1.0\n{declared}\n\n{parts}".encode()


# Transfer encodings


def test_a_bad_character_in_base64_damages_only_its_line() -> None:
    lines = base64.encodebytes(TEXT.encode()).split(b"\n")
    for bad in (
        lines[1][:40] + b"!" + lines[1][41:],
        lines[1][:40] + lines[1][41:],
        lines[1][:40] + b"=" + lines[1][41:],
    ):
        text = encoded(b"\n".join([lines[0], bad, *lines[2:]]))
        assert text.startswith(TEXT[:50])
        assert text.endswith(TEXT.strip()[-200:])
        assert len(text) > len(TEXT) - 60


def test_a_foreign_character_between_the_digits_of_base64_is_ignored() -> None:
    content = base64.encodebytes(TEXT.encode())
    assert encoded(content[:30] + b"\x00" + content[30:]) == TEXT.strip()
    assert encoded(content.replace(b"\n", b"")[:-7] + b"!" + content.replace(b"\n", b"")[-7:]) == TEXT.strip()


@pytest.mark.parametrize("between", [b"\n", b""])
def test_base64_in_padded_pieces_is_read_completely(between: bytes) -> None:
    pieces = [
        base64.b64encode(TEXT.encode()[start : start + 40]) for start in range(0, len(TEXT.encode()), 40)
    ]
    assert encoded(between.join(pieces)) == TEXT.strip()


@pytest.mark.parametrize(
    "footer", [b"\nBest\n", b"\n_____\nmailing list\n", b" ignored\n", b"\nConfidential\nNo reply, please"]
)
def test_text_after_base64_is_not_decoded(footer: bytes) -> None:
    assert encoded(base64.b64encode(b"Please refund") + footer) == "Please refund"


def test_white_space_at_line_ends_of_quoted_printable_is_deleted() -> None:
    assert encoded(b"my in= \nvoice=\t\nx = y=  ", "quoted-printable") == "my invoicex = y"


# Encoded words


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("=?iso-8859-2*pl?Q?p=B3atno=B6=E6?=", "płatność"),
        ("=?utf-8?B?R3LDvMOfZQ=?= =?utf-8?Q?_aus_K=C3=B6ln?=", "Grüße aus Köln"),
        ("=?utf-8?B?R3LD!MOfZQ==?= =?utf-8?Q?_aus?=", "Gr\ufffdße aus"),
        ("=?utf-8?B?!?= =?utf-8?Q?aus_K=C3=B6ln?=", "aus Köln"),
        ("=?utf-8?Q?aus_K=C3=B6ln", "aus Köln"),
        ("=?utf-8?B?R3LDvMOfZQ", "Grüße"),
        ("what =?utf-8 is", "what =?utf-8 is"),
        ("=?x-sjis?B?ldSL4A==?=", "返金"),
    ],
)
def test_a_bad_encoded_word_spoils_no_others(subject: str, expected: str) -> None:
    assert read_message(f"Subject: {subject}\n\nx".encode()).subject == expected


# Boundaries


def test_the_boundary_that_the_body_contains_is_used_if_the_declared_one_never_comes() -> None:
    parts = (
        "preamble\n--bbb\n\nPlease refund\n--bbb\nContent-Type: application/pdf; name=a.pdf\n"
        "Content-Transfer-Encoding: base64\n\nJVBERi0x\n--bbb--\n"
    )
    for declared in (
        'Content-Type: multipart/mixed; boundary="aaa"',
        "Content-Type: multipart/mixed",
        "X: y",
    ):
        mail = read_message(multipart(parts, declared))
        assert mail.new_text == "Please refund"
        assert mail.attachments == (("a.pdf", "application/pdf"),)


@pytest.mark.parametrize(
    ("start", "attachments"),
    [
        ("Content-Type: text/html; charset=utf-8", ()),
        ("\n--aa\nMIME-Version: 1.0\nContent-Type: text/html;\n charset=utf-8", ()),
        (
            "Content-Type: application/pdf;\n name=a.pdf\n\nJVBERi0x\n--a\nContent-Type: text/html",
            (("a.pdf", "application/pdf"),),
        ),
        ("Content-Transfer-Encoding: 7bit\n\n--a\nContent-Type: text/html", ()),
    ],
)
def test_a_multipart_can_lack_its_first_boundary(
    start: str, attachments: tuple[tuple[str, str], ...]
) -> None:
    for end in ("\n--a--\n", ""):
        mail = read_message(multipart(f"{start}\n\n<p>Please <b>refund</b></p>{end}"))
        assert (mail.new_text, mail.attachments) == ("Please refund", attachments)


def test_a_line_with_dashes_is_no_boundary_without_a_part() -> None:
    text = "--bbb\nPlease refund\n--bbb\nNote: x"
    assert read_message(multipart(text)).new_text == text
    assert read_message(b"Subject: x\n\nSee\n--bbb\nContent-Type: text/html\n\nx").new_text.startswith("See")


# Parts


def part(disposition: str, content_type: str = "text/plain", body: str = "From the file") -> str:
    field = f"Content-Disposition: {disposition}\n" if disposition else ""
    return f"--a\nContent-Type: {content_type}; name=a.txt\n{field}\n{body}\n"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ("--a\n\nHello\n" + part("inline; filename=a.txt"), "Hello\n\nFrom the file"),
        ("--a\n\nHello\n" + part("attachment"), "Hello"),
        ("--a\n\nHello\n" + part(""), "Hello"),
        ("--a\n\nHello\n" + part("x-unknown"), "Hello"),
        (part(""), "From the file"),
        (part("inline"), "From the file"),
        (part("inline", "text/csv"), ""),
    ],
)
def test_text_with_a_file_name_is_read_if_it_is_displayed(parts: str, text: str) -> None:
    mail = read_message(multipart(parts + "--a--\n"))
    assert mail.new_text == text
    assert [name for name, _ in mail.attachments] == ["a.txt"]


def test_uuencoded_files_are_attachments() -> None:
    data = 'M_]C_X``02D9)1@`!`@(```````#__@`>04-$(%-Y<W1E;7,@1&EG:71A;"!)\n#0V%T\n`\nend\n'
    text = (
        f"Photo of the damage:\nbegin 644 my photo.jpg\n{data}Please refund\nbegin 600 b.jpg\n#0V%T\n \nend\n"
    )
    for mail in (read_message(f"Subject: x\n\n{text}".encode()), read_email(Email(subject="x", text=text))):
        assert mail.new_text == "Photo of the damage:\nPlease refund"
        assert mail.attachments == tuple(
            (name, "application/octet-stream") for name in ("my photo.jpg", "b.jpg")
        )


def test_base64_files_in_text_are_attachments() -> None:
    text = "See:\nbegin-base64 644 a.jpg\nQUJD\nREVGRw==\n====\nBye"
    assert read_message(f"Subject: x\n\n{text}".encode()).new_text == "See:\nBye"


@pytest.mark.parametrize(
    "text", ["begin 644 the work\nnow", "begin 5 days later\nend", "begin\nMab\nend", "begin 644 x\nend"]
)
def test_text_that_begins_like_a_uuencoded_file_stays_text(text: str) -> None:
    assert read_message(f"Subject: x\n\n{text}".encode()).new_text == text


CALENDAR = (
    'BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY;LANGUAGE="e:n":Visit\\, 2 pm\nDESCRIPTION:The machine\n'
    "  leaks\\nagain\n"
    "BEGIN:VALARM\nDESCRIPTION:Reminder\nEND:VALARM\nUID:4711\nEND:VEVENT\nEND:VCALENDAR\n"
)


def test_an_invitation_without_text_is_read_from_its_calendar() -> None:
    raw = f"Subject: x\nContent-Type: text/calendar; charset=utf-8; method=REQUEST\n\n{CALENDAR}"
    assert read_message(raw.encode()).new_text == "Visit, 2 pm\nThe machine leaks\nagain"
    calendar = f"--a\nContent-Type: text/calendar\n\n{CALENDAR}"
    assert read_message(multipart(f"--a\n\nHello\n{calendar}--a--\n")).new_text == "Hello"
    assert read_message(multipart(f"--a\n\n \n{calendar}--a--\n")).new_text.startswith("Visit")


def test_winmail_dat_is_a_defect() -> None:
    tnef = (
        "Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\nep8+IgAA\n"
    )
    assert read_message(f"Subject: x\n{tnef}".encode()).defects == (
        "the text is in winmail.dat, which is not read",
    )
    mail = read_message(multipart(f"--a\n\nHello\n--a\n{tnef}--a--\n"))
    assert mail.new_text == "Hello"
    assert mail.defects == ("attachments can be in winmail.dat, which is not read",)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("xn--mller-kva.example", "müller.example"),
        ("Mail.XN--MLLER-KVA.example", "mail.müller.example"),
        ("müller.example", "müller.example"),
        ("xn--\\.example", "xn"),
        ("xn--99999999.example", "xn--99999999.example"),
        ("xn--" + "a" * 70 + ".example", "xn--" + "a" * 70 + ".example"),
    ],
)
def test_internationalized_domains_are_in_unicode(domain: str, expected: str) -> None:
    assert read_message(f"From: A <a@{domain}>\n\nx".encode()).sender_domain == expected


def test_an_internationalized_message_inside_a_message_is_read() -> None:
    inner = "Content-Type: message/global\n\nSubject: Größe\nFrom: a@müller.example\n\nZu klein\n"
    mail = read_message(multipart(f"--a\n\nHello\n--a\n{inner}--a--\n"))
    assert (mail.new_text, mail.quoted_text) == ("Hello", "Größe\n\nZu klein")
