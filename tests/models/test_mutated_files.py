"""Files that were valid once are read, or refused with a reason and a place, in memory by their size.

For an hour and with other numbers: ``benchmarks/fuzz.py``.
"""

from __future__ import annotations

from pathlib import Path

import mutation
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation import READERS, Astray, examine, seeds


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=60)
@given(number=st.integers(0, 10**9))
def test_a_mangled_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, reader: str, number: int
) -> None:
    outcome = examine(reader, number, tmp_path_factory.getbasetemp())
    assert outcome.size_bytes <= 2**20


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader != "mime"])
def test_both_ends_are_reached(tmp_path: Path, reader: str) -> None:
    outcomes = {examine(reader, number, tmp_path).read for number in range(25)}
    assert outcomes == {True, False}
    assert seeds(reader)


@pytest.mark.parametrize("number", [360189000000496, 360189000002685])
def test_nothing_in_a_shape_larger_than_any_is_refused(tmp_path: Path, number: int) -> None:
    assert not examine("artifact", number, tmp_path).read


def test_a_header_of_one_long_line_takes_no_more_than_its_share(tmp_path: Path) -> None:
    outcome = examine("mbox", 360189000000580, tmp_path)
    assert outcome.peak_bytes < 2**22


def test_a_path_of_thousands_of_classes_is_not_taken_apart(tmp_path: Path) -> None:
    outcome = examine("arff", 7000001197, tmp_path)
    assert not outcome.read
    assert outcome.peak_bytes < 2**21


def test_what_goes_astray_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> bool:
        raise RecursionError

    monkeypatch.setitem(mutation._READ, "mime", stumble)
    with pytest.raises(Astray, match="mime 5: RecursionError"):
        examine("mime", 5, tmp_path)
    monkeypatch.setitem(mutation._READ, "mime", lambda *_: len(bytearray(2**27)) > 0)
    with pytest.raises(Astray, match=r"mime 5: 134,\d+,\d+ bytes of memory for a file"):
        examine("mime", 5, tmp_path)
