"""Decides from style attributes whether text is visible, by the rules of CSS.

``display:none``, ``opacity:0`` and a box of no size that hides its overflow hide all that they contain.
``visibility`` and ``font-size`` are inherited, and a descendant can set them again: mail made with MJML has
``font-size:0`` on every cell, and the size of the text inside it. ``mso-hide`` hides text in one mail
program only, so it has no effect here. Style sheets are not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

_MAY_HIDE: Final = re.compile(r"display|visibility|opacity|font|overflow|/\*", re.IGNORECASE)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ZERO: Final = re.compile(r"[+-]?(?:0++(?:\.0*+)?|\.0++)(?:px|pt|pc|em|rem|ex|ch|in|cm|mm|vw|vh|%)?")
_SIZE: Final = re.compile(r"(?!0*[1-9][0-9]*\Z)[+-]?\.?[0-9]")
"""The start of a number with a unit, or of zero. Other numbers in ``font`` are weights."""
_RELATIVE: Final = re.compile(r".*(?<!r)(?:em|ex|ch|%)|inherit|unset|larger|smaller|revert.*")
"""Font sizes that depend on the size outside, so that they do not end a size of zero."""
_FONT_SIZE_KEYWORDS: Final = frozenset(
    {"xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large", "larger", "smaller"}
)
_LENGTHS: Final = ("height", "max-height", "width", "max-width")


class Visibility(NamedTuple):
    """The inherited properties that make text invisible.

    Attributes:
        hidden: whether ``visibility`` is ``hidden``.
        no_size: whether the font size is zero.
    """

    hidden: bool
    no_size: bool

    @property
    def is_visible(self) -> bool:
        """Whether text is visible."""
        return not (self.hidden or self.no_size)

    def with_size(self) -> Visibility:
        """Return the visibility of text whose font size is set."""
        return Visibility(self.hidden, False) if self.no_size else self


VISIBLE: Final = Visibility(False, False)


@dataclass(frozen=True, slots=True)
class Style:
    """The effect of a style attribute on the visibility of text.

    Attributes:
        removed: whether the element and all that it contains are hidden.
        displayed: whether the style sets a ``display`` other than ``none``.
        hidden: whether the text is hidden by ``visibility``; None if this is inherited.
        no_size: whether the font size is zero; None if this is inherited.
    """

    removed: bool = False
    displayed: bool = False
    hidden: bool | None = None
    no_size: bool | None = None

    def apply(self, outside: Visibility) -> Visibility:
        """Return the visibility of text inside the element."""
        if self.hidden is None and self.no_size is None:
            return outside
        return Visibility(
            outside.hidden if self.hidden is None else self.hidden,
            outside.no_size if self.no_size is None else self.no_size,
        )


_NO_EFFECT: Final = Style()


def parse_style(text: str) -> Style:
    """Return the effect of a style attribute. The last declaration of a property counts, as in CSS.

    >>> parse_style("font-size: 0; padding: 0").no_size, parse_style("font-size:13px").no_size
    (True, False)
    >>> parse_style("max-height:0;overflow:hidden").removed, parse_style("mso-hide:all").removed
    (True, False)
    """
    if not _MAY_HIDE.search(text):
        return _NO_EFFECT
    if "/*" in text:
        text = _COMMENT.sub("", text)
    values: dict[str, str] = {}
    important: set[str] = set()
    for declaration in text.lower().split(";"):
        name, _, value = declaration.partition(":")
        name = name.strip()
        value, exclamation, _ = value.partition("!")
        if exclamation:
            important.add(name)
        elif name in important:
            continue
        if name == "font":
            name, value = "font-size", _size_in_font(value)
        if value := value.strip():
            values[name] = value
    display = values.get("display", "")
    return Style(
        removed=display == "none" or _is_zero_opacity(values.get("opacity", "")) or _hides_overflow(values),
        displayed=display not in {"", "none"},
        hidden=_hides(values.get("visibility", "")),
        no_size=_has_no_size(values.get("font-size", "")),
    )


def _size_in_font(value: str) -> str:
    """Return the font size in the value of ``font``, such as ``bold 0/0 Arial``."""
    for word in value.split():
        size = word.partition("/")[0]
        if size in _FONT_SIZE_KEYWORDS or _SIZE.match(size):
            return size
    return ""


def _is_zero_opacity(value: str) -> bool:
    return _ZERO.fullmatch(value) is not None


def _hides_overflow(values: dict[str, str]) -> bool:
    """Whether the element has no size and hides what does not fit into it."""
    return any(
        values.get(overflow, "").startswith(("hidden", "clip"))
        for overflow in ("overflow", "overflow-x", "overflow-y")
    ) and any(name in values and _ZERO.fullmatch(values[name]) is not None for name in _LENGTHS)


def _hides(visibility: str) -> bool | None:
    if visibility in {"hidden", "collapse"}:
        return True
    return False if visibility in {"visible", "initial"} else None


def _has_no_size(size: str) -> bool | None:
    if not size:
        return None
    if _ZERO.fullmatch(size):
        return True
    return None if _RELATIVE.fullmatch(size) else False
