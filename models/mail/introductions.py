"""Recognizes the lines with which mail programs introduce quoted text, in many languages.

Only a few lines of a text can be an introduction, and each is compared with the words in
:mod:`models.mail.quote_words` in bounded time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from models.mail.limits import MAX_QUOTE_LINE_CHARS
from models.mail.quote_words import LANGUAGES, FieldKind, spellings


class Introduction(NamedTuple):
    """An introduction of quoted text.

    Attributes:
        length: number of its lines.
        certain: whether it is one even if no quotation marks follow.
    """

    length: int
    certain: bool


_BLOCK_LINES: Final = 14
"""Lines that are searched for the fields of a header block."""
_OTHER_LINES: Final = 2
"""Lines in a row of a header block that continue a field."""
_ATTRIBUTION_LINES: Final = 3
_NAME_CHARS: Final = 30
"""Characters of a field name with the colon."""
_EARLY_CHARS: Final = 10
"""Characters at the beginning of an attribution in which its date begins."""

_COLONS = (":", "\uff1a")
_IGNORED = " \t*\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters around the words: spaces, and marks of bold text and of the direction of writing."""
_LAST_CHARACTERS = frozenset(_IGNORED).union(_COLONS)
_AFTER_LAST_WORD = "\n" + _IGNORED + "".join(_COLONS)
_DIRECTIONS = str.maketrans("", "", _IGNORED[3:])
_OTHER_MARKS = "|:"
"""Quotation marks that are not removed, because they have other uses."""
_DECORATION = "-_=*~ "
_RULES = "-_="
_RULE_STARTS = frozenset({"--", "__", "=="})
_RULE = re.compile(r"\n[^\S\n]*+(?:--|__|==)")


def _field_kinds() -> dict[str, FieldKind]:
    kinds: dict[str, FieldKind] = {}
    for words in LANGUAGES.values():
        fields: tuple[tuple[str, FieldKind], ...] = (
            (words.sender, "from"), (words.sent, "sent"), (words.date, "date"), (words.to, "to"),
            (words.cc, "cc"), (words.subject, "subject"),
        )  # fmt: skip
        for names, kind in fields:
            kinds.update(dict.fromkeys(map(str.casefold, spellings(names)), kind))
    return kinds


_FIELDS: Final = _field_kinds()
_TITLES: Final = tuple(title.casefold() for words in LANGUAGES.values() for title in spellings(words.titles))
_TITLE_SET: Final = frozenset(_TITLES)


def _words(attribute: str) -> tuple[str, ...]:
    """Return the spellings of a word in all languages, the longest first."""
    found = {
        spelling.casefold()
        for words in LANGUAGES.values()
        for spelling in spellings(getattr(words, attribute))
    }
    return tuple(sorted(found, key=lambda word: (-len(word), word)))


def _alternatives(attribute: str) -> str:
    """Return a pattern of the spellings of a word in all languages."""
    return "|".join(map(re.escape, _words(attribute)))


_NOT_AFTER_LETTER = r"(?<![^\W\d_])"
_OPENING = re.compile(rf"(?:{_alternatives('openings')})(?![^\W\d_])")
_VERBS = frozenset(_words("verbs"))
_VERB_WORDS: Final = max(verb.count(" ") + 1 for verb in _VERBS)
_VERBS_WITHOUT_SPACE = tuple(verb for code in ("ja", "zh", "ko") for verb in spellings(LANGUAGES[code].verbs))
"""Verbs that follow other characters without a space."""
_LAST_WORDS = (*_words("verbs"), ">", ")", "]", *"0123456789")
"""How an attribution without an inner verb ends."""
_INNER_VERBS = _words("inner_verbs")
_ASCII_INNER_VERBS = tuple(filter(str.isascii, _INNER_VERBS))
_INNER_VERB = re.compile(rf"{_NOT_AFTER_LETTER}(?:{_alternatives('inner_verbs')})(?!\w)")
_VERB_AFTER_ADDRESS = re.compile(rf"@[^\s<>()\[\]]++[>)\]][ ,]*+(?:{_alternatives('verbs')})(?!\w)")
_ADDRESS = re.compile(r"[^\s@]@[^\W_]")
_ADDRESS_AT_END = re.compile(r"[<(\[][^\s<>@]++@[^\s<>@]++[>)\]]\Z")
_TIME = re.compile(r"\d[:.]\d\d(?!\d)")
_DATE = re.compile(
    r"(?<![a-z0-9])(?:(?:19|20|25)[0-9]{2}|[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]{4})(?!\d)"
    r"|\d[./-] ?\d{1,2}[./-] ?\d\d"
)
"""A year (of the Gregorian or the Thai calendar), or a date in digits."""
_OTHER_FIELD = re.compile(r"[A-Z][\w-]{1,30}: ")
_DIGIT = re.compile(r"\d")


def possible_introductions(text: str, lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines that can be the first one of an introduction, in their order.

    Such a line is a horizontal rule or a field of a header block, or it or one of the next two lines ends
    with a colon.
    """
    numbers: set[int] = set()
    for colon in _COLONS:
        if colon not in text:
            continue
        for number in [number for number, line in enumerate(lines) if colon in line]:
            line = lines[number]
            if line[-1] in _LAST_CHARACTERS and line.rstrip(_IGNORED).endswith(colon):
                first = max(0, number - _ATTRIBUTION_LINES + 1)
                is_attribution = _may_attribute("\n".join(lines[first : number + 1]))
                numbers.update(range(first if is_attribution else number, number + 1))
            elif _field_kind(line) is not None:
                numbers.add(number)
    if "--" not in text and "__" not in text and "==" not in text:  # most texts
        return sorted(numbers)
    text = "\n" + text
    number = position = 0
    for rule in _RULE.finditer(text):
        number += text.count("\n", position, rule.start())
        position = rule.start()
        numbers.add(number)
    return sorted(numbers)


def find_introduction(lines: Sequence[str], number: int) -> Introduction | None:
    """Return the introduction that begins at a line; None if there is none.

    Args:
        lines: all lines of the text.
        number: number of the line.

    >>> find_introduction(["On 3 June 2024, Ann", "<ann@example.org> wrote:", "Hi"], 0)
    Introduction(length=2, certain=True)
    """
    line = lines[number].strip(_IGNORED)
    if not line or line[0] in _OTHER_MARKS:
        return None
    if _is_title(line):
        return Introduction(1, certain=True)
    if line[0] in _RULES:
        length = _rule_length(line, lines, number)
        block = Introduction(length, certain=True) if length else None
    else:
        block = _find_block(lines, number)
    return block or _find_attribution(lines, number)


def _is_title(line: str) -> bool:
    """Return whether a line is a title: "--- Original Message ---" or "Begin forwarded message:"."""
    if line[0] not in _RULES:
        return line.endswith(_COLONS) and _title(line) in _TITLE_SET
    if line[-1] in _RULES and _title(line).startswith(_TITLES):
        return True
    return line[:2] in _RULE_STARTS and _title(line) in _TITLE_SET


def _title(line: str) -> str:
    return line.strip(_DECORATION).rstrip(":\uff1a ").casefold()


def _rule_length(line: str, lines: Sequence[str], number: int) -> int:
    """Return the lines of a horizontal rule and the header block under it; 0 if it is a rule alone."""
    if line.strip(_DECORATION):
        return 0
    for following in range(number + 1, min(number + 3, len(lines))):
        if lines[following].strip():
            block = _find_block(lines, following)
            return following - number + block.length if block else 0
    return 0


def _field_kind(line: str) -> FieldKind | None:
    """Return the kind of the field of a header block that a line begins with."""
    end = line.find(":", 0, _NAME_CHARS)
    if end < 0:
        end = line.find("\uff1a", 0, _NAME_CHARS)
    return _FIELDS.get(line[:end].strip(_IGNORED).casefold()) if end > 0 else None


def _find_block(lines: Sequence[str], number: int) -> Introduction | None:
    """Return the header block that begins at a line; None if there is none."""
    first = _field_kind(lines[number])
    if first is None:
        return None
    kinds: dict[FieldKind, int] = {first: number}
    others = blank = 0
    for following in range(number + 1, min(number + _BLOCK_LINES, len(lines))):
        line = lines[following]
        kind = _field_kind(line) if ":" in line or "\uff1a" in line else None
        if kind is not None and kind not in kinds:
            kinds[kind] = following
            others = blank = 0
        elif line.strip() and (blank or kind is not None or others == _OTHER_LINES):
            break
        elif line.strip():
            others += _OTHER_FIELD.match(line) is None
        elif blank:
            break
        else:
            blank += 1
    length = max(kinds.values()) - number + 1
    if "from" not in kinds or kinds.keys() <= {"from", "cc", "subject"}:
        return None
    return Introduction(length, certain=_is_of_message(kinds, lines))


def _is_of_message(kinds: dict[FieldKind, int], lines: Sequence[str]) -> bool:
    """Return whether fields are certainly those of a message, rather than of a form ("From: Berlin").

    Args:
        kinds: the number of the line of each field.
        lines: all lines of the text.
    """
    start = kinds["from"]
    after = min((line for line in kinds.values() if line > start), default=start + 1)
    if any(_ADDRESS.search(line[:MAX_QUOTE_LINE_CHARS]) for line in lines[start:after]):
        return True
    day = kinds.get("sent", kinds.get("date"))
    moment = "" if day is None else lines[day][:MAX_QUOTE_LINE_CHARS]
    is_complete = _TIME.search(moment) is not None and _DATE.search(moment) is not None
    if "sent" in kinds:
        return is_complete or "subject" in kinds
    return is_complete and {"to", "subject"} <= kinds.keys()


def _find_attribution(lines: Sequence[str], number: int) -> Introduction | None:
    """Return the attribution ("On … Ann wrote:") that begins at a line; None if there is none."""
    texts: list[str] = []
    for line in lines[number : number + _ATTRIBUTION_LINES]:
        text = (line if line.isascii() else line.translate(_DIRECTIONS)).strip(_IGNORED)
        if not text or text[0] == ">" or len(text) > MAX_QUOTE_LINE_CHARS:
            return None
        texts.append(text)
        if text.endswith(_COLONS):
            break
    else:
        return None
    whole = _without_colon(texts)
    if _opens_attribution(whole):
        # Of several possible beginnings, the last is right: the lines before it are new text.
        return None if _any_end(_opens_attribution, texts) else Introduction(len(texts), certain=True)
    if len(texts) == 1:
        if _is_attribution(whole):
            return Introduction(1, certain=True)
        return Introduction(1, certain=False) if _has_verb(whole) else None
    begins = _DIGIT.search(texts[0][:_EARLY_CHARS]) or _ADDRESS.search(texts[0])
    if begins and _is_attribution(whole) and not _any_end(_is_attribution, texts):
        return Introduction(len(texts), certain=True)
    return None


def _without_colon(texts: list[str]) -> str:
    return " ".join(texts)[:-1].rstrip().casefold()


def _any_end(condition: Callable[[str], bool], texts: list[str]) -> bool:
    """Return whether a condition is true for the texts without the first one, or the first two, and so on."""
    return any(condition(_without_colon(texts[start:])) for start in range(1, len(texts)))


def _may_attribute(text: str) -> bool:
    """Return false for most texts that end with a colon and do not attribute anything."""
    inner_verbs = _ASCII_INNER_VERBS
    if not text.isascii():
        text = text.translate(_DIRECTIONS)
        inner_verbs = _INNER_VERBS
    text = text.casefold().rstrip(_AFTER_LAST_WORD)
    return text.endswith(_LAST_WORDS) or any(verb in text for verb in inner_verbs)


def _has_verb(text: str) -> bool:
    last = text.rsplit(" ", _VERB_WORDS)[-_VERB_WORDS:]
    if last[-1] in _VERBS or text.endswith(_VERBS_WITHOUT_SPACE):
        return True
    if any(" ".join(last[start:]) in _VERBS for start in range(len(last) - 1)):
        return True
    return any(verb in text for verb in _INNER_VERBS) and _INNER_VERB.search(text) is not None


def _has_day(text: str) -> bool:
    """Return whether a text contains a date or a time, outside of addresses and Message-IDs."""
    rest = " ".join([word for word in text.split() if "@" not in word]) if "@" in text else text
    return bool(_TIME.search(rest) or _DATE.search(rest))


def _opens_attribution(text: str) -> bool:
    """Return whether a text in lower case without its colon begins and ends as an attribution."""
    return _OPENING.match(text) is not None and _has_day(text) and _has_verb(text)


def _is_attribution(text: str) -> bool:
    """Return whether a text certainly attributes what follows to an author, however it begins.

    Args:
        text: the text in lower case, without its colon.
    """
    if not _has_day(text):
        return False
    is_complete = _TIME.search(text) and _DATE.search(text)
    if _ADDRESS.search(text):
        return bool(
            (is_complete and (_ADDRESS_AT_END.search(text) or _VERB_AFTER_ADDRESS.search(text)))
            or _has_verb(text)
        )
    return bool(is_complete and _DIGIT.search(text[:_EARLY_CHARS]) and _has_verb(text))
