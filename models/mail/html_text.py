"""Converts HTML to text by its block structure.

Only block elements break lines, so that inline tags never split a word. Scripts, styles, hidden elements and
comments are removed. Each line of a quotation begins with ``>``, as in plain text.
"""

from __future__ import annotations

import re
from typing import Final

from models.extras import require
from models.mail.diagnostics import Diagnostics
from models.mail.html_style import VISIBLE, Style, Visibility, parse_style
from models.mail.limits import MAX_HTML_CHARS, MAX_HTML_DEPTH, MAX_HTML_TAGS

try:
    from selectolax.lexbor import LexborHTMLParser, LexborNode
except ModuleNotFoundError:
    LexborHTMLParser = None  # type: ignore[assignment,misc]

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
_RAW_TEXT_ENDS: Final = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.ASCII | re.IGNORECASE) for name in ("style", "script")
}
"""Ends of the elements whose content is neither text nor markup, so that ``<!--`` begins no comment in it."""
_COMMENT_END: Final = re.compile("--!?>")
_SPACE: Final = r"[ \t\n\f\r]"
_TAG: Final = re.compile(
    rf'<(?:(/?)([a-zA-Z][^\s/>]*+)((?:{_SPACE}++[a-zA-Z:-]++="[^"]*+")*+{_SPACE}*+/?>)?|!--)'
)
"""The start of a comment; or a tag, with its attributes and its end if all attributes are quoted, as in most
tags."""
_QUOTED_ATTRIBUTE: Final = re.compile(r'([a-zA-Z:-]++)(="[^"]*+")')
_VALUE: Final = rf"""={_SPACE}*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^ \t\n\f\r>]*)"""
_ATTRIBUTE: Final = re.compile(rf"[ \t\n\f\r/]*(=?[^ \t\n\f\r/>=]*)(?:{_SPACE}*({_VALUE}))?")
_READ_ATTRIBUTES: Final = frozenset({"hidden", "style", "class"})
_READ_FONT_ATTRIBUTES: Final = _READ_ATTRIBUTES | {"size"}
_STANDARDS_MODE: Final = re.compile(r"\s*<!doctype\s+html(?:\s*>|[^>]*http)", re.IGNORECASE)
"""A doctype with which a browser does not imitate the errors of old browsers."""


def html_to_text(html: str, diagnostics: Diagnostics) -> str:
    r"""Return the visible text of an HTML body, with one line for each block.

    Args:
        html: the markup, valid or not.
        diagnostics: receives a truncation if the markup exceeds a limit.

    >>> html_to_text("<p>Your <b>in</b>voice</p><p hidden>x</p><blockquote>old</blockquote>", Diagnostics())
    'Your invoice\n> old'
    """
    require(LexborHTMLParser, "selectolax", "reading HTML")
    tree = diagnostics.guard("HTML", lambda: LexborHTMLParser(_simplify(html, diagnostics)).root, None)
    return "" if tree is None else _Lines(tables_reset_size=not _STANDARDS_MODE.match(html)).read(tree)


def _simplify(html: str, diagnostics: Diagnostics) -> str:
    """Return markup with the same text that an HTML5 parser handles in linear time.

    At every tag, such a parser searches all open elements, and it can copy formatting elements (``<b>``) into
    new blocks. At every attribute, it searches the attributes before it. Malicious input makes this quadratic
    in time and memory. This function replaces all inline elements by ``<span>``, which the parser never
    copies, keeps only the attributes that this module reads, and stops if too many elements are open.
    """
    pieces: list[str] = []
    open_elements: dict[str, int] = {}
    limit = MAX_HTML_CHARS
    depth = end = tags = 0
    attributes_read: dict[tuple[str, bool], list[str]] = {}  # most attributes occur many times
    while (tag := _TAG.search(html, end)) and (start := tag.start()) < limit:
        slash, name, rest = tag.groups()
        if name is None:
            pieces.append(html[end:start])
            end = _comment_end(html, tag.end())
            limit += end - start
            continue
        name = name.lower()
        is_font = name == "font"
        if name not in _KNOWN:
            name = "span"
        elif name in _RAW_TEXT_ENDS and not slash:
            pieces.append(html[end:start])
            close = _RAW_TEXT_ENDS[name].search(html, tag.end())
            end = _read_attributes(html, close.end(), _READ_ATTRIBUTES)[1] if close else len(html)
            limit += end - start
            continue
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
            return "".join([*pieces, html[end:start]])
        pieces += (html[end:start], "<", slash, name)
        tags += 1
        end = tag.end()
        if rest == ">":
            pieces.append(rest)
        elif rest is not None:
            known = attributes_read.get((rest, is_font))
            if known is None:
                known = _read_quoted_attributes(rest, _READ_FONT_ATTRIBUTES if is_font else _READ_ATTRIBUTES)
                attributes_read[rest, is_font] = known
            pieces += known
        else:
            attributes, end = _read_attributes(
                html, end, _READ_FONT_ATTRIBUTES if is_font else _READ_ATTRIBUTES
            )
            pieces += attributes
    if len(html) > limit:
        diagnostics.add_truncation(
            f"the HTML is longer than {MAX_HTML_CHARS:,} characters; the rest was not read"
        )
    return "".join([*pieces, html[end:limit]])


def _comment_end(html: str, start: int) -> int:
    """Return the end of the comment whose content begins at ``start``, as in the HTML standard.

    ``<!-->`` and ``<!--->`` are empty comments.
    """
    if html.startswith((">", "->"), start):
        return html.index(">", start) + 1
    end = _COMMENT_END.search(html, start)
    return end.end() if end else len(html)


def _read_quoted_attributes(rest: str, names: frozenset[str]) -> list[str]:
    """Return the end of a tag with the attributes that this module reads, if all attributes are quoted."""
    kept: dict[str, str] = {}
    for name, value in _QUOTED_ATTRIBUTE.findall(rest):
        lower = name.lower()
        if lower in names:
            kept.setdefault(lower, f" {lower}{value}")
    return [*kept.values(), "/>" if rest.endswith("/>") else ">"]


def _read_attributes(html: str, position: int, names: frozenset[str]) -> tuple[list[str], int]:
    """Return the end of a tag with the attributes that this module reads, and the position after the tag."""
    kept: dict[str, str] = {}
    while position < len(html) and html[position] != ">":
        attribute = _ATTRIBUTE.match(html, position)
        if attribute is None or attribute.end() == position:  # cannot happen, but must not loop for ever
            break
        position = attribute.end()
        name = attribute[1].lower()
        if name in names:
            kept.setdefault(name, f" {name}{attribute[2] or ''}")
    if position >= len(html):
        return [*kept.values()], len(html)  # the parser drops a tag without an end
    end = "/>" if html[position - 1] == "/" else ">"
    return [*kept.values(), end], position + 1


class _Lines:
    """Collects text nodes into lines. Walks the tree without recursion.

    Args:
        tables_reset_size: whether a table does not inherit the font size, as in mail without a doctype.
    """

    def __init__(self, tables_reset_size: bool) -> None:
        self._tables_reset_size = tables_reset_size
        self._lines: list[str] = []
        self._line: list[str] = []
        self._quoted = 0
        self._preformatted = 0
        self._visibility = VISIBLE
        self._styles: dict[str, Style] = {}

    def read(self, root: LexborNode) -> str:
        """Return the lines of a tree, joined by newlines."""
        stack: list[tuple[LexborNode, tuple[bool, Visibility] | None]] = [(root, None)]
        add_to_line = self._line.append
        while stack:
            node, outside = stack.pop()  # None: enter the node; otherwise leave it
            tag = node.tag or ""
            if outside is not None:
                quotation, self._visibility = outside
                self._leave(tag, quotation)
            elif tag == "-text":
                text = node.text_content or ""
                if self._visibility is VISIBLE and not self._preformatted:  # most text
                    add_to_line(text)
                else:
                    self._add(text)
            elif tag == "br":
                self._break()
            elif tag not in _DROPPED:
                attributes = node.attributes
                before = self._visibility
                if tag == "table" and self._tables_reset_size:
                    self._visibility = before.with_size()
                if attributes:
                    visibility = self._read_visibility(attributes)
                    if visibility is None:
                        self._visibility = before
                        continue
                    self._visibility = visibility
                quotation = tag == "blockquote" or bool(attributes and _is_quotation(attributes))
                self._enter(tag, quotation)
                stack.append((node, (quotation, before)))
                child = node.last_child
                while child is not None:
                    stack.append((child, None))
                    child = child.prev
        self._break()
        return "\n".join(self._lines)

    def _read_visibility(self, attributes: dict[str, str | None]) -> Visibility | None:
        """Return the visibility of the text in an element; None if the element and all in it are hidden."""
        text = attributes.get("style") or ""
        if not text and "hidden" not in attributes and "size" not in attributes:
            return self._visibility
        style = self._styles.get(text)
        if style is None:
            style = self._styles[text] = parse_style(text)
        if style.removed or ("hidden" in attributes and not style.displayed):
            return None
        visibility = self._visibility.with_size() if "size" in attributes else self._visibility
        return style.apply(visibility)

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
        if not self._visibility.is_visible:
            if text.isspace():
                self._line.append(" ")  # white space separates visible words even if it has no width
            return
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


def _is_quotation(attributes: dict[str, str | None]) -> bool:
    return not _QUOTES.isdisjoint((attributes.get("class") or "").split())
