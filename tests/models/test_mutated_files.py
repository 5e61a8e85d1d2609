"""Readers accept a mutated file or reject it with a reason and a line, in memory proportional to its size.

``python -m benchmarks.attack --fuzz`` runs the same checks for any length of time with other seeds.
"""

from __future__ import annotations

from pathlib import Path

import mutation
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation import READERS, ReaderFault, check_reader, valid_files


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_a_mutated_file_is_accepted_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, reader: str, seed: int
) -> None:
    outcome = check_reader(reader, seed, tmp_path_factory.getbasetemp())
    assert outcome.size_bytes <= 2**20


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader != "mime"])
def test_some_mutated_files_are_accepted_and_some_rejected(tmp_path: Path, reader: str) -> None:
    outcomes = {check_reader(reader, seed, tmp_path).accepted for seed in range(25)}
    assert outcomes == {True, False}
    assert valid_files(reader)


def test_a_header_of_one_long_line_takes_little_memory(tmp_path: Path) -> None:
    outcome = check_reader("mbox", 360189000000580, tmp_path)
    assert outcome.peak_bytes < 2**22


def test_a_path_of_thousands_of_classes_takes_little_memory(tmp_path: Path) -> None:
    outcome = check_reader("arff", 7000001197, tmp_path)
    assert not outcome.accepted
    assert outcome.peak_bytes < 2**21


def test_exceptions_and_excessive_memory_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bool:
        raise RecursionError

    monkeypatch.setitem(mutation._READ, "mime", fail)
    with pytest.raises(ReaderFault, match="mime 5: RecursionError"):
        check_reader("mime", 5, tmp_path)
    monkeypatch.setitem(mutation._READ, "mime", lambda *_: len(bytearray(2**27)) > 0)
    with pytest.raises(ReaderFault, match=r"mime 5: 134,\d+,\d+ bytes of memory for a file"):
        check_reader("mime", 5, tmp_path)
