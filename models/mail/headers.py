"""Reads the fields of a header block, with protection against errors of the parser.

Well-formed header blocks and parameters of common form are read here, because the standard library takes many
times longer. Everything else goes to its parser with the ``compat32`` policy, which does not interpret the
fields. Both ways give the same result. ``policy.default`` parses fields into objects and fails on a single
malformed field: it raises IndexError for ``Message-ID: <[x]@y>`` and LookupError for an unknown charset, and
needs six seconds for 20,000 addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from email import policy
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import unquote

from models.mail.addresses import find_domains
from models.mail.charsets import clean, decode, find_undeclared_codec
from models.mail.diagnostics import Diagnostics
from models.mail.header_lines import remove_odd_lines
from models.mail.japanese import decode_iso2022_jp, is_iso2022_jp
from models.mail.limits import (
    MAX_ADDRESSES_CHARS,
    MAX_BOUNDARY_CHARS,
    MAX_FIELD_CHARS,
)
from models.mail.mail_systems import is_mail_system
from models.mail.transfer_encoding import repair_base64

_FIELDS_WITH_PARAMETERS = ("content-type", "content-disposition")
_FIELDS = re.compile(r"([!-9;-~]++):[ \t]*+([^\n]*+(?:\n[ \t][^\n]*+)*+)(?:\n|\Z)|([\s\S]++)")
"""Name and value of a well-formed field, or else the rest of the header block."""
_VALUE = r'(?:"[ !#-;=?-\[\]-~\udc80-\udcff]*+"|[!#-:=?-\[\]-~\udc80-\udcff]++)'
"""A parameter's value without escapes, angle brackets and, if it is not quoted, spaces."""
_SIMPLE_PARAMETERS = re.compile(
    rf"\s*+([\w!#$%&'*+./^`|~-]++)((?:\s*+;\s*+[\w.-]++\s*+=\s*+{_VALUE})*+)[\s;]*+", re.ASCII
)
_PARAMETER = re.compile(rf";\s*+([\w.-]++)\s*+=\s*+({_VALUE})", re.ASCII)
_MESSAGE_ID = re.compile(r"<([^<>\s]+@[^<>\s]+)>")
_NOT_A_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that represent no byte. The parser maps 8-bit bytes to the other surrogates."""
_SURROGATES_TO_PRIVATE = {0xDC80 + number: 0xF780 + number for number in range(128)}
_PRIVATE_TO_SURROGATES = {private: surrogate for surrogate, private in _SURROGATES_TO_PRIVATE.items()}
_BASE64_WORD = re.compile(
    r"(=\?[^?\s]++\?[bB]\?)(?!(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2,3}={0,2}+)?\?=)([^?]*+)(?=\?=)"
)
"""An encoded word in base64 with errors other than missing padding."""
_UNCLOSED_WORD = re.compile(r"=\?[^?\s]+\?[bBqQ]\?[^?\s]*\??\Z")
_AUTOMATED_PRECEDENCES = frozenset({"bulk", "junk", "list", "auto_reply"})
_LIST_ID = re.compile(r"<([^<>\s]+)>")
_NOT_ALPHANUMERIC = re.compile("[^a-z0-9]")
_TRANSFER_ENCODINGS = {
    "": "",
    "7bit": "7bit",
    "8bit": "8bit",
    "base64": "base64",
    "quoted-printable": "quotedprintable",
}
"""The usual spellings of Content-Transfer-Encoding."""
_FOLDER = re.compile(r"[/\\]")


def decode_raw_bytes(content: bytes) -> str:
    """Decode 8-bit bytes of a header field without any other information."""
    return content.decode(find_undeclared_codec(content), "replace")


def list_name(field: str) -> str | None:
    """Return the mailing list in a List-Id line (RFC 2919); None if it is empty.

    >>> list_name("Users of Covey <users.example.org>"), list_name("")
    ('users.example.org', None)
    """
    match = _LIST_ID.search(field)
    return (match[1] if match else field)[:250] or None


def file_name(name: str) -> str:
    r"""Return the name of a file without its folders.

    >>> file_name("C:\\Temp\\invoice.pdf")
    'invoice.pdf'
    """
    return _FOLDER.split(name)[-1].strip()[:250]


class Headers:
    """The header fields of a message or of one of its parts.

    Args:
        fields: the values of each field, by name in lower case.
        diagnostics: receives a defect for each unreadable field.
        default_type: the content type if none is declared.

    Attributes:
        decode_raw: decodes 8-bit bytes, which violate the standard.
    """

    def __init__(
        self, fields: dict[str, list[str]], diagnostics: Diagnostics, default_type: str = "text/plain"
    ) -> None:
        self._diagnostics = diagnostics
        self._fields = fields
        self._default_type = default_type
        self._texts: dict[str, str] = {}
        self._parsed: Message | None = None
        self.decode_raw: Callable[[bytes], str] = decode_raw_bytes
        self._type = self._simple_parameters("content-type", default_type)
        self._disposition = self._simple_parameters("content-disposition", "")

    def _simple_parameters(self, name: str, default: str) -> tuple[str, dict[str, str]] | None:
        """Return the first word and the parameters of a field; None if the standard library must read it."""
        if name not in self._fields:
            return default, {}
        field = self._field(name)
        if len(field) > MAX_FIELD_CHARS:
            self._diagnostics.add_truncation(_too_long(name))
            return None
        match = _SIMPLE_PARAMETERS.fullmatch(field)
        if match is None:
            return None
        word = match[1].lower()
        parameters = {word: ""}
        for parameter, value in _PARAMETER.findall(match[2]):
            parameters.setdefault(parameter.lower(), value.strip('"'))
        return word, parameters

    def _message(self) -> Message:
        """Return a message of the standard library with the fields that have parameters.

        The library replaces the surrogates for 8-bit bytes, so these are replaced by private characters.
        """
        if self._parsed is None:
            self._parsed = Message()
            self._parsed.set_default_type(self._default_type)
            for name in _FIELDS_WITH_PARAMETERS:
                if name in self._fields:
                    field = self._field(name)[:MAX_FIELD_CHARS]
                    self._parsed.set_raw(name, field.translate(_SURROGATES_TO_PRIVATE))
        return self._parsed

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def __len__(self) -> int:
        return len(self._fields)

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
        return decode_encoded_words(field[:MAX_FIELD_CHARS], name, self._diagnostics, self.decode_raw)

    def domains(self, *names: str) -> tuple[str, ...]:
        """Return the distinct domains of the addresses in these fields, in lower case and in order."""
        return find_domains(addresses) if (addresses := self.address_lines(*names)) else ()

    def address_lines(self, *names: str) -> str:
        """Return the values of these fields, at most ``MAX_ADDRESSES_CHARS``."""
        fields = [field for name in names for field in self._fields.get(name, ())]
        if not fields:
            return ""
        if max(map(len, fields)) > MAX_ADDRESSES_CHARS:
            self._diagnostics.add_truncation(
                f"an address header is longer than {MAX_ADDRESSES_CHARS:,} characters; the rest was not read"
            )
        addresses = "\n".join(fields)[:MAX_ADDRESSES_CHARS]
        return addresses if addresses.isascii() else _to_bytes(addresses).decode("utf-8", "replace")

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
        return list_name(self.text("list-id")) if "list-id" in self._fields else None

    @property
    def automated(self) -> bool:
        """Whether the fields state that a program sent the message or that nobody should reply to it."""
        return (
            ("auto-submitted" in self._fields and self.token("auto-submitted") not in {"", "no"})
            or ("precedence" in self._fields and self.token("precedence") in _AUTOMATED_PRECEDENCES)
            or "x-autoreply" in self._fields
            or "x-autorespond" in self._fields
            or self._field("return-path").strip() == "<>"
            or is_mail_system(self.text("from"))
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
        common = _TRANSFER_ENCODINGS.get(self._field("content-transfer-encoding"))
        if common is not None:
            return common
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
        unfolded = boundary.replace("\n", "").translate(_PRIVATE_TO_SURROGATES)
        return self._diagnostics.guard("boundary", lambda: unfolded.encode("utf-8", "surrogateescape"), None)

    @property
    def filename(self) -> str:
        """The file name of an attachment without folders; empty if it has none."""
        if self._disposition is not None and self._type is not None:  # most parts
            raw_name = self._disposition[1].get("filename") or self._type[1].get("name", "")
        else:
            raw_name = self._diagnostics.guard("attachment name", self._raw_filename, "")
        if not raw_name:
            return ""
        decoded = decode_encoded_words(
            raw_name[:MAX_FIELD_CHARS], "filename", self._diagnostics, self.decode_raw
        )
        return file_name(decoded)

    def _raw_filename(self) -> str:
        return self._parameter("content-disposition", self._disposition, "filename") or self._parameter(
            "content-type", self._type, "name"
        )

    def _parameter(self, field: str, simple: tuple[str, dict[str, str]] | None, name: str) -> str:
        if simple is not None:
            return simple[1].get(name, "")
        if name not in self._field(field).lower():  # most fields
            return ""
        value = self._message().get_param(name, None, field)
        if isinstance(value, tuple):  # RFC 2231: charset, language and text, with its bytes as characters
            charset, _, text = value
            content = text.translate(_PRIVATE_TO_SURROGATES).encode("latin-1", "surrogateescape")
            return decode(content, charset, self._diagnostics) if charset else self.decode_raw(content)
        return unquote(value).translate(_PRIVATE_TO_SURROGATES) if value else ""

    @property
    def is_displayed(self) -> bool | None:
        """Whether text is meant for display (RFC 2183); None if it has a file name and no disposition."""
        disposition = self.token("content-disposition")
        if disposition in {"attachment", "inline"}:
            return disposition == "inline"
        if not self.filename:
            return True
        return False if disposition else None


def _too_long(name: str) -> str:
    return f"the header {name} is longer than {MAX_FIELD_CHARS:,} characters; the rest was not read"


def parse_headers(
    block: bytes, diagnostics: Diagnostics, default_type: str = "text/plain"
) -> tuple[Headers, int]:
    r"""Parse a header block. Also return how many bytes at its end belong to the body.

    A line that is not a header field ends the headers, unless known fields follow.

    Args:
        block: bytes up to the first blank line, with ``\n`` line ends, at most ``MAX_HEADER_BYTES``.
        diagnostics: receives the defects.
        default_type: the content type if none is declared.
    """
    fields: dict[str, list[str]] = {}
    found = _FIELDS.findall(block.decode("ascii", "surrogateescape"))
    if found and found[-1][2]:  # the rest of the header block
        return _parse_malformed_headers(block, diagnostics, default_type)
    for name, value, _ in found:
        fields.setdefault(name.lower(), []).append(value)
    return Headers(fields, diagnostics, default_type), 0


def _parse_malformed_headers(
    block: bytes, diagnostics: Diagnostics, default_type: str
) -> tuple[Headers, int]:
    well_formed, n_left_over, is_odd = remove_odd_lines(block)
    if is_odd:
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
    return Headers(fields, diagnostics, default_type), n_left_over


def decode_encoded_words(
    field: str, name: str, diagnostics: Diagnostics, decode_raw: Callable[[bytes], str] = decode_raw_bytes
) -> str:
    r"""Return a raw field as text on one line, with 8-bit bytes and encoded words (RFC 2047) decoded.

    Args:
        field: the raw field.
        name: its name, for the defects.
        diagnostics: receives the defects.
        decode_raw: decodes 8-bit bytes, which violate the standard.

    >>> field = "=?utf-8?q?Gr=C3=BC=C3=9Fe?= from\n =?utf-8?b?S8O2bG4=?="
    >>> decode_encoded_words(field, "subject", Diagnostics())
    'Grüße from Köln'
    """
    line = field.replace("\n", " ").replace("\t", " ")
    if line.isascii() and line.isprintable() and "=?" not in line:
        return " ".join(line.split())
    field = " ".join(field.splitlines())
    if "\x1b" in field and is_iso2022_jp(content := _to_bytes(field)):
        field = decode_iso2022_jp(content)
    elif not field.isascii():
        field = decode_raw(_to_bytes(field))
    if "=?" in field:
        words, is_repaired = _split_encoded_words(field, name, diagnostics)
        field = "".join(
            word
            if isinstance(word, str)
            else decode(word, _without_language(declared), diagnostics, is_repaired)
            for word, declared in words
        )
    return " ".join(clean(field).split())


def _to_bytes(field: str) -> bytes:
    return _NOT_A_BYTE.sub("\ufffd", field).encode("utf-8", "surrogateescape")


def _without_language(charset: str | None) -> str | None:
    """Return the charset of an encoded word without its language, which follows it (RFC 2231, section 5)."""
    return charset.partition("*")[0] if charset else charset


def _split_encoded_words(
    field: str, name: str, diagnostics: Diagnostics
) -> tuple[list[tuple[str | bytes, str | None]], bool]:
    """Return the text and the decoded words of a field, with their charsets, and whether a word was bad."""
    if _UNCLOSED_WORD.match(field, field.rfind("=?")):
        field = field.removesuffix("?") + "?="
    is_base64 = "?b?" in field or "?B?" in field
    repaired = _BASE64_WORD.sub(_repair_word, field) if is_base64 else field
    unread: list[tuple[str | bytes, str | None]] = [(field, None)]
    words = diagnostics.guard(f"header {name}", lambda: list(decode_header(repaired)), unread)
    return words, repaired != field


def _repair_word(word: re.Match[str]) -> str:
    digits = repair_base64("".join(word[2].split()).encode("ascii", "replace")).decode()
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return word[1] + digits + "=" * (-len(digits) % 4)
