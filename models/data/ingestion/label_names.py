"""Finds labels that are probably mistakes by their names: spellings, separators and missing values."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from models.data.advice import Advice, Suggestion
from models.data.record import join_first
from models.unicode import normalize

_NUMBER: Final = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?")
_SPACE: Final = re.compile(r"[\s_-]+")

_MISSING: Final = frozenset(
    {
        "#n/a",
        "(blank)",
        "(empty)",
        "-",
        "--",
        "<na>",
        "<none>",
        "<null>",
        "?",
        "[]",
        "empty",
        "missing",
        "n/a",
        "na",
        "nan",
        "nat",
        "nil",
        "no label",
        "none",
        "null",
        "undefined",
        "{}",
    }
)

_SEPARATORS: Final = ("|", ";", "\t", "#", "/", ",", "+", "&", ":", "\n", " ")
_STRONG_SEPARATORS: Final = frozenset("|;\t#\n")
_UNIQUE_TO_LISTS: Final = frozenset("|;\t\n")
_MIN_WITH_SPACE: Final = 3


def spelling_key(label: str) -> str:
    r"""Return a text that is equal for all spellings of a label.

    Spellings differ in case, white space, hyphens and underscores between words, invisible characters, HTML
    entities, Unicode forms, brackets, quotes and punctuation around the label, or the form of a whole number.

    >>> spelling_key("Help\u200b Desk") == spelling_key("help-desk"), spelling_key("C") == spelling_key("C#")
    (True, False)
    >>> {spelling_key(label) for label in ("1", "1.0", "+1")}, spelling_key("R&amp;D")
    ({'1'}, 'r&d')
    """
    name = label.strip()
    if not name.isascii() or "&" in name:
        name = normalize(html.unescape(name)).casefold()
        # The Turkish İ and ı are an i with another dot. Format characters and variation selectors are
        # invisible.
        name = name.replace("i\u0307", "i").replace("ı", "i")
        name = "".join(c for c in name if not (unicodedata.category(c) == "Cf" or "\ufe00" <= c <= "\ufe0f"))
    name = name.casefold()
    number = _NUMBER.fullmatch(name)
    if number:
        return number[1].removeprefix("+") + number[2]
    inner = name.lstrip(" \"'`([{<").rstrip(" \"'`)]}>.,;:")
    return _SPACE.sub(_without_space, inner) or name or label


def _without_space(space: re.Match[str]) -> str:
    before, after = space.string[: space.start()][-1:], space.string[space.end() :][:1]
    if before.isdigit() and after.isdigit():
        return " "  # 1-2 is not 12
    return "" if before.isalnum() and after.isalnum() else "".join(space[0].split())


def group_spellings(labels: Iterable[str]) -> list[list[str]]:
    """Return the labels with several spellings, each as a list of spellings in the order of ``labels``."""
    groups: dict[str, list[str]] = defaultdict(list)
    for label in labels:
        groups[spelling_key(label)].append(label)
    return [group for group in groups.values() if len(group) > 1]


def label_name_warnings(labels: Sequence[str], parents: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each kind of mistake that the names of labels show.

    Args:
        labels: all labels, in label order.
        parents: the label tree as child to parent.
    """
    groups = group_spellings(labels)
    if groups:
        yield Advice(
            "labels that differ only in spelling, such as case or spaces: "
            f"{join_first(groups, separator='; ', form=lambda group: ' and '.join(map(repr, group)))}; "
            "to merge them, set merge_labels to similar",
            Suggestion("merge_labels", "similar"),
        )
    missing = [label for label in labels if label.strip().casefold() in _MISSING]
    if missing:
        yield Advice(
            f"labels that look like missing values: {join_first(missing)}; "
            "to remove them, list them in remove_labels",
            Suggestion("remove_labels", missing),
        )
    yield from _separator_warnings([label for label in labels if label not in parents], set(labels))
    openings = [label for label in labels if _has_half_a_pair(label, 0)]
    closings = [label for label in labels if _has_half_a_pair(label, 1)]
    if openings and closings:
        yield (
            "labels with only one of a pair of brackets or quotes: "
            f"{join_first(sorted({*openings, *closings}))}; "
            "if the separator is a part of a label, write the label in quotes"
        )


def _separator_warnings(names: Sequence[str], labels: Collection[str]) -> Iterator[str]:
    """Yield a warning for each separator that probably separates labels, but was read as a part of one."""
    for separator in _SEPARATORS:
        cut = {name: parts for name in names if (parts := _parts(name, separator))}
        suspects = [name for name, parts in cut.items() if _are_labels(parts, labels, separator)]
        if separator == " " and (len(suspects) < _MIN_WITH_SPACE or 2 * len(suspects) < len(cut)):
            continue
        if not suspects and separator in _UNIQUE_TO_LISTS:
            counts = Counter(part for parts in cut.values() for part in parts)
            if len(counts) < len(cut):  # few labels in many combinations
                suspects = list(cut)
        if suspects:
            yield Advice(
                f"labels that contain {separator!r} between names of other labels: "
                f"{join_first(suspects)}; "
                f"if {separator!r} separates labels, set label_separator to {separator!r}",
                Suggestion("options/label_separator", separator),
            )


def _parts(name: str, separator: str) -> list[str]:
    """Return the parts between separators; none if there is only one part, or an empty one."""
    if separator not in name:
        return []
    parts = [part.strip() for part in name.split(separator)]
    return parts if len(parts) > 1 and all(parts) else []


def _are_labels(parts: Sequence[str], labels: Collection[str], separator: str) -> bool:
    found = [part in labels for part in parts]
    return any(found) if separator in _STRONG_SEPARATORS else all(found)


def _has_half_a_pair(label: str, side: int) -> bool:
    """Return whether a label has more opening (0) or closing (1) brackets, or a quote on that side only."""
    for pair in ("()", "[]", "{}"):
        if label.count(pair[side]) > label.count(pair[1 - side]):
            return True
    return label.count('"') == 1 and label[-side] == '"'
