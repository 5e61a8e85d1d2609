"""Adversarial inputs, and how time and memory grow with their size.

Time is CPU time, so that other work on the machine matters little. A measurement that looks wrong is
repeated, and the smallest ratio counts. Inputs can exceed limits, after which the time grows no more, so the
sizes are fixed, unlike those of ``growth``.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

import pytest
from growth import FACTOR, MAX_RATIO

NOISE_SECONDS = 0.03
"""Times below this say nothing."""

BASE_BYTES = 128 * 2**20
BYTES_PER_BYTE = 100
"""The memory for one request or message: at most ``BASE_BYTES`` plus this number of bytes for each of its
bytes."""

SHORT, LONG = 1, 16
"""Factors of the sizes of inputs in ``make test`` and in ``make test-long``."""

factors = pytest.mark.parametrize("factor", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])

ALPHABETS = {
    "combining marks": "\u0301\u0316",
    "marks of two classes": "a\u0f73\u0345",
    "halfwidth marks": "\uff9e\u0301",
    "one word": "x",
    "sharp s": "ß",
    "digits": "7",
    "quotes": "> ",
    "quoted lines": "> a\n",
    "colons": "a:\n",
    "CJK": "漢字",
    "Thai marks": "กิ่",
    "one Thai letter": "ิ",
    "Hangul vowels": "\u1161",
    "emoji": "👩\u200d👩\u200d👧\u200d👦",
    "ligature": "\ufdfa",
    "spaces": " ",
    "lines": "\n",
    "NUL": "\0",
    "brackets": "([{<",
    "right to left": "\u202e\u05d0",
    "capital I": "İ",
    "sigma": "Σ\u0345",
    "underscores": "a_",
    "vowels": "aeiou",
    "word ends": "ational",
}
"""Repeated characters that some algorithm handles slowly."""


def repeat(alphabet: str, length: int) -> str:
    """Return a text of a length."""
    return (alphabet * (length // len(alphabet) + 1))[:length]


def distinct_words(length: int) -> str:
    """Return a text of distinct words of a length."""
    return " ".join(f"{i * 7919:07x}" for i in range(length // 8))


def check_time(what: str, run: Callable[[int], object], size: int) -> None:
    """Fail if the time of ``run(size)`` grows much faster than the size."""
    ratios = []
    for _ in range(3):
        large = _seconds(run, FACTOR * size)
        if large < NOISE_SECONDS:
            return
        small = _seconds(run, size)
        ratios.append(large / max(small, NOISE_SECONDS / FACTOR))
        if ratios[-1] <= MAX_RATIO:
            return
    pytest.fail(f"{what}: {FACTOR} times the size takes {min(ratios):.0f} times the time")


def check_memory(what: str, run: Callable[[int], object], size: int, n_bytes: int) -> None:
    """Fail if ``run(size)`` takes much more memory than the ``n_bytes`` of its input."""
    tracemalloc.start()
    try:
        run(size)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    limit = BASE_BYTES + BYTES_PER_BYTE * n_bytes
    assert peak <= limit, f"{what}: {peak:,} bytes of memory for an input of {n_bytes:,} bytes"


def _seconds(run: Callable[[int], object], size: int) -> float:
    # The garbage collector visits all objects of the process, which says nothing about this input.
    gc.disable()
    try:
        begin = time.process_time()
        run(size)
        return time.process_time() - begin
    finally:
        gc.enable()
