"""Reads the fields of a header block, with protection against errors of the parser.

The parser is that of the standard library with the ``compat32`` policy, which does not interpret the fields.
``policy.default`` parses fields into objects and fails on a single malformed field: it raises IndexError for
``Message-ID: <[x]@y>`` and LookupError for an unknown charset, and needs six seconds for 20,000 addresses.
"""

from __future__ import annotations

import re
from email import policy
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import collapse_rfc2231_value

from models.mail.charsets import clean, decode
from models.mail.diagnostics import Diagnostics
from models.mail.limits import (
    MAX_ADDRESSES_CHARS,
    MAX_BOUNDARY_CHARS,
    MAX_DOMAINS,
    MAX_FIELD_CHARS,
)

_FIELDS_WITH_PARAMETERS = ("content-type", "content-disposition")
_QUOTED_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.){0,200}"|\([^()]{0,200}\)')
_DOMAIN = re.compile(r"@([^\W_](?:[\w.-]*[^\W_])?)")
_MESSAGE_ID = re.compile(r"<([^<>\s]+@[^<>\s]+)>")
_NOT_A_FIELD = re.compile(rb"^(?!From |[!-9;-~]*:|[ \t])", re.MULTILINE)
_NOT_A_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that represent no byte. The parser maps 8-bit bytes to the other surrogates."""
_LIST_ID = re.compile(r"<([^<>\s]+)>")


class Headers:
    """The header fields of a message or of one of its parts.

    Args:
        message: the header block as the standard library parsed it.
        diagnostics: receives a defect for each unreadable field.
        default_type: the content type if none is declared.
    """

    def __init__(self, message: Message, diagnostics: Diagnostics, default_type: str = "text/plain") -> None:
        self._diagnostics = diagnostics
        self._message = message
        self._message.set_default_type(default_type)
        self._fields: dict[str, list[str]] = {}
        for name, value in message.raw_items():
            self._fields.setdefault(name.lower(), []).append(str(value))
        for name in _FIELDS_WITH_PARAMETERS:
            if len(self._field(name)) > MAX_FIELD_CHARS:
                diagnostics.add_truncation(_too_long(name))
                message.replace_header(name, self._field(name)[:MAX_FIELD_CHARS])

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def _field(self, name: str) -> str:
        return self._fields.get(name, [""])[0]

    def token(self, name: str) -> str:
        """Return a field of one word in lower case, without comments or parameters; empty if missing."""
        return clean(self._field(name)[:MAX_FIELD_CHARS]).partition(";")[0].partition("(")[0].strip().lower()

    def text(self, name: str) -> str:
        """Return a field as text on one line, with 8-bit bytes and encoded words (RFC 2047) decoded."""
        field = self._field(name)
        if len(field) > MAX_FIELD_CHARS:
            self._diagnostics.add_truncation(_too_long(name))
        return decode_encoded_words(field[:MAX_FIELD_CHARS], name, self._diagnostics, self.charset)

    def domains(self, *names: str) -> tuple[str, ...]:
        """Return the distinct domains of the addresses in these fields, in lower case and in order."""
        fields = [field for name in names for field in self._fields.get(name, [])]
        if any(len(field) > MAX_ADDRESSES_CHARS for field in fields):
            self._diagnostics.add_truncation(
                f"an address header is longer than {MAX_ADDRESSES_CHARS:,} characters; the rest was not read"
            )
        return find_domains("\n".join(fields)[:MAX_ADDRESSES_CHARS])

    @property
    def message_id(self) -> str | None:
        """The Message-ID without brackets; the whole field if it is malformed; None if it is missing."""
        field = " ".join(clean(self._field("message-id")[:MAX_FIELD_CHARS]).split())
        match = _MESSAGE_ID.search(field)
        if match is None and field:
            self._diagnostics.add_defect("the Message-ID is malformed")
        return match[1] if match else field[:250] or None

    @property
    def mailing_list(self) -> str | None:
        """The mailing list in List-Id (RFC 2919), or None."""
        field = self.text("list-id")
        match = _LIST_ID.search(field)
        return (match[1] if match else field)[:250] or None

    @property
    def automated(self) -> bool:
        """Whether the fields state that a program sent the message or that nobody should reply to it."""
        return (
            self.token("auto-submitted") not in {"", "no"}
            or self.token("precedence") in {"bulk", "junk", "list", "auto_reply"}
            or "x-autoreply" in self
            or "x-autorespond" in self
            or self._field("return-path").strip() == "<>"
        )

    @property
    def content_type(self) -> str:
        """The content type in lower case; ``text/plain`` if it is malformed."""
        return clean(self._diagnostics.guard("Content-Type", self._message.get_content_type, "text/plain"))[
            :250
        ]

    @property
    def charset(self) -> str | None:
        """The declared charset of a text, or None."""
        return self._diagnostics.guard("charset", self._message.get_content_charset, None)

    @property
    def transfer_encoding(self) -> str:
        """The Content-Transfer-Encoding, reduced to lower-case letters and digits."""
        return re.sub("[^a-z0-9]", "", self.token("content-transfer-encoding"))

    @property
    def boundary(self) -> bytes | None:
        """The boundary between the parts of a multipart; None if it is missing or unusable."""
        boundary = self._diagnostics.guard("boundary", self._message.get_boundary, None)
        if not boundary or len(boundary) > MAX_BOUNDARY_CHARS:
            return None
        unfolded = boundary.replace("\n", "")
        return self._diagnostics.guard("boundary", lambda: unfolded.encode("utf-8", "surrogateescape"), None)

    @property
    def filename(self) -> str:
        """The file name of an attachment without folders; empty if it has none."""

        def name() -> str:
            value = self._message.get_param(
                "filename", None, "content-disposition"
            ) or self._message.get_param("name")
            return collapse_rfc2231_value(value) if value else ""

        raw_name = self._diagnostics.guard("attachment name", name, "")
        decoded = decode_encoded_words(
            raw_name[:MAX_FIELD_CHARS], "filename", self._diagnostics, self.charset
        )
        return re.split(r"[/\\]", decoded)[-1].strip()[:250]

    @property
    def is_attachment(self) -> bool:
        """Whether the part is an attachment rather than text to display."""
        return self.token("content-disposition") == "attachment" or bool(self.filename)


def _too_long(name: str) -> str:
    return f"the header {name} is longer than {MAX_FIELD_CHARS:,} characters; the rest was not read"


def parse_headers(
    block: bytes, diagnostics: Diagnostics, default_type: str = "text/plain"
) -> tuple[Headers, int]:
    r"""Parse a header block. Also return how many bytes at its end belong to the body.

    A line that is not a header field ends the headers.

    Args:
        block: bytes up to the first blank line, with ``\n`` line ends, at most ``MAX_HEADER_BYTES``.
        diagnostics: receives the defects.
        default_type: the content type if none is declared.
    """
    not_a_field = _NOT_A_FIELD.search(block)
    fields = block[: not_a_field.start()] if not_a_field else block
    if len(fields) < len(block):
        diagnostics.add_defect("the headers contain a line that is not a header field")
    message = diagnostics.guard(
        "header block",
        lambda: BytesParser(policy=policy.compat32).parsebytes(fields, headersonly=True),
        Message(),
    )
    for defect in message.defects:
        diagnostics.add_defect(f"malformed headers ({type(defect).__name__})")
    return Headers(message, diagnostics, default_type), len(block) - len(fields)


def decode_encoded_words(field: str, name: str, diagnostics: Diagnostics, charset: str | None = None) -> str:
    r"""Return a raw field as text on one line, with 8-bit bytes and encoded words (RFC 2047) decoded.

    8-bit bytes violate the standard. They are decoded as UTF-8, or else by the charset of the body.

    >>> field = "=?utf-8?q?Gr=C3=BC=C3=9Fe?= from\n =?utf-8?b?S8O2bG4=?="
    >>> decode_encoded_words(field, "subject", Diagnostics())
    'Grüße from Köln'
    """
    field = " ".join(field.splitlines())
    if not field.isascii():
        field = _decode_bytes(
            _NOT_A_BYTE.sub("\ufffd", field).encode("utf-8", "surrogateescape"), charset, diagnostics
        )
    if "=?" in field:
        words = diagnostics.guard(f"header {name}", lambda: decode_header(field), [(field, None)])
        chunks: list[tuple[str | bytes, str | None]] = list(words)
        field = "".join(
            chunk if isinstance(chunk, str) else decode(chunk, declared, diagnostics)
            for chunk, declared in chunks
        )
    return " ".join(clean(field).split())


def _decode_bytes(field: bytes, charset: str | None, diagnostics: Diagnostics) -> str:
    try:
        return field.decode()
    except UnicodeDecodeError:
        return decode(field, charset, diagnostics)


def find_domains(addresses: str) -> tuple[str, ...]:
    """Return the domains in an address line, ignoring quoted names and comments.

    >>> find_domains('"me@home" <Ann@Example.org>, bob@example.com (Bob), (c):')
    ('example.org', 'example.com')
    """
    domains = _DOMAIN.findall(_QUOTED_OR_COMMENT.sub(" ", addresses))
    return tuple(dict.fromkeys(clean(domain).lower() for domain in domains))[:MAX_DOMAINS]
