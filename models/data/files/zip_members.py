"""Chooses the data files in a zip, and finds the split of each from its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from models.data.examples import Split
from models.data.files.zip_archive import ZipArchive
from models.data.record import join_first
from models.data.values.scalars import SPLIT_WORDS
from models.errors import BadDataError

_ORDER: tuple[Split, ...] = ("train", "validation", "test")
_SPLITS: dict[str, Split] = {**SPLIT_WORDS, "trn": "train", "tst": "test"}
_COMPRESSED = (".gz", ".zst")
_GENERAL = (".txt", ".dat", ".data", "")
"""Suffixes that say nothing about the format."""
_DOCUMENTATION = re.compile(
    r"(?:readme|licen[cs]e|copying|changelog|citation|notice)(?:\.txt)?|.*\.(?:md|rst|pdf|html?)"
)


@dataclass(frozen=True)
class Member:
    """A data file in a zip.

    Attributes:
        index: its position in the zip.
        split: the split of its examples; None if its name states none, or if it is the only file.
    """

    index: int
    split: Split | None


def choose_members(
    archive: ZipArchive, suffixes: Sequence[str], companions: Sequence[str] = ()
) -> list[Member]:
    """Return the members to read: the only data file, or all files that are named after their split.

    Args:
        archive: the zip.
        suffixes: the suffixes of the format.
        companions: the suffixes of files that the reader needs in addition to the data.

    Raises:
        BadDataError: the zip contains no data file, or several that are not named after their split.
    """
    candidates = _candidates(archive.names, suffixes, companions)
    if not candidates:
        ending = f" that ends in {' or '.join(suffixes)}" if suffixes else " with data"
        contents = join_first(archive.names) or "no files"
        raise BadDataError(f"the file is a zip archive without a file{ending}; it contains {contents}")
    members = [Member(index, split_of_name(archive.names[index])) for index in candidates]
    with_split = [member for member in members if member.split is not None]
    if len(members) == 1:  # alone, it has no counterpart, and examples for tests must come from it
        return [Member(members[0].index, None)]
    if len(with_split) == len(members) or len({member.split for member in with_split}) > 1:
        return sorted(with_split, key=lambda m: (_ORDER.index(m.split or "train"), archive.names[m.index]))
    suffix = PurePosixPath(archive.names[members[0].index]).suffix
    raise BadDataError(
        f"the file is a zip archive with {len(members):,} files of data: "
        f"{join_first([archive.names[m.index] for m in members])}; keep one, or name them after their split, "
        f"such as train{suffix}, validation{suffix} and test{suffix}"
    )


def warn_about_others(archive: ZipArchive, members: Sequence[Member], companions: Sequence[str]) -> list[str]:
    """Return a warning about the files in the zip that are neither read nor documentation."""
    read = {member.index for member in members}
    others = [
        name for index, name in enumerate(archive.names) if index not in read and _is_data(name, companions)
    ]
    return [f"files in the zip that were not read: {len(others):,} ({join_first(others)})"] if others else []


def split_of_name(name: str) -> Split | None:
    """Return the split that the name of a file, or of one of its folders, states.

    >>> split_of_name("data/reviews_Train-00000-of-00002.parquet"), split_of_name("dev/part1.csv")
    ('train', 'validation')
    >>> split_of_name("train-or-test.csv") is None
    True
    """
    path = PurePosixPath(name.lower())
    words = re.findall(r"[a-z]+", path.name.partition(".")[0])
    splits = {_SPLITS[word] for word in words if word in _SPLITS}
    if len(splits) == 1:
        return splits.pop()
    if splits:
        return None
    return next((_SPLITS[part] for part in reversed(path.parts[:-1]) if part in _SPLITS), None)


def _candidates(names: Sequence[str], suffixes: Sequence[str], companions: Sequence[str]) -> list[int]:
    """Return the positions of the files with a suffix of the format, else with one of no format."""
    data = [j for j, name in enumerate(names) if _is_data(name, companions)]
    own = [j for j in data if suffix_of(names[j]) in suffixes]
    general = [j for j in data if suffix_of(names[j]) in _GENERAL]
    return own or general or (data if len(data) == 1 else [])


def suffix_of(name: str) -> str:
    """Return the suffix of a name in lower case, without the suffix of a compression.

    >>> suffix_of("a/Train.CSV.gz")
    '.csv'
    """
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def _is_data(name: str, companions: Sequence[str]) -> bool:
    """Return whether a file is not hidden, no documentation, and no companion of the data."""
    path = PurePosixPath(name.lower())
    is_hidden = any(part.startswith(".") for part in path.parts)
    return not is_hidden and path.suffix not in companions and _DOCUMENTATION.fullmatch(path.name) is None
