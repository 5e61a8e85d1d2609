"""Reads a file of a known format, also in a zip, in UTF-16, or with lines that end in CR alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO, cast

from models.data.advice import with_prefix
from models.data.files.containers import reject_foreign_content, reject_office_document
from models.data.files.input_file import InputFile, open_input_file
from models.data.files.lines import as_utf8
from models.data.files.zip_archive import is_zip, open_zip_archive
from models.data.files.zip_members import choose_members, warn_about_others
from models.data.limits import IngestLimits
from models.data.options import FormatOptionsBase
from models.data.readers.registry import FORMATS, Format
from models.data.record import Declarations, Items, Record
from models.errors import BadDataError, BadRecord


@contextmanager
def with_random_access(file: InputFile) -> Iterator[InputFile]:
    """Make a zip seekable, so that its directory can be read more than once. Other files stay as they are."""
    if not is_zip(file) or file.stream.seekable():
        yield file
        return
    with file.open_seekable() as copy:
        yield InputFile(cast("BinaryIO", io.BufferedReader(cast("Any", copy), 2**18)), file.temp_folder)


def read_file(file: InputFile, name: str, options: FormatOptionsBase, limits: IngestLimits) -> Items:
    """Yield the records of a file.

    In a zip, the only file with data is read, or all files that are named after their split. Their examples
    then have this split.

    Args:
        file: the file.
        name: the name of its format, a key of ``FORMATS``.
        options: options of the format.
        limits: limits on the content.

    Raises:
        BadDataError: the file cannot be used.
    """
    format_ = FORMATS[name]
    if is_zip(file) and format_.suffixes:
        yield from _read_members(file, name, format_, options, limits)
    else:
        yield from _read_plain(file, name, format_, options, limits)


def _read_plain(
    file: InputFile, name: str, format_: Format, options: FormatOptionsBase, limits: IngestLimits
) -> Items:
    start = file.peek_start()
    reject_foreign_content(start, name)
    if format_.is_text:
        file = replace(file, stream=as_utf8(file.stream))
        start = file.peek_start()
    if format_.is_text and _has_only_carriage_returns(start):
        stream = io.BufferedReader(_LineFeedStream(file.stream), 2**18)
        file = replace(file, stream=cast("BinaryIO", stream))
    yield from format_.read(file, options, limits)


def _read_members(
    file: InputFile, name: str, format_: Format, options: FormatOptionsBase, limits: IngestLimits
) -> Items:
    with open_zip_archive(file, limits) as archive:
        reject_office_document(archive.names)
        members = choose_members(archive, format_.suffixes, format_.companions)
        yield Declarations(warnings=warn_about_others(archive, members, format_.companions))
        companions = [
            partial(archive.open, index)
            for index, other in enumerate(archive.names)
            if format_.companions and other.lower().endswith(format_.companions)
        ]
        for member in members:
            file_name = archive.names[member.index] if len(members) > 1 else ""
            prefix = f"{file_name}: " if file_name else ""
            with archive.open(member.index) as stream:
                opened = open_input_file(stream, file.temp_folder, limits)
                if is_zip(opened):
                    raise BadDataError(f"{prefix}the file is a zip archive inside the zip; extract it")
                items = _read_plain(replace(opened, companions=companions), name, format_, options, limits)
                try:
                    for item in items:
                        if isinstance(item, Record):
                            item.split = item.split or member.split
                            item.file = file_name
                            yield item
                        elif isinstance(item, BadRecord):
                            yield replace(item, reason=with_prefix(prefix, item.reason))
                        else:
                            yield replace(
                                item, warnings=[with_prefix(prefix, warning) for warning in item.warnings]
                            )
                except BadDataError as error:
                    raise BadDataError(with_prefix(prefix, error.message), error.records) from error


def _has_only_carriage_returns(start: bytes) -> bool:
    """Return whether lines end in CR alone, as in files of Mac OS 9 and some exports of Excel for Mac."""
    return b"\r" in start[:-1] and b"\n" not in start and b"\0" not in start


class _LineFeedStream(io.RawIOBase):
    """Replaces every CR, and every CR and LF, by an LF."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._after_cr = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while data := self._stream.read(len(buffer)):
            skip = self._after_cr and data.startswith(b"\n")
            self._after_cr = data.endswith(b"\r")
            data = data[skip:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0
