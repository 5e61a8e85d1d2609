"""Recognizes files that no reader can use, such as spreadsheets and archives, by their bytes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from models.data.advice import Advice, Suggestion
from models.data.files.lines import BOM
from models.errors import BadDataError

_TAR_MAGIC = slice(257, 262)
_ZLIB_HEADERS = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_HTML = re.compile(rb"\s*(?:<!--[^>]{0,1000}-->\s*)?<(?:!doctype html|html)\b", re.IGNORECASE)
_FRAME = "write it to Parquet, CSV or JSON Lines"
_UNPACK = "extract it, and upload the file with the data, or a zip of it"

_TABLE = "export the data as CSV or JSON Lines"

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF document", _TABLE),
    (b"\x89PNG\r\n", "a PNG image", _TABLE),
    (b"\xff\xd8\xff", "a JPEG image", _TABLE),
    (b"GIF8", "a GIF image", _TABLE),
    (b"II*\x00", "a TIFF image", _TABLE),
    (b"MM\x00*", "a TIFF image", _TABLE),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Excel, Word or Outlook file (.xls, .doc, .msg)",
        "save a table as CSV, and upload messages in a zip",
    ),
    (b"PK\x05\x06", "an empty zip archive", "add the file with the data"),
    (b"PK\x07\x08", "one part of a zip archive in several parts", "create a single zip"),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"\xfd7zXZ\x00", "a file that is compressed with xz", "compress it with gzip or zstd"),
    (b"ARROW1", "an Arrow (Feather) file", "write it to Parquet"),
    (b"Obj\x01", "an Avro file", _FRAME),
    (b"SQLite format 3\x00", "an SQLite database", "export the table as CSV"),
    (b"\x89HDF\r\n", "an HDF5 file", _FRAME),
    (b"\x93NUMPY", "a NumPy array", _FRAME),
    (b"!BDN", "an Outlook data file (.pst)", "convert it to mailboxes, for example with readpst"),
    (b"{\\rtf", "an RTF document", _TABLE),
    (
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS, not the file itself",
        "run git lfs pull, and upload the file",
    ),
)
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95|[c(}\]])", re.DOTALL)
_OFFICE: tuple[tuple[str, str], ...] = (
    ("xl/", "an Excel workbook (.xlsx)"),
    ("word/", "a Word document (.docx)"),
    ("ppt/", "a PowerPoint presentation (.pptx)"),
)
_OFFICE_PARTS = "[Content_Types].xml"
_SAVE_AS_CSV = "open it, and save the sheet with the data as CSV in UTF-8"
_ZIP = b"PK\x03\x04"
_ZIP_NAME = 30  # the position of the name of the first member


@dataclass(frozen=True)
class ForeignFile:
    """A kind of file that is no data set and no message, as its first bytes show.

    Attributes:
        magic: its first bytes.
        what: what it is.
        hint: what to do to get a data set from it.
        names: for a zip, how the name of its first member can begin; none for other files.
        part: for a zip, how the name of another member begins.
    """

    magic: bytes
    what: str
    hint: str
    names: tuple[str, ...] = ()
    part: str = ""

    def matches(self, start: bytes) -> bool:
        """Return whether a file that begins with these bytes is of this kind."""
        if not start.startswith(self.magic):
            return False
        names = tuple(name.encode() for name in self.names)
        return not names or (start.startswith(names, _ZIP_NAME) and self.part.encode() in start)


FOREIGN_FILES: tuple[ForeignFile, ...] = (
    *(ForeignFile(*row) for row in _MAGIC),
    *(
        ForeignFile(_ZIP, what, _SAVE_AS_CSV, (_OFFICE_PARTS, "_rels/", "docProps/", folder), folder)
        for folder, what in _OFFICE
    ),
)
"""The kinds of files that can be recognized before the whole file is there."""


def foreign_file(start: bytes) -> ForeignFile | None:
    """Return the kind of a file that is no data set and no message; None if its first bytes show none.

    >>> foreign_file(b"%PDF-1.7").what, foreign_file(b"text,labels")
    ('a PDF document', None)
    """
    return next((kind for kind in FOREIGN_FILES if kind.matches(start)), None)


def reject_foreign_content(start: bytes, format_: str | None) -> None:
    """Check that a file is not of a kind that Covey cannot read, or that only another format can.

    Args:
        start: the first bytes of the file, decompressed.
        format_: the name of the format that the user states; None if the format is to be detected.

    Raises:
        BadDataError: names what the file is, and what to do.
    """
    if (kind := foreign_file(start)) is not None:
        raise BadDataError(f"the file is {kind.what}; {kind.hint}")
    if _BZIP2.match(start):
        raise BadDataError("the file is compressed with bzip2; compress it with gzip or zstd instead")
    if start[_TAR_MAGIC] == b"ustar":
        raise BadDataError(f"the file is a tar archive; {_UNPACK}")
    if _PICKLE.match(start):
        raise BadDataError(f"the file is a Python pickle, which can run code; {_FRAME}")
    if _is_docbin(start):
        raise BadDataError(
            "the file is a DocBin of spaCy; write one line of JSON for each document instead: "
            'json.dumps({"text": doc.text, "cats": doc.cats})'
        )
    if format_ not in {None, "parquet"} and start.startswith(b"PAR1"):
        message = "the file is a Parquet file; set the format to parquet"
        raise BadDataError(Advice(message, Suggestion("options/format", "parquet")))
    text = start.removeprefix(BOM)
    if _HTML.match(text):
        raise BadDataError(
            "the file is a web page (HTML), not the data; the download probably needs a login or a click"
        )
    if text.startswith(b"<?xml"):
        hint = (
            "put it in a zip with the ARFF file"
            if b"<labels" in text
            else "open it in the program that wrote it, and save the data as CSV in UTF-8"
        )
        raise BadDataError(f"the file is an XML document; {hint}")


def reject_office_document(names: Sequence[str]) -> None:
    """Check that the members of a zip are not those of an office document.

    Raises:
        BadDataError: names what the file is, and what to do.
    """
    if _OFFICE_PARTS in names:
        for prefix, what in _OFFICE:
            if any(name.startswith(prefix) for name in names):
                raise BadDataError(f"the file is {what}; {_SAVE_AS_CSV}")
    if "mimetype" in names and "content.xml" in names:
        raise BadDataError(f"the file is an OpenDocument spreadsheet or text (.ods, .odt); {_SAVE_AS_CSV}")
    if "Index/Document.iwa" in names:
        raise BadDataError(f"the file is a document of Apple Numbers or Pages; {_SAVE_AS_CSV}")


def _is_docbin(start: bytes) -> bool:
    """Return whether the bytes are the beginning of a DocBin: a msgpack map, compressed with zlib."""
    if not start.startswith(_ZLIB_HEADERS):
        return False
    try:
        head = zlib.decompressobj().decompress(start[:4096], 64)
    except zlib.error:
        return False
    return b"\xa7version" in head[:12] or b"\xa5attrs" in head[:12]
