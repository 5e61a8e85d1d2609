"""Reads fastText's format for supervised learning: ``__label__a __label__b text``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Final, Literal

from pydantic import Field

from models.data.files.input_file import InputFile
from models.data.files.lines import decode_utf8, numbered_lines
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.record import Declarations, Items, Record, RecordError, check_name, quoted
from models.errors import BadRecord

LABEL_PREFIX = "__label__"
_WORD = re.compile(r"[^ \t\v\f\r\0]+")
"""The characters between words that fastText knows, without the line end."""
_SIGNS: Final = r"[_*\\\u2013\u2014-]"
_MISSPELLED: Final = re.compile(
    rf"[\"']?(?:{_SIGNS}{{1,6}}labels?{_SIGNS}{{2,6}}|{_SIGNS}{{2,6}}labels?{_SIGNS}{{1,6}}|labels?__)[^_\s]",
    re.IGNORECASE,
)
"""A word that is nearly a label with the usual prefix."""
_MISSPELLED_AT_START: Final = re.compile(rf"{_SIGNS}++labels?{_SIGNS}++[^_\s]", re.IGNORECASE)
"""The same at the start of a line without labels, where it need not be as near."""
_ROW_NUMBER: Final = re.compile(r"[ \t]*+[\"']?[0-9]{1,12}[\"']?[ \t,;:|.]++(?=[\"']?__label__)")
_FRAMED: Final = re.compile(r"(?:[0-9]{1,12}[ \t,;:|.]++)?+__label__")
"""The beginning of a line inside of quotation marks."""
_SEPARATORS: Final = ",;:|"
_COLUMN: Final = re.compile(
    r"(?:labels?|tags?|categor(?:y|ies)|class(?:es)?|targets?|y|x|texts?|contents?|messages?|body|documents?"
    r"|comments?|sentences?|id|index|fasttext|[\s,;|\"']++)++",
    re.IGNORECASE,
)
"""A line of names of columns."""


class FastTextOptions(FormatOptionsBase):
    """How labels are marked in a fastText file."""

    format: Literal["fasttext"]
    label_prefix: Annotated[str, Field(pattern=r"^\S{1,100}$")] = LABEL_PREFIX
    """The beginning of a word that is a label."""


def read_fasttext(file: InputFile, options: FastTextOptions, limits: IngestLimits) -> Items:
    """Yield the records of a fastText file: one document for each line that is not empty.

    Every word that begins with the prefix is a label, wherever it is in the line, as in fastText. The rest of
    the line is the text. The prefix is not part of the label. A comma can separate two labels.

    fastText itself reads what is nearly right without a word: it makes ``a,`` a label, and ``__LABEL__a`` a
    word of the text. Here, a line is read as it is meant, with a warning, or else rejected.
    """
    reader = _LineReader(options.label_prefix)
    for item in numbered_lines(file.stream, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        if not line or line.isspace():
            continue
        try:
            parts = reader.read(decode_utf8(line), number)
            if parts is not None:
                labels, text = parts
                names = [check_name(name, "a label", "", limits.name_length) for name in labels]
                yield Record(line=number, labels=names, text=text)
        except RecordError as error:
            yield error.at_line(number)
    yield Declarations(warnings=reader.warnings())


class _LineReader:
    """Splits lines, and counts what a warning must state.

    Args:
        prefix: the beginning of a word that is a label.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._is_usual = prefix == LABEL_PREFIX
        self._is_first = True
        self._counts: Counter[str] = Counter()
        self._first: dict[str, int] = {}

    def read(self, line: str, number: int) -> tuple[list[str], str] | None:
        """Return the labels and the text of a line; None if it is a head line.

        Raises:
            RecordError: a word is nearly a label.
        """
        is_first, self._is_first = self._is_first, False
        if self._prefix not in line:
            if is_first and self._is_usual and _COLUMN.fullmatch(line):
                self._count("head lines with names of columns, which are no examples", number)
                return None
            self._check_text(line, has_label=False)
            return [], line.strip()
        if self._is_usual and not line.startswith(self._prefix):
            line = self._without_frame(line, number)
        labels, text = _split(line, self._prefix)
        names = [name.rstrip(_SEPARATORS) or name for name in labels]
        if names != labels:
            self._count("labels with a comma, semicolon, colon or bar after them, which was removed", number)
        for name in names:
            self._check_label(name)
        self._check_text(text, has_label=True)
        return names, text

    def warnings(self) -> list[str]:
        """Return the warnings about all lines."""
        return [f"{what}: {n:,}, first in line {self._first[what]}" for what, n in self._counts.items()]

    def _count(self, what: str, number: int) -> None:
        self._counts[what] += 1
        self._first.setdefault(what, number)

    def _without_frame(self, line: str, number: int) -> str:
        """Return a line without its row number, and without the quotation marks around it."""
        line = self._without_quotation_marks(line, number)
        row = _ROW_NUMBER.match(line)
        if row is None:
            return line
        self._count("lines with a row number, which was removed", number)
        return self._without_quotation_marks(line[row.end() :], number)

    def _without_quotation_marks(self, line: str, number: int) -> str:
        stripped = line.strip()
        mark = stripped[0]
        if mark not in "\"'" or stripped[-1] != mark or _FRAMED.match(stripped, 1) is None:
            return line
        self._count("lines in quotation marks, which were removed", number)
        return stripped[1:-1].replace(2 * mark, mark)

    def _check_label(self, name: str) -> None:
        for separator in ",;":
            if separator in name:
                raise RecordError(
                    f"the label {quoted(name)} contains {separator!r}; begin each label with {self._prefix}, "
                    "and put a space after it"
                )
        if self._prefix in name or name.startswith('"') != name.endswith('"'):
            raise RecordError(
                f"the label {quoted(name)} does not end where it should; put a space after each label, and "
                "none into a label"
            )

    def _check_text(self, text: str, *, has_label: bool) -> None:
        """Raise an error if a word of the text is nearly a label with the usual prefix."""
        if not self._is_usual or "label" not in text.lower():  # most texts
            return
        for place, word in enumerate(text.split()):
            is_first = not has_label and place == 0
            if (
                _MISSPELLED.match(word)
                or self._prefix in word
                or (is_first and _MISSPELLED_AT_START.match(word))
            ):
                raise RecordError(
                    f"the word {quoted(word)} is nearly a label, but a label begins with {self._prefix}; "
                    "correct the word, or set label_prefix"
                )


def _split(line: str, prefix: str) -> tuple[list[str], str]:
    r"""Return the labels and the text of a line.

    >>> _split("__label__a __label__b-c  two  words\t__label__d", "__label__")
    (['a', 'b-c', 'd'], 'two  words')
    """
    labels = []
    parts = []
    end = 0
    for word in _WORD.finditer(line):
        if word[0].startswith(prefix):
            # fastText itself does not split at commas, but a file with them is meant so.
            labels += word[0][len(prefix) :].split(f",{prefix}")
            parts.append(line[end : word.start()])
            end = word.end()
    parts.append(line[end:])
    return labels, " ".join(part.strip() for part in parts if part and not part.isspace())
