"""How much of a message is read, so that no message costs more than a known amount of work.

Every cap counts something in the message, never seconds: the same bytes give the same document on a
fast machine and on a busy one. Real mail stays far below all of them. Where one is met, the rest of
that part is left unread, the document says ``truncated`` and lists what was cut among its defects.
"""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 16 * 2**20
"""Bytes of a message that are looked at; what larger ones have beyond it is attachments."""

MAX_HEADER_BYTES: Final = 2**17
"""Bytes of one header block that are parsed; 20,000 addresses in To take 600 kB."""

MAX_FIELD_CHARS: Final = 4096
"""Characters of one header field that are decoded, by a pattern that takes quadratic time."""

MAX_ADDRESSES_CHARS: Final = 2**15
"""Characters of an address field in which domains are looked for."""

MAX_DOMAINS: Final = 50
"""Recipients' domains that are kept."""

MAX_BOUNDARY_CHARS: Final = 200
"""Length of a multipart boundary (RFC 2046 allows 70)."""

MAX_PARTS: Final = 200
"""Parts that are visited, containers included."""

MAX_DEPTH: Final = 16
"""Containers inside containers; each level reads its body once more."""

MAX_TEXT_BYTES: Final = 2**20
"""Bytes of text that are decoded, all parts together."""

MAX_DETECTION_BYTES: Final = 2**14
"""Bytes of a text without a usable charset from which one is guessed."""

MAX_HTML_CHARS: Final = 200_000
"""Characters of HTML that are parsed, comments, styles and scripts not counted."""

MAX_HTML_TAGS: Final = 10_000
"""Tags of an HTML part that are parsed."""

MAX_HTML_DEPTH: Final = 250
"""Open elements at one place; an HTML5 parser searches them all at every tag."""

MAX_TEXT_CHARS: Final = 200_000
"""Characters of new text, and of quoted text, that a document keeps."""

MAX_QUOTE_LINES: Final = 200
"""Lines that are tried as the introduction of a quotation ("On … wrote:"), with quadratic patterns."""

MAX_QUOTE_LINE_CHARS: Final = 200
"""Characters of such a line; longer ones introduce nothing."""

MAX_DEFECTS: Final = 30
"""Defects that are listed, each once."""
