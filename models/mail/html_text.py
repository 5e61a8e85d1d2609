"""Converts HTML to text by its block structure.

Only block elements break lines, so that inline tags never split a word. Scripts, styles, hidden elements and
comments are removed. Each line of a quotation begins with ``>``, as in plain text.
"""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from models.mail.diagnostics import Diagnostics
from models.mail.limits import MAX_HTML_CHARS, MAX_HTML_DEPTH, MAX_HTML_TAGS

# fmt: off
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3",
    "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})
_CELLS: Final = frozenset({"td", "th"})
_DROPPED: Final = frozenset({
    "head", "title", "script", "style", "template", "svg", "math", "iframe", "object", "-comment",
})
_VOID: Final = frozenset({
    "area", "base", "basefont", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
    "param", "source", "track", "wbr",
})
_CLOSED_IMPLICITLY: Final = frozenset({
    "p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "caption", "html", "body",
    "head",
})
_QUOTES: Final = frozenset({
    "gmail_quote", "gmail_attr", "yahoo_quoted", "protonmail_quote", "moz-cite-prefix",
    "moz-forward-container",
})
# fmt: on
_KNOWN: Final = _BLOCKS | _CELLS | _DROPPED | _VOID
_INVISIBLE_STYLE: Final = re.compile(
    r"(?:^|;)(?:display:none|visibility:hidden|mso-hide:all|opacity:0(?:\.0+)?(?=;|$|!)|"
    r"(?:font-size|max-height):0(?:px|pt|em|%)?(?=;|$|!))"
)
_REMOVED_FIRST: Final = tuple(
    (re.compile(opening, re.ASCII | re.IGNORECASE), re.compile(closing, re.ASCII | re.IGNORECASE))
    for opening, closing in (("<!--", "-->"), ("<style", "</style"), ("<script", "</script"))
)
_SPACE: Final = r"[ \t\n\f\r]"
_TAG: Final = re.compile(rf'<(/?)([a-zA-Z][^\s/>]*+)((?:{_SPACE}++[a-zA-Z:-]++="[^"]*+")*+{_SPACE}*+/?>)?')
"""A tag, with its attributes and its end if all attributes are quoted, as in most tags."""
_QUOTED_ATTRIBUTE: Final = re.compile(r'([a-zA-Z:-]++)(="[^"]*+")')
_VALUE: Final = rf"""={_SPACE}*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^ \t\n\f\r>]*)"""
_ATTRIBUTE: Final = re.compile(rf"[ \t\n\f\r/]*(=?[^ \t\n\f\r/>=]*)(?:{_SPACE}*({_VALUE}))?")
_READ_ATTRIBUTES: Final = frozenset({"hidden", "style", "class"})


def html_to_text(html: str, diagnostics: Diagnostics) -> str:
    r"""Return the visible text of an HTML body, with one line for each block.

    Args:
        html: the markup, valid or not.
        diagnostics: receives a truncation if the markup exceeds a limit.

    >>> html_to_text("<p>Your <b>in</b>voice</p><p hidden>x</p><blockquote>old</blockquote>", Diagnostics())
    'Your invoice\n> old'
    """
    tree = diagnostics.guard("HTML", lambda: LexborHTMLParser(_simplify(html, diagnostics)).root, None)
    return "" if tree is None else _Lines().read(tree)


def _simplify(html: str, diagnostics: Diagnostics) -> str:
    """Return markup with the same text that an HTML5 parser handles in linear time.

    At every tag, such a parser searches all open elements, and it can copy formatting elements (``<b>``) into
    new blocks. At every attribute, it searches the attributes before it. Malicious input makes this quadratic
    in time and memory. This function replaces all inline elements by ``<span>``, which the parser never
    copies, keeps only the attributes that this module reads, and stops if too many elements are open.
    """
    for opening, closing in _REMOVED_FIRST:
        html = _remove_between(html, opening, closing)
    if len(html) > MAX_HTML_CHARS:
        diagnostics.add_truncation(
            f"the HTML is longer than {MAX_HTML_CHARS:,} characters; the rest was not read"
        )
        html = html[:MAX_HTML_CHARS]
    pieces: list[str] = []
    open_elements: dict[str, int] = {}
    depth = end = 0
    tags = 0
    while tag := _TAG.search(html, end):
        slash, name, rest = tag.groups()
        name = name.lower()
        if name not in _KNOWN:
            name = "span"
        if name not in _VOID and name not in _CLOSED_IMPLICITLY:
            if not slash:
                open_elements[name] = open_elements.get(name, 0) + 1
                depth += 1
            elif open_elements.get(name, 0):
                open_elements[name] -= 1
                depth -= 1
        if depth > MAX_HTML_DEPTH or tags == MAX_HTML_TAGS:
            diagnostics.add_truncation(
                f"the HTML has more than {MAX_HTML_TAGS:,} tags or {MAX_HTML_DEPTH} open elements; "
                "the rest was not read"
            )
            return "".join([*pieces, html[end : tag.start()]])
        pieces += (html[end : tag.start()], "<", slash, name)
        tags += 1
        end = tag.end()
        if rest == ">":
            pieces.append(rest)
        elif rest is not None:
            pieces += _read_quoted_attributes(rest)
        else:
            attributes, end = _read_attributes(html, end)
            pieces += attributes
    return "".join([*pieces, html[end:]])


def _read_quoted_attributes(rest: str) -> list[str]:
    """Return the end of a tag with the attributes that this module reads, if all attributes are quoted."""
    kept: dict[str, str] = {}
    for name, value in _QUOTED_ATTRIBUTE.findall(rest):
        lower = name.lower()
        if lower in _READ_ATTRIBUTES:
            kept.setdefault(lower, f" {lower}{value}")
    return [*kept.values(), "/>" if rest.endswith("/>") else ">"]


def _read_attributes(html: str, position: int) -> tuple[list[str], int]:
    """Return the end of a tag with the attributes that this module reads, and the position after the tag."""
    kept: dict[str, str] = {}
    while position < len(html) and html[position] != ">":
        attribute = _ATTRIBUTE.match(html, position)
        if attribute is None or attribute.end() == position:  # cannot happen, but must not loop for ever
            break
        position = attribute.end()
        name = attribute[1].lower()
        if name in _READ_ATTRIBUTES:
            kept.setdefault(name, f" {name}{attribute[2] or ''}")
    if position >= len(html):
        return [*kept.values()], len(html)  # the parser drops a tag without an end
    end = "/>" if html[position - 1] == "/" else ">"
    return [*kept.values(), end], position + 1


def _remove_between(html: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """Remove everything from each opening mark to the end of the tag of its closing mark."""
    kept: list[str] = []
    end = 0
    while start := opening.search(html, end):
        kept.append(html[end : start.start()])
        close = closing.search(html, start.end())
        if close is None:
            return "".join(kept)
        end = html.find(">", close.start()) + 1 or len(html)
    return "".join([*kept, html[end:]]) if end else html


class _Lines:
    """Collects text nodes into lines. Walks the tree without recursion."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._quoted = 0
        self._preformatted = 0

    def read(self, root: LexborNode) -> str:
        """Return the lines of a tree, joined by newlines."""
        stack: list[tuple[LexborNode, bool | None]] = [(root, None)]
        while stack:
            node, quotation = stack.pop()  # None: enter the node; otherwise leave it
            tag = node.tag or ""
            if quotation is not None:
                self._leave(tag, quotation)
            elif tag == "-text":
                self._add(node.text_content or "")
            elif tag == "br":
                self._break()
            elif tag not in _DROPPED:
                attributes = node.attributes
                if attributes and _is_hidden(attributes):
                    continue
                quotation = tag == "blockquote" or bool(attributes and _is_quotation(attributes))
                self._enter(tag, quotation)
                stack.append((node, quotation))
                child = node.last_child
                while child is not None:
                    stack.append((child, None))
                    child = child.prev
        self._break()
        return "\n".join(self._lines)

    def _enter(self, tag: str, quotation: bool) -> None:
        if tag in _BLOCKS:
            self._break()
        elif tag in _CELLS:
            self._line.append(" ")
        self._quoted += quotation
        self._preformatted += tag == "pre"

    def _leave(self, tag: str, quotation: bool) -> None:
        if tag in _BLOCKS or quotation:
            self._break()
        self._quoted -= quotation
        self._preformatted -= tag == "pre"

    def _add(self, text: str) -> None:
        if not self._preformatted:
            self._line.append(text)  # with its line ends, which are white space
            return
        first, *others = text.split("\n")
        self._line.append(first)
        for other in others:
            self._break()
            self._line.append(other)

    def _break(self) -> None:
        if not self._line:
            return
        line = " ".join("".join(self._line).split())
        self._line.clear()
        if line:
            self._lines.append("> " + line if self._quoted else line)


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        return True
    style = attributes.get("style")
    return style is not None and _INVISIBLE_STYLE.search("".join(style.lower().split())) is not None


def _is_quotation(attributes: dict[str, str | None]) -> bool:
    return not _QUOTES.isdisjoint((attributes.get("class") or "").split())
