"""Write text of users into Markdown."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[\\|*`\[\]$~!#]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.|^[-+=]")
"""Characters that Markdown interprets, also as a link or, at the beginning of a text, as a list.
An underscore inside a word is not one of them."""

_NUMBER = re.compile(r"^([0-9]{1,9})([.)])")
"""The beginning of a numbered list."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, also those that reverse the direction of text."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})
"""Entities also work in renderers that do not know a backslash before ``<``."""


def escape(text: str) -> str:
    r"""Escape text so that Markdown shows it unchanged, on one line. Control characters are replaced.

    >>> escape("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    line = _CONTROL.sub("\ufffd", " ".join(text.split()))
    return _NUMBER.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line)).translate(_ENTITIES)
