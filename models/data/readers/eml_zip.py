"""Reads a zip of raw messages (``.eml``) in folders that are named after the labels."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile, read_at_most
from models.data.readers.options import FormatOptionsBase
from models.data.readers.zip_archive import ZipArchive, open_zip_archive
from models.data.record import Declarations, Item, Items, Record, RecordError, check_name
from models.errors import BadDataError, BadRecord
from models.mail.email import Email


class EmlZipOptions(FormatOptionsBase):
    """How folders become labels."""

    format: Literal["eml_zip"]
    root: str = ""
    """The folder in the zip that contains the label folders. By default, the top level."""
    tree: bool = False
    """Whether nested folders are a label tree. If false, ``a/b`` is an ordinary label."""


def read_eml_zip(file: InputFile, options: EmlZipOptions, limits: IngestLimits) -> Items:
    """Yield the messages of a zip in the order of their names, with one record for all copies of a message.

    The label is the path of the folder. A message outside the label folders has no label, and a message in
    several folders has several. Files whose names do not end in ``.eml`` are skipped. The line of a record is
    the number of the message in the zip.
    """
    root = options.root.strip("/")
    prefix = root + "/" if root else ""
    with open_zip_archive(file, limits) as archive:
        messages = [j for j, name in enumerate(archive.names) if name.lower().endswith(".eml")]
        inside = [j for j in messages if archive.names[j].startswith(prefix)]
        if not inside:
            where = f" in the folder {root!r}; check the option root" if root else ""
            raise BadDataError(f"the zip contains no .eml file{where}")
        folders = {j: archive.names[j].removeprefix(prefix).rpartition("/")[0] for j in inside}
        yield _declarations(archive, messages, folders, options)
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


def _declarations(
    archive: ZipArchive, messages: list[int], folders: dict[int, str], options: EmlZipOptions
) -> Declarations:
    warnings = []
    n_others = len(archive.names) - len(messages)
    if n_others:
        warnings.append(f"files in the zip that do not end in .eml: {n_others:,}; they were skipped")
    n_outside = len(messages) - len(folders)
    if n_outside:
        warnings.append(f"messages outside the folder {options.root!r}: {n_outside:,}; they were skipped")
    tops = {folder.partition("/")[0] for folder in folders.values()}
    if len(tops) == 1 and all("/" in folder for folder in folders.values()):
        (top,) = tops
        warnings.append(
            f"every label begins with {top}/; if {top} is only an outer folder, set the option root to {top}"
        )
    parents: dict[str, str] = {}
    if options.tree:
        for folder in folders.values():
            parts = folder.split("/")
            parents |= {"/".join(parts[: d + 1]): "/".join(parts[:d]) for d in range(1, len(parts))}
    return Declarations(parents=parents, warnings=warnings)


def _read_message(archive: ZipArchive, index: int, max_bytes: int) -> bytes:
    with archive.open(index) as member:
        raw = read_at_most(member, max_bytes + 1)
    if len(raw) > max_bytes:
        raise RecordError(f"the message is longer than the limit of {max_bytes:,} bytes")
    return raw


def _records(
    archive: ZipArchive, same: list[int], folders: dict[int, str], number: int, limits: IngestLimits
) -> list[Item]:
    """Return one record for files of equal size and checksum, or several if their bytes still differ."""
    labels: dict[bytes, list[str]] = {}
    items: list[Item] = []
    for j in same:
        name = archive.names[j]
        try:
            raw = _read_message(archive, j, limits.record_bytes)
            if folders[j]:
                check_name(folders[j], "a label", name, limits.name_length)
            labels.setdefault(raw, []).extend([folders[j]] if folders[j] else [])
        except RecordError as error:
            items.append(BadRecord(number, error.reason, name))
    items += [Record(line=number, labels=names, email=Email(raw=raw)) for raw, names in labels.items()]
    return items
