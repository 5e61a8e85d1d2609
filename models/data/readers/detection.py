"""Detects the format of a file from its first bytes, and the format of a zip from its members."""

from __future__ import annotations

import re
from collections.abc import Sequence

from models.data.advice import Advice, Suggestion
from models.data.files.containers import reject_foreign_content, reject_office_document
from models.data.files.input_file import InputFile, open_input_file
from models.data.files.lines import BOM, find_wide_encoding
from models.data.files.zip_archive import ZipArchive, is_zip, open_zip_archive
from models.data.files.zip_members import choose_members, split_of_name, suffix_of
from models.data.limits import IngestLimits
from models.data.mail_stores.folders import is_mail_store
from models.data.readers.fasttext import LABEL_PREFIX
from models.data.readers.registry import FORMATS
from models.errors import BadDataError

_ARFF = re.compile(
    rb"(?:[^\S\n]*+(?:%[^\n]*+)?\n)*+[^\S\n]*+@(?:relation|attribute)\b",  # possessive, thus linear
    re.IGNORECASE,
)
_SVMLIGHT = re.compile(
    rb"[^\s:]*(?:,[ \t]+[^\s:]+)*(?:[ \t]+qid:\d+)?(?:[ \t]+\d+:[-+.\deE]+)+[ \t]*(?:#.*)?"
)
_EXTREME_CLASSIFICATION_HEAD = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")
_FASTTEXT = re.compile(
    rb"^(?:[0-9]{1,12}[ \t]{1,9})?[\"']?" + LABEL_PREFIX.encode() + rb"[^\s,;|\"]+[,;:]?(?:[ \t]|\r?$)",
    re.MULTILINE,
)
_START_BYTES = 2**16
_CSV_DELIMITERS = (b",", b";", b"\t", b"|")


def detect_format(file: InputFile, limits: IngestLimits) -> str:
    """Return the format of a file. Does not consume any bytes.

    Args:
        file: the file; seekable if it is a zip.
        limits: limits on the members of a zip.

    Raises:
        BadDataError: the content matches no format, or is of a kind that no format can read.
    """
    if not is_zip(file):
        return _detect(file)
    try:
        with open_zip_archive(file, limits) as archive:
            return _detect_in_zip(archive, file, limits)
    finally:
        file.stream.seek(0)


def other_format_of(start: bytes, name: str) -> str | None:
    """Return the format of a file that could not be read in the format that the user states.

    Args:
        start: the first bytes of the file.
        name: the stated format.

    Returns:
        None if the content does not look like another format.
    """
    if b"\0" in start:  # not a text; formats of other files are recognized before they are read
        return None
    try:
        other = _detect_text(start.removeprefix(BOM))
    except BadDataError:
        return None
    # Almost every text contains a comma.
    is_doubtful = other == "csv" and name not in {"jsonl", "parquet", "eml_zip"}
    return None if other == name or is_doubtful else other


def _detect_in_zip(archive: ZipArchive, file: InputFile, limits: IngestLimits) -> str:
    reject_office_document(archive.names)
    if _are_parts_of_a_mailbox(archive.names):
        return "mbox"
    suffixes = {suffix_of(name) for name in archive.names}
    formats = [name for name, format_ in FORMATS.items() if not suffixes.isdisjoint(format_.suffixes)]
    if not is_mail_store(archive.names):
        if len(formats) > 1:
            raise BadDataError(
                f"the file is a zip archive with files of several formats: {', '.join(formats)}; set format"
            )
        return formats[0] if formats else _detect_member(archive, file, limits)
    return "arff" if "arff" in formats else "eml_zip"


def _are_parts_of_a_mailbox(names: Sequence[str]) -> bool:
    """Return whether a zip contains mailboxes that are all named after their split, not after their label."""
    splits = [split_of_name(name) for name in names if suffix_of(name) in FORMATS["mbox"].suffixes]
    return None not in splits and len(set(splits)) > 1


def _detect_member(archive: ZipArchive, file: InputFile, limits: IngestLimits) -> str:
    member = choose_members(archive, ())[0]
    with archive.open(member.index) as stream:
        return _detect(open_input_file(stream, file.temp_folder, limits))


def _detect(file: InputFile) -> str:
    start = file.peek_start()
    reject_foreign_content(start, None)
    if start.startswith(b"PAR1"):
        return "parquet"
    if encoding := find_wide_encoding(start):
        start = start.decode(encoding, "ignore").removeprefix("\ufeff").encode()
    return _detect_text(start.removeprefix(BOM))


def _detect_text(start: bytes) -> str:
    if start.startswith(b"From "):
        return "mbox"
    if b"\n" not in start:
        start = start.replace(b"\r", b"\n")
    if _ARFF.match(start):
        return "arff"
    if len(start) < _START_BYTES and not start.strip():
        raise BadDataError("the file is empty; a data set needs at least one example")
    lines = [line for line in start.splitlines() if line.strip() and not line.startswith(b"#")]
    first = lines[0] if lines else b""
    if first.lstrip().startswith((b"{", b"[")):
        return "jsonl"
    if _is_svmlight(lines):
        return "svmlight"
    if _FASTTEXT.search(start):
        return "fasttext"
    if any(delimiter in first for delimiter in _CSV_DELIMITERS):
        return "csv"
    message = f"the format cannot be detected from the content; set format to one of {', '.join(FORMATS)}"
    raise BadDataError(Advice(message, Suggestion("options/format", choices=list(FORMATS))))


def _is_svmlight(lines: Sequence[bytes]) -> bool:
    if len(lines) > 1 and _EXTREME_CLASSIFICATION_HEAD.fullmatch(lines[0]):
        lines = lines[1:]
    return bool(lines) and _SVMLIGHT.fullmatch(lines[0]) is not None
