"""Reads fastText's format for supervised learning: ``__label__a __label__b text``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from models.data.files.input_file import InputFile
from models.data.files.lines import decode_utf8, numbered_lines
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.record import Items, Record, RecordError, check_name
from models.errors import BadRecord

LABEL_PREFIX = "__label__"
_WORD = re.compile(r"[^ \t\v\f\r\0]+")
"""The characters between words that fastText knows, without the line end."""


class FastTextOptions(FormatOptionsBase):
    """How labels are marked in a fastText file."""

    format: Literal["fasttext"]
    label_prefix: Annotated[str, Field(pattern=r"^\S{1,100}$")] = LABEL_PREFIX
    """The beginning of a word that is a label."""


def read_fasttext(file: InputFile, options: FastTextOptions, limits: IngestLimits) -> Items:
    """Yield the records of a fastText file: one document for each line that is not empty.

    Every word that begins with the prefix is a label, wherever it is in the line, as in fastText. The rest of
    the line is the text. The prefix is not part of the label. A comma can separate two labels.
    """
    for item in numbered_lines(file.stream, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        if not line or line.isspace():
            continue
        try:
            labels, text = _split(decode_utf8(line), options.label_prefix)
            names = [check_name(name, "a label", "", limits.name_length) for name in labels]
            yield Record(line=number, labels=names, text=text)
        except RecordError as error:
            yield error.at_line(number)


def _split(line: str, prefix: str) -> tuple[list[str], str]:
    r"""Return the labels and the text of a line.

    >>> _split("__label__a __label__b-c  two  words\t__label__d", "__label__")
    (['a', 'b-c', 'd'], 'two  words')
    """
    if prefix not in line:
        return [], line.strip()
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
