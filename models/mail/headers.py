"""One header block, read field by field under guard.

The parser is the standard library's with the ``compat32`` policy, which keeps fields as they are.
``policy.default`` parses them into objects and is brought down by a single one: IndexError on
``Message-ID: <[x]@y>``, LookupError on an unknown charset, six seconds for 20,000 addresses.
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

_STRUCTURED = ("content-type", "content-disposition")
_ASIDE = re.compile(r'"(?:[^"\\]|\\.){0,200}"|\([^()]{0,200}\)')
_DOMAIN = re.compile(r"@([^\W_](?:[\w.-]*[^\W_])?)")
_MESSAGE_ID = re.compile(r"<([^<>\s]+@[^<>\s]+)>")
_NO_FIELD = re.compile(rb"^(?!From |[!-9;-~]*:|[ \t])", re.MULTILINE)
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte; the parser turns an 8-bit byte into one of the others."""
_LIST_ID = re.compile(r"<([^<>\s]+)>")


class Headers:
    """The fields of a message or of a part.

    Args:
        message: what the standard parser made of the header block.
        diagnostics: where unreadable fields are noted.
        default_type: the content type where none is given.
    """

    def __init__(self, message: Message, diagnostics: Diagnostics, default_type: str = "text/plain") -> None:
        self._diagnostics = diagnostics
        self._message = message
        self._message.set_default_type(default_type)
        self._fields: dict[str, list[str]] = {}
        for name, value in message.raw_items():
            self._fields.setdefault(name.lower(), []).append(str(value))
        for name in _STRUCTURED:
            if len(self._field(name)) > MAX_FIELD_CHARS:
                diagnostics.add_truncation(f"header {name} is longer than {MAX_FIELD_CHARS} characters")
                message.replace_header(name, self._field(name)[:MAX_FIELD_CHARS])

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def _field(self, name: str) -> str:
        return self._fields.get(name, [""])[0]

    def token(self, name: str) -> str:
        """A field of one plain word, in lower case and without comments or parameters; empty if missing."""
        return clean(self._field(name)[:MAX_FIELD_CHARS]).partition(";")[0].partition("(")[0].strip().lower()

    def text(self, name: str) -> str:
        """A field as a person reads it: 8-bit and encoded words (RFC 2047) decoded, on one line."""
        field = self._field(name)
        if len(field) > MAX_FIELD_CHARS:
            self._diagnostics.add_truncation(f"header {name} is longer than {MAX_FIELD_CHARS} characters")
        return decode_encoded_words(field[:MAX_FIELD_CHARS], name, self._diagnostics, self.charset)

    def domains(self, *names: str) -> tuple[str, ...]:
        """The domains of the addresses in these fields, in lower case, each once, in order."""
        fields = [field for name in names for field in self._fields.get(name, [])]
        if any(len(field) > MAX_ADDRESSES_CHARS for field in fields):
            self._diagnostics.add_truncation(f"addresses beyond {MAX_ADDRESSES_CHARS} characters of a header")
        return find_domains("\n".join(fields)[:MAX_ADDRESSES_CHARS])

    @property
    def message_id(self) -> str | None:
        """The Message-ID without its brackets; as it stands if it has no valid form, None if missing."""
        field = " ".join(clean(self._field("message-id")[:MAX_FIELD_CHARS]).split())
        match = _MESSAGE_ID.search(field)
        if match is None and field:
            self._diagnostics.add_defect("Message-ID has no valid form")
        return match[1] if match else field[:250] or None

    @property
    def mailing_list(self) -> str | None:
        """The list that a message came through (List-Id, RFC 2919), None if through none."""
        field = self.text("list-id")
        match = _LIST_ID.search(field)
        return (match[1] if match else field)[:250] or None

    @property
    def automated(self) -> bool:
        """Whether the fields say that no person sent this message, or that none should answer it."""
        return (
            self.token("auto-submitted") not in {"", "no"}
            or self.token("precedence") in {"bulk", "junk", "list", "auto_reply"}
            or "x-autoreply" in self
            or "x-autorespond" in self
            or self._field("return-path").strip() == "<>"
        )

    @property
    def content_type(self) -> str:
        """The content type in lower case; ``text/plain`` where it has no valid form."""
        return clean(self._diagnostics.guard("Content-Type", self._message.get_content_type, "text/plain"))[
            :250
        ]

    @property
    def charset(self) -> str | None:
        """The declared charset of a text."""
        return self._diagnostics.guard("charset", self._message.get_content_charset, None)

    @property
    def transfer_encoding(self) -> str:
        """The Content-Transfer-Encoding in lower case, letters and digits only, however it was written."""
        return re.sub("[^a-z0-9]", "", self.token("content-transfer-encoding"))

    @property
    def boundary(self) -> bytes | None:
        """What separates the parts of a multipart, None where it is missing or unusable."""
        boundary = self._diagnostics.guard("boundary", self._message.get_boundary, None)
        if not boundary or len(boundary) > MAX_BOUNDARY_CHARS:
            return None
        unfolded = boundary.replace("\n", "")
        return self._diagnostics.guard("boundary", lambda: unfolded.encode("utf-8", "surrogateescape"), None)

    @property
    def filename(self) -> str:
        """The name of an attachment, without folders; empty where it has none."""

        def name() -> str:
            value = self._message.get_param(
                "filename", None, "content-disposition"
            ) or self._message.get_param("name")
            return collapse_rfc2231_value(value) if value else ""

        found = self._diagnostics.guard("attachment name", name, "")
        decoded = decode_encoded_words(found[:MAX_FIELD_CHARS], "filename", self._diagnostics, self.charset)
        return re.split(r"[/\\]", decoded)[-1].strip()[:250]

    @property
    def is_attachment(self) -> bool:
        """Whether a part is meant to be saved rather than shown."""
        return self.token("content-disposition") == "attachment" or bool(self.filename)


def parse_headers(
    block: bytes, diagnostics: Diagnostics, default_type: str = "text/plain"
) -> tuple[Headers, int]:
    r"""The fields of a header block, and how many bytes at its end are no fields but belong to the body.

    Args:
        block: bytes up to the first blank line, lines ended by ``\n``, at most ``MAX_HEADER_BYTES``.
        diagnostics: where defects are noted.
        default_type: the content type where none is given.
    """
    no_field = _NO_FIELD.search(block)
    fields = block[: no_field.start()] if no_field else block
    if len(fields) < len(block):
        diagnostics.add_defect("a line among the headers that is no header")
    message = diagnostics.guard(
        "header block",
        lambda: BytesParser(policy=policy.compat32).parsebytes(fields, headersonly=True),
        Message(),
    )
    for defect in message.defects:
        diagnostics.add_defect(f"malformed headers ({type(defect).__name__})")
    return Headers(message, diagnostics, default_type), len(block) - len(fields)


def decode_encoded_words(field: str, name: str, diagnostics: Diagnostics, charset: str | None = None) -> str:
    r"""A raw field as text: its 8-bit bytes and its encoded words (RFC 2047) decoded, on one line.

    Bytes that should not be there are UTF-8, or in the charset that the body declares.

    >>> field = "=?utf-8?q?Gr=C3=BC=C3=9Fe?= from\n =?utf-8?b?S8O2bG4=?="
    >>> decode_encoded_words(field, "subject", Diagnostics())
    'Grüße from Köln'
    """
    field = " ".join(field.splitlines())
    if not field.isascii():
        field = _decoded_bytes(
            _NO_BYTE.sub("\ufffd", field).encode("utf-8", "surrogateescape"), charset, diagnostics
        )
    if "=?" in field:
        words = diagnostics.guard(f"header {name}", lambda: decode_header(field), [(field, None)])
        chunks: list[tuple[str | bytes, str | None]] = list(words)
        field = "".join(
            chunk if isinstance(chunk, str) else decode(chunk, declared, diagnostics)
            for chunk, declared in chunks
        )
    return " ".join(clean(field).split())


def _decoded_bytes(field: bytes, charset: str | None, diagnostics: Diagnostics) -> str:
    try:
        return field.decode()
    except UnicodeDecodeError:
        return decode(field, charset, diagnostics)


def find_domains(addresses: str) -> tuple[str, ...]:
    """The domains in an address line, names in quotes and comments left aside.

    >>> find_domains('"me@home" <Ann@Example.org>, bob@example.com (Bob), (c):')
    ('example.org', 'example.com')
    """
    found = _DOMAIN.findall(_ASIDE.sub(" ", addresses))
    return tuple(dict.fromkeys(clean(domain).lower() for domain in found))[:MAX_DOMAINS]
