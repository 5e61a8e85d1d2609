"""A set of strings that remembers 64 bits of each."""

from __future__ import annotations

from array import array


class CompactStringSet:
    """Strings met so far, in 16 to 32 bytes each; a false yes has odds of one in 2^64 for each pair.

    >>> seen = CompactStringSet()
    >>> [seen.add(name) for name in ("a", "b", "a")]
    [False, False, True]
    """

    def __init__(self) -> None:
        self._slots = array("q", bytes(8 * 1024))
        self._n_used = 0

    def add(self, value: str) -> bool:
        """Remember a string; true where it was there already."""
        if 2 * self._n_used >= len(self._slots):
            self._grow()
        return self._insert(hash(value) or 1)

    def _insert(self, key: int) -> bool:
        slots = self._slots
        mask = len(slots) - 1
        place = key & mask
        while found := slots[place]:
            if found == key:
                return True
            place = (place + 1) & mask
        slots[place] = key
        self._n_used += 1
        return False

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("q", bytes(16 * len(old)))
        self._n_used = 0
        for key in old:
            if key:
                self._insert(key)
