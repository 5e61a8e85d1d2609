"""Reads the fields of a header block, with protection against errors of the parser.

Well-formed header blocks and parameters of common form are read here, because the standard library takes many
times longer. Everything else goes to its parser with the ``compat32`` policy, which does not interpret the
fields. Both ways give the same result. ``policy.default`` parses fields into objects and fails on a single
malformed field: it raises IndexError for ``Message-ID: <[x]@y>`` and LookupError for an unknown charset, and
needs six seconds for 20,000 addresses.
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
_FIELDS = re.compile(r"([!-9;-~]++):[ \t]*+([^\n]*+(?:\n[ \t][^\n]*+)*+)(?:\n|\Z)|([\s\S]++)")
"""Name and value of a well-formed field, or else the rest of the header block."""
_VALUE = r'(?:"[ !#-;=?-\[\]-~]*+"|[!#-:=?-\[\]-~]++)'
"""A parameter's value without escapes, angle brackets and, if it is not quoted, spaces."""
_SIMPLE_PARAMETERS = re.compile(
    rf"\s*+([\w!#$%&'*+./^`|~-]++)((?:\s*+;\s*+[\w.-]++\s*+=\s*+{_VALUE})*+)[\s;]*+", re.ASCII
)
_PARAMETER = re.compile(rf";\s*+([\w.-]++)\s*+=\s*+({_VALUE})", re.ASCII)
_QUOTED_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.){0,200}"|\([^()]{0,200}\)')
_DOMAIN = re.compile(r"@([^\W_](?:[\w.-]*[^\W_])?)")
_MESSAGE_ID = re.compile(r"<([^<>\s]+@[^<>\s]+)>")
_NOT_A_FIELD = re.compile(rb"^(?!From |[!-9;-~]*:|[ \t])", re.MULTILINE)
_NOT_A_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that represent no byte. The parser maps 8-bit bytes to the other surrogates."""
_LIST_ID = re.compile(r"<([^<>\s]+)>")
_NOT_ALPHANUMERIC = re.compile("[^a-z0-9]")
_FOLDER = re.compile(r"[/\\]")


class Headers:
    """The header fields of a message or of one of its parts.

    Args:
        fields: the values of each field, by name in lower case.
        diagnostics: receives a defect for each unreadable field.
        default_type: the content type if none is declared.
    """

    def __init__(
        self, fields: dict[str, list[str]], diagnostics: Diagnostics, default_type: str = "text/plain"
    ) -> None:
        self._diagnostics = diagnostics
        self._fields = fields
        self._default_type = default_type
        self._texts: dict[str, str] = {}
        for name in _FIELDS_WITH_PARAMETERS:
            if len(self._field(name)) > MAX_FIELD_CHARS:
                diagnostics.add_truncation(_too_long(name))
        self._type = self._simple_parameters("content-type", default_type)
        self._disposition = self._simple_parameters("content-disposition", "")

    def _simple_parameters(self, name: str, default: str) -> tuple[str, dict[str, str]] | None:
        """Return the first word and the parameters of a field; None if the standard library must read it."""
        if name not in self._fields:
            return default, {}
        field = self._field(name)
        match = _SIMPLE_PARAMETERS.fullmatch(field) if len(field) <= MAX_FIELD_CHARS else None
        if match is None:
            return None
        word = match[1].lower()
        parameters = {word: ""}
        for parameter, value in _PARAMETER.findall(match[2]):
            parameters.setdefault(parameter.lower(), value.strip('"'))
        return word, parameters

    def _message(self) -> Message:
        """Return a message of the standard library with the fields that have parameters."""
        message = Message()
        message.set_default_type(self._default_type)
        for name in _FIELDS_WITH_PARAMETERS:
            if name in self._fields:
                message.set_raw(name, self._field(name)[:MAX_FIELD_CHARS])
        return message

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def _field(self, name: str) -> str:
        values = self._fields.get(name)
        return values[0] if values else ""

    def token(self, name: str) -> str:
        """Return a field of one word in lower case, without comments or parameters; empty if missing."""
        if name not in self._fields:
            return ""
        return clean(self._field(name)[:MAX_FIELD_CHARS]).partition(";")[0].partition("(")[0].strip().lower()

    def text(self, name: str) -> str:
        """Return a field as text on one line, with 8-bit bytes and encoded words (RFC 2047) decoded."""
        if name not in self._texts:
            self._texts[name] = self._read_text(name)
        return self._texts[name]

    def _read_text(self, name: str) -> str:
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
        if self._type is not None:
            word = self._type[0]
            return word[:250] if word.count("/") == 1 else "text/plain"
        return clean(
            self._diagnostics.guard("Content-Type", lambda: self._message().get_content_type(), "text/plain")
        )[:250]

    @property
    def charset(self) -> str | None:
        """The declared charset of a text, or None."""
        if self._type is not None:
            charset = self._type[1].get("charset")
            return charset.lower() if charset is not None else None
        return self._diagnostics.guard("charset", lambda: self._message().get_content_charset(), None)

    @property
    def transfer_encoding(self) -> str:
        """The Content-Transfer-Encoding, reduced to lower-case letters and digits."""
        return _NOT_ALPHANUMERIC.sub("", self.token("content-transfer-encoding"))

    @property
    def boundary(self) -> bytes | None:
        """The boundary between the parts of a multipart; None if it is missing or unusable."""
        if self._type is not None:
            boundary = self._type[1].get("boundary", "").rstrip()
        else:
            boundary = self._diagnostics.guard("boundary", lambda: self._message().get_boundary(), None) or ""
        if not boundary or len(boundary) > MAX_BOUNDARY_CHARS:
            return None
        unfolded = boundary.replace("\n", "")
        return self._diagnostics.guard("boundary", lambda: unfolded.encode("utf-8", "surrogateescape"), None)

    @property
    def filename(self) -> str:
        """The file name of an attachment without folders; empty if it has none."""
        raw_name = self._diagnostics.guard("attachment name", self._raw_filename, "")
        charset = self.charset
        if not raw_name:
            return ""
        decoded = decode_encoded_words(raw_name[:MAX_FIELD_CHARS], "filename", self._diagnostics, charset)
        return _FOLDER.split(decoded)[-1].strip()[:250]

    def _raw_filename(self) -> str:
        return self._parameter("content-disposition", self._disposition, "filename") or self._parameter(
            "content-type", self._type, "name"
        )

    def _parameter(self, field: str, simple: tuple[str, dict[str, str]] | None, name: str) -> str:
        if simple is not None:
            return simple[1].get(name, "")
        value = self._message().get_param(name, None, field)
        return collapse_rfc2231_value(value) if value else ""

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
    fields: dict[str, list[str]] = {}
    for name, value, rest in _FIELDS.findall(block.decode("ascii", "surrogateescape")):
        if rest:
            return _parse_malformed_headers(block, diagnostics, default_type)
        fields.setdefault(name.lower(), []).append(value)
    return Headers(fields, diagnostics, default_type), 0


def _parse_malformed_headers(
    block: bytes, diagnostics: Diagnostics, default_type: str
) -> tuple[Headers, int]:
    not_a_field = _NOT_A_FIELD.search(block)
    well_formed = block[: not_a_field.start()] if not_a_field else block
    if len(well_formed) < len(block):
        diagnostics.add_defect("the headers contain a line that is not a header field")
    message = diagnostics.guard(
        "header block",
        lambda: BytesParser(policy=policy.compat32).parsebytes(well_formed, headersonly=True),
        Message(),
    )
    for defect in message.defects:
        diagnostics.add_defect(f"malformed headers ({type(defect).__name__})")
    fields: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        fields.setdefault(name.lower(), []).append(str(value))
    return Headers(fields, diagnostics, default_type), len(block) - len(well_formed)


def decode_encoded_words(field: str, name: str, diagnostics: Diagnostics, charset: str | None = None) -> str:
    r"""Return a raw field as text on one line, with 8-bit bytes and encoded words (RFC 2047) decoded.

    8-bit bytes violate the standard. They are decoded as UTF-8, or else by the charset of the body.

    >>> field = "=?utf-8?q?Gr=C3=BC=C3=9Fe?= from\n =?utf-8?b?S8O2bG4=?="
    >>> decode_encoded_words(field, "subject", Diagnostics())
    'Grüße from Köln'
    """
    line = field.replace("\n", " ").replace("\t", " ")
    if line.isascii() and line.isprintable() and "=?" not in line:
        return " ".join(line.split())
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
    if '"' in addresses or "(" in addresses:
        addresses = _QUOTED_OR_COMMENT.sub(" ", addresses)
    domains = _DOMAIN.findall(addresses)
    return tuple(dict.fromkeys(clean(domain).lower() for domain in domains))[:MAX_DOMAINS]
