"""A set of strings that stores only 64 bits of each."""

from __future__ import annotations

from array import array


class CompactStringSet:
    """A set of strings in 16 to 32 bytes for each string.

    It stores 64-bit hashes in an open-addressing table, so that two different strings count as equal with a
    probability of 1 in 2^64.

    >>> names = CompactStringSet()
    >>> [names.add(name) for name in ("a", "b", "a")]
    [False, False, True]
    >>> "b" in names, "c" in names
    (True, False)
    """

    def __init__(self) -> None:
        self._slots = array("q", bytes(8 * 1024))
        self._n_used = 0

    def add(self, value: str) -> bool:
        """Add a string. Return whether it was already in the set."""
        if 2 * self._n_used >= len(self._slots):
            self._grow()
        return self._insert(hash(value) or 1)

    def __contains__(self, value: str) -> bool:
        """Return whether a string is in the set."""
        key = hash(value) or 1
        slots = self._slots
        mask = len(slots) - 1
        index = key & mask
        while (stored := slots[index]) and stored != key:
            index = (index + 1) & mask
        return stored == key

    def _insert(self, key: int) -> bool:
        slots = self._slots
        mask = len(slots) - 1
        index = key & mask
        while stored := slots[index]:
            if stored == key:
                return True
            index = (index + 1) & mask
        slots[index] = key
        self._n_used += 1
        return False

    def _grow(self) -> None:
        old = self._slots
        self._slots = array("q", bytes(16 * len(old)))
        self._n_used = 0
        for key in old:
            if key:
                self._insert(key)
