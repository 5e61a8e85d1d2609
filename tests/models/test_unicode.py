"""Unicode normalization in linear time, compared with that of the standard library."""

from __future__ import annotations

import sys
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text.tokens import split
from models.unicode import _BOUNDARY, _LONG_RUN, _PIECE_CHARS, MAX_MARKS, normalize

MARKS = "\u0301\u0316\u0f73\uff9e\u3099\u0345"
JOINING = "\u1100\u1161\u11a8\u09c7\u09be\u314f\uffc2"
EXPANDING = "\ufdfa½ﬁǖĳ"

some_text = st.text(st.one_of(st.characters(), st.sampled_from(f"aß \n가{MARKS}{JOINING}{EXPANDING}")))


@given(some_text, st.sampled_from(["NFC", "NFKC"]))
def test_text_without_long_runs_of_marks_is_normalized_as_usual(text: str, form: str) -> None:
    if not _LONG_RUN.search(text):
        assert normalize(text, form) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@settings(max_examples=30)
@given(some_text.filter(lambda text: not _LONG_RUN.search(text)), st.integers(0, 60))
def test_long_text_is_normalized_in_pieces_that_do_not_change_the_result(text: str, before: int) -> None:
    long_text = "é" * (_PIECE_CHARS - before) + text + "x" * _PIECE_CHARS
    assert normalize(long_text) == unicodedata.normalize("NFKC", long_text)


def test_every_character_that_can_combine_with_the_one_before_is_known() -> None:
    """Every other character of Unicode can begin a piece, and interrupts a run of marks."""
    seconds = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for character in map(chr, range(sys.maxunicode + 1)):
        parts = unicodedata.decomposition(character).split()
        if len(parts) == 2 and unicodedata.normalize("NFC", character) == character and parts[0][0] != "<":
            seconds.add(chr(int(parts[1], 16)))
    for character in map(chr, range(sys.maxunicode + 1)):
        first = unicodedata.normalize("NFKD", character)[0]
        if unicodedata.combining(first):
            assert _LONG_RUN.fullmatch(character * (MAX_MARKS + 1)), hex(ord(character))
        if unicodedata.combining(first) or first in seconds:
            assert not _BOUNDARY.match(character), hex(ord(character))


def test_marks_after_the_thirtieth_of_a_run_are_removed() -> None:
    assert normalize("x" + "\u0316" * 31 + "y" + "\u0316" * 30) == "x" + "\u0316" * 30 + "y" + "\u0316" * 30


@pytest.mark.parametrize("before", [0, 10, 30, 40])
def test_a_run_that_is_longer_than_a_piece_is_cut_like_a_short_one(before: int) -> None:
    text = "x" * (_PIECE_CHARS - before) + "\u0316" * (5 * _PIECE_CHARS) + "y\u0316"
    assert normalize(text) == "x" * (_PIECE_CHARS - before) + "\u0316" * MAX_MARKS + "y\u0316"


def test_the_result_is_at_most_twice_as_long_as_a_long_text() -> None:
    assert len(normalize("\ufdfa" * 100_000)) == 200_000


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73", "\uff9e\u0301", "\u0344\u0316"])
def test_a_million_alternating_marks_take_linear_time(marks: str) -> None:
    """Without the limit on marks, this takes hours."""
    begin = time.process_time()
    split(["a" + marks * (1_000_000 // len(marks))])
    assert time.process_time() - begin < 60
