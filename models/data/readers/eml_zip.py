"""A zip of raw messages in folders that are labels."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile, read_at_most
from models.data.readers.options import FormatOptions
from models.data.readers.zip_archive import ZipArchive, open_zip_archive
from models.data.record import Declarations, Item, Items, Record, RecordError, check_name
from models.errors import BadDataError, BadRecord
from models.mail.email import Email


class EmlZipOptions(FormatOptions):
    """How folders are to be understood."""

    format: Literal["eml_zip"]
    root: str = ""
    """The folder in which the labels' folders stand, where the zip has one around them."""
    tree: bool = False
    """Make a label tree of nested folders; else ``a/b`` is a label like any other."""


def read_eml_zip(source: InputFile, options: EmlZipOptions, limits: IngestLimits) -> Items:
    """The messages of a zip, in the order of their names, one for all copies of the same bytes.

    The label is the path of the folder; a message beside the folders has none, and one that lies in several
    has several. Files whose names do not end in ``.eml`` are passed over. The record's line is the number of
    the file among those read.
    """
    root = options.root.strip("/")
    prefix = root + "/" if root else ""
    with open_zip_archive(source, limits) as archive:
        found = [j for j, name in enumerate(archive.names) if name.lower().endswith(".eml")]
        inside = [j for j in found if archive.names[j].startswith(prefix)]
        if not inside:
            where = f" under {root!r}" if root else ""
            raise BadDataError(f"the zip holds no .eml file{where}")
        folders = {j: archive.names[j].removeprefix(prefix).rpartition("/")[0] for j in inside}
        yield _declared(archive, found, folders, options)
        inside.sort(key=archive.names.__getitem__)
        copies: dict[tuple[int, int], list[int]] = defaultdict(list)
        for j in inside:
            copies[archive.signature(j)].append(j)
        number = 0
        for j in inside:
            same = copies.pop(archive.signature(j), [])
            if same:
                number += 1
                yield from _records(archive, same, folders, number, limits)


def _declared(
    archive: ZipArchive, found: list[int], folders: dict[int, str], options: EmlZipOptions
) -> Declarations:
    remarks = []
    others = len(archive.names) - len(found)
    if others:
        remarks.append(f"{others:,} files of the zip do not end in .eml and were passed over")
    if len(folders) < len(found):
        remarks.append(f"{len(found) - len(folders):,} messages do not lie under {options.root!r}")
    tops = {folder.partition("/")[0] for folder in folders.values()}
    if len(tops) == 1 and all("/" in folder for folder in folders.values()):
        (top,) = tops
        remarks.append(
            f"every label begins with {top}/; if that is only a folder around them, set root to it"
        )
    parents: dict[str, str] = {}
    if options.tree:
        for folder in folders.values():
            parts = folder.split("/")
            parents |= {"/".join(parts[: d + 1]): "/".join(parts[:d]) for d in range(1, len(parts))}
    return Declarations(parents=parents, remarks=remarks)


def _message(archive: ZipArchive, index: int, max_bytes: int) -> bytes:
    with archive.open(index) as member:
        raw = read_at_most(member, max_bytes + 1)
    if len(raw) > max_bytes:
        raise RecordError(f"the message is longer than {max_bytes:,} bytes")
    return raw


def _records(
    archive: ZipArchive, same: list[int], folders: dict[int, str], number: int, limits: IngestLimits
) -> list[Item]:
    """One record for files of equal size and checksum, or several in the odd case that they differ."""
    labels: dict[bytes, list[str]] = {}
    items: list[Item] = []
    for j in same:
        name = archive.names[j]
        try:
            raw = _message(archive, j, limits.record_bytes)
            if folders[j]:
                check_name(folders[j], "a label", name, limits.name_length)
            labels.setdefault(raw, []).extend([folders[j]] if folders[j] else [])
        except RecordError as error:
            items.append(BadRecord(number, error.reason, name))
    items += [Record(line=number, labels=names, email=Email(raw=raw)) for raw, names in labels.items()]
    return items
