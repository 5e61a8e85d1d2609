"""Limits on how much of a message is read, which bound the work for any message.

Every limit counts something in the message and none counts time, so that the same bytes give the same
document on every machine. Real mail stays far below all limits. If a message exceeds a limit, the rest of
that part is not read, ``truncated`` is true, and ``defects`` states what was not read.
"""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 16 * 2**20
"""Bytes of a message that are read. What follows is usually attachments."""

MAX_HEADER_BYTES: Final = 2**17
"""Bytes of one header block that are parsed. For comparison: 20,000 addresses in To take 600 kB."""

MAX_FIELD_CHARS: Final = 4096
"""Characters of one header field that are decoded. The pattern takes quadratic time."""

MAX_ADDRESSES_CHARS: Final = 2**15
"""Characters of an address field that are searched for domains."""

MAX_DOMAINS: Final = 50
"""Domains of recipients that are kept."""

MAX_BOUNDARY_CHARS: Final = 200
"""Characters of a multipart boundary. RFC 2046 allows 70."""

MAX_PARTS: Final = 200
"""Parts that are read, including containers."""

MAX_DEPTH: Final = 16
"""Nested containers. Each level reads its body once more."""

MAX_TEXT_BYTES: Final = 2**20
"""Bytes of text that are decoded in all parts together."""

MAX_DETECTION_BYTES: Final = 2**14
"""Bytes that are used to detect the charset of a text."""

MAX_HTML_CHARS: Final = 200_000
"""Characters of HTML that are parsed, without comments, styles and scripts."""

MAX_HTML_TAGS: Final = 10_000
"""Tags of an HTML part that are parsed."""

MAX_HTML_DEPTH: Final = 250
"""HTML elements that are open at the same time. An HTML5 parser searches all of them at every tag."""

MAX_TEXT_CHARS: Final = 200_000
"""Characters of new text, and of quoted text, that a document contains."""

MAX_QUOTE_LINE_CHARS: Final = 200
"""Characters of a line that introduces a quotation ("On … wrote:"). Longer lines do not."""

MAX_DEFECTS: Final = 30
"""Distinct defects that are listed."""
