"""Combines the parts of a message to its text and its attachments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from models.mail.calendar_text import calendar_to_text
from models.mail.charsets import clean, find_codec, find_undeclared_codec, is_utf8
from models.mail.diagnostics import Diagnostics
from models.mail.html_text import html_to_text
from models.mail.inline_files import extract_inline_files
from models.mail.limits import MAX_PARTS, MAX_TEXT_CHARS
from models.mail.mime import CALENDAR, Part
from models.mail.quoting import split_quoted_text

_HTML_TYPES: Final = frozenset({"text/html", "text/enriched", "text/richtext"})
_HTML_DOCUMENT: Final = re.compile(r"\s*+<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_HTML_FRAGMENT: Final = re.compile(
    r"\s*+<(?:!--|\?xml\s|(?:a|article|b|blockquote|br|center|div|em|font|h[1-6]|hr|i|img|link|meta|ol|p|pre|section"
    r"|span|strong|style|table|tbody|td|title|tr|u|ul)[\s/>])",
    re.IGNORECASE,
)
_TAG_AT_START: Final = re.compile(r"\s*+<")
_TAG_AT_END: Final = re.compile(r"<(?:/?[a-z][a-z0-9]*+\s*+/?|!--[^>]*+--)>\s*+\Z", re.IGNORECASE)
_END_CHARS: Final = 200
_MAX_STUB_CHARS: Final = 600
_MAX_STUB_LETTERS: Final = 30
_STUB_RATIO: Final = 2
"""The HTML must have this many times the letters of a nearly empty plain text that stands for it."""
_FILE_TYPE: Final = "application/octet-stream"
_TNEF: Final = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
_TNEF_NAME: Final = "winmail.dat"
_TNEF_WITH_TEXT: Final = "the text is in winmail.dat, which is not read"
_TNEF_WITH_FILES: Final = "attachments can be in winmail.dat, which is not read"
_SAMPLE_CHARS: Final = 1000
_WORD: Final = re.compile(r"\w+")
_ALPHANUMERIC: Final = re.compile(r"[^\W_]")
_STUB: Final = re.compile(
    r"\bhtml\b|\bmime\b|browser|navigateur|navegador|prohlížeč|przegląd|браузер|ブラウザ|浏览器|瀏覽器",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Body:
    """The combined content of all parts of a message.

    Attributes:
        new: text that the author wrote.
        quoted: text that is quoted or forwarded, including attached messages.
        attachments: file name (may be empty) and content type of each attachment.
    """

    new: str
    quoted: str
    attachments: tuple[tuple[str, str], ...]


class RawBytesDecoder:
    """Decodes 8-bit bytes in header fields: as UTF-8, or else in the charset of the text of the message.

    Args:
        parts: all parts of the message.
    """

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def decode(self, content: bytes) -> str:
        """Return the text of a field with 8-bit bytes."""
        codec = None if is_utf8(content) else self._codec
        if codec is not None:
            try:
                return content.decode(codec)
            except UnicodeError:
                pass
        return content.decode(find_undeclared_codec(content, self._sample), "replace")

    @cached_property
    def _codec(self) -> str | None:
        """The codec of the first text that is not ASCII or UTF-8, as declared or detected."""
        for part in self._parts:
            if part.is_text:
                declared = find_codec(part.headers.charset or "")
                if declared is not None and declared not in {"ascii", "utf_8"}:
                    return declared
                content = part.content(Diagnostics())
                if not is_utf8(content):
                    return find_undeclared_codec(content)
        return None

    @cached_property
    def _sample(self) -> str:
        """The beginning of the first text, which shows the language."""
        first = next((part for part in self._parts if part.is_text), None)
        return first.text(Diagnostics())[:_SAMPLE_CHARS] if first else ""


class _Text:
    """The text of one part: plain text, or HTML that is converted when it is needed.

    Args:
        source: decoded text or markup.
        is_html: whether it is HTML.
        is_declared: whether its content type states so.
        diagnostics: receives truncations of HTML.

    Attributes:
        files: names of the files that are written into the text.
        is_read: whether it is read rather than one of its alternatives.
    """

    def __init__(self, source: str, is_html: bool, is_declared: bool, diagnostics: Diagnostics) -> None:
        self._source, self.files = (source, []) if is_html else extract_inline_files(source)
        self.is_read = True
        self.is_html = is_html
        self.is_declared = is_declared
        self._diagnostics = diagnostics
        self._text = None if is_html else self._source

    @property
    def text(self) -> str:
        """The text that a reader sees."""
        if self._text is None:
            self._text = clean(html_to_text(self._source, self._diagnostics))
        return self._text


def _read_text(content: str, content_type: str, diagnostics: Diagnostics) -> _Text:
    """Return the text of a part. Plain text that is HTML is read as HTML."""
    if content_type in _HTML_TYPES:
        return _Text(content, True, True, diagnostics)
    text = clean(content)
    is_html = content_type == "text/plain" and looks_like_html(text)
    return _Text(text, is_html, not is_html, diagnostics)


def looks_like_html(text: str) -> bool:
    """Return whether text without a correct content type is HTML: a document, or a fragment from end to end.

    >>> looks_like_html("<html><body>Hello</body></html>"), looks_like_html("<p>Hello</p>")
    (True, True)
    >>> looks_like_html("<p> is a tag"), looks_like_html("<ann@example.org> wrote")
    (False, False)
    """
    if _TAG_AT_START.match(text) is None:  # most text
        return False
    if _HTML_DOCUMENT.match(text):
        return True
    return _HTML_FRAGMENT.match(text) is not None and _TAG_AT_END.search(text[-_END_CHARS:]) is not None


def choose_text(plain: str, html: str, diagnostics: Diagnostics) -> Body:
    """Return the content of a message that has plain text and HTML, of which either can be empty."""
    texts = [_read_text(plain, "text/plain", diagnostics)]
    if html:
        texts.append(_read_text(html, "text/html", diagnostics))
    best = _best_alternatives(texts)
    new, quoted = split_quoted_text(_truncate(_join([text.text for text in best]), diagnostics))
    return Body(new, quoted, _attachments([(name, _FILE_TYPE) for text in best for name in text.files]))


def combine(parts: list[Part], diagnostics: Diagnostics) -> Body:
    """Combine the texts and the attachments of all parts."""
    texts = {
        number: _read_text(part.text(diagnostics), part.content_type, diagnostics)
        for number, part in enumerate(parts)
        if part.is_text
    }
    alternatives: dict[int, list[_Text]] = {}
    for number, text in texts.items():
        if (alternative := parts[number].alternative) is not None:
            alternatives.setdefault(alternative, []).append(text)
    for group in alternatives.values():
        best = _best_alternatives(group)
        for text in group:
            text.is_read = text in best
    direct: list[str] = []
    forwarded: list[str] = []
    attachments: list[tuple[str, str]] = []
    for number, part in enumerate(parts):
        into = direct
        if part.forwarded:
            into = forwarded
            into.append(part.headers.text("subject"))
        if number in texts and (shown := texts[number]).is_read:
            into.append(shown.text)
            attachments += [(name, _FILE_TYPE) for name in shown.files]
        if part.is_attachment:
            attachments.append((part.headers.filename, part.content_type))
    is_blank = not (any(map(has_words, direct)) or any(map(has_words, forwarded)))
    if is_blank:
        direct += [
            clean(calendar_to_text(clean(part.text(diagnostics))))
            for part in parts
            if part.content_type == CALENDAR
        ]
    if any(content_type in _TNEF or name.lower() == _TNEF_NAME for name, content_type in attachments):
        diagnostics.add_defect(_TNEF_WITH_TEXT if is_blank else _TNEF_WITH_FILES)
    new, quoted = split_quoted_text(_truncate(_join(direct), diagnostics))
    return Body(new, _truncate(_join([quoted, *forwarded]), diagnostics), _attachments(attachments))


def _attachments(attachments: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(attachments[:MAX_PARTS])


def _best_alternatives(texts: list[_Text]) -> list[_Text]:
    """Return the texts of a multipart/alternative that are read: plain text with words, or else the HTML.

    A short plain text that only stands for the HTML ("Your program does not show HTML") is not read.
    """
    html = [text for text in texts if text.is_html]
    if not html:
        return texts
    plain = [text for text in texts if not text.is_html]
    declared = [text for text in html if text.is_declared]
    if not any(has_words(text.text) for text in plain):
        return [text for text in declared if has_words(text.text)] or html
    return declared if declared and _stands_for("\n".join([text.text for text in plain]), declared) else plain


def _stands_for(plain: str, html: list[_Text]) -> bool:
    """Whether a plain text says little more than that the message is in HTML."""
    plain = plain.strip()
    if len(plain) > _MAX_STUB_CHARS:
        return False
    n_letters = _n_letters(plain)
    mentions_html = _STUB.search(plain) is not None
    if not mentions_html and n_letters > _MAX_STUB_LETTERS:
        return False
    content = "\n".join(text.text for text in html)
    if mentions_html:
        words = _words(plain)
        return has_words(content) and 2 * len(words & _words(content)) < len(words)
    return _n_letters(content) >= _STUB_RATIO * max(n_letters, _MAX_STUB_LETTERS)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _n_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _join(texts: list[str]) -> str:
    return "\n\n".join([stripped for text in texts if (stripped := text.strip())])


def _truncate(text: str, diagnostics: Diagnostics) -> str:
    """Return at most ``MAX_TEXT_CHARS`` characters of a text."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    diagnostics.add_truncation(
        f"the text is longer than {MAX_TEXT_CHARS:,} characters; the rest was not read"
    )
    return text[:MAX_TEXT_CHARS]


def has_words(text: str) -> bool:
    """Return whether a text contains a letter or a digit."""
    return _ALPHANUMERIC.search(text) is not None
