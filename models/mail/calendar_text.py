"""Reads the text of a calendar part (RFC 5545), for invitations that have no other text."""

from __future__ import annotations

import re
from typing import Final

_FOLD: Final = re.compile(r"\n[ \t]")
_PROPERTY: Final = re.compile(
    r'(BEGIN|END|SUMMARY|DESCRIPTION|LOCATION|COMMENT)((?:[^":\n]++|"[^"\n]*+")*+):([^\n]*+)', re.IGNORECASE
)
_ESCAPED: Final = re.compile(r"\\([\\;,nN])")


def calendar_to_text(content: str) -> str:
    r"""Return the summary, the place and the descriptions of the events, one on each line.

    Args:
        content: the decoded calendar with ``\n`` line ends.

    >>> calendar_to_text("BEGIN:VEVENT\nSUMMARY;LANGUAGE=en:Visit\\, 2 pm\nDESCRIPTION:Re\n pair\nEND:VEVENT")
    'Visit, 2 pm\nRepair'
    """
    texts: dict[str, None] = {}  # repeated events have the same texts
    in_alarm = False
    for line in _FOLD.sub("", content).split("\n"):
        match = _PROPERTY.match(line)
        if match is None:
            continue
        name, value = match[1].upper(), match[3].strip()
        if name in {"BEGIN", "END"}:
            if value.upper() == "VALARM":
                in_alarm = name == "BEGIN"
        elif value and not in_alarm:
            texts[_ESCAPED.sub(_unescape, value)] = None
    return "\n".join(texts)


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] in "nN" else match[1]
