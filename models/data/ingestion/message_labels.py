"""Finds the label sets of messages by their ids, their Message-IDs or their contents.

The labels come from people who have seen a message. The messages come from elsewhere, such as an upload.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, get_args

import numpy as np

from models.arrays import Bools, Ints
from models.data.examples import SelectedBy
from models.data.record import is_name
from models.mail.email import Email
from models.mail.reader import message_identity, message_key, read_email

TEST_SHARE: Final = 0.2
"""Largest share of the messages that become test examples."""

_KEYS = 3
_SELECTIONS: Final[tuple[SelectedBy, ...]] = get_args(SelectedBy)


class MessageLabels:
    """Label sets of messages, in about 200 bytes for each message.

    Add all messages, then call :meth:`sort` once, and then look up examples. The keys are compared by 64-bit
    hashes, so that two different messages count as one with a probability of 1 in 2^64.

    Args:
        max_id_chars: number of characters of a Message-ID that count; the rest is unknown.

    Attributes:
        ids: the ids of the messages.
        is_used: for each message, whether it has been joined; the caller sets it.
        is_test: for each message, whether it is a test example: one of the random sample, while these are at
            most ``TEST_SHARE`` of all messages. Others of the sample are needed for training, for example if
            all messages are in it.
        invalid: labels that no data set can have. They were omitted.

    >>> labels = MessageLabels(max_id_chars=500)
    >>> labels.add("dec_1", "a@b", "0f", ["billing"], time=2.0, selected_by="doubt")
    >>> labels.sort()
    >>> labels.find("a@b", None), labels.ids[0], labels.labels(0)
    (0, 'dec_1', ('billing',))
    """

    def __init__(self, *, max_id_chars: int) -> None:
        self.ids: list[str] = []
        self.is_used: Bools = np.empty(0, dtype=np.bool_)
        self.is_test: Bools = np.empty(0, dtype=np.bool_)
        self.invalid: set[str] = set()
        self._max_id_chars = max_id_chars
        self._times = array("d")
        self._keys = array("q")
        self._draws = array("Q")
        self._selections = array("b")
        self._numbers = array("l")
        self._label_sets: dict[tuple[str, ...], int] = {}
        self._distinct: list[tuple[str, ...]] = []
        self._hashes: Ints = np.empty(0, dtype=np.int64)
        self._positions: Ints = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.ids)

    def add(
        self,
        id_: str,
        message_id: str | None,
        key: str,
        labels: Iterable[str],
        *,
        time: float,
        selected_by: SelectedBy,
    ) -> None:
        """Add a message.

        Args:
            id_: its own id, which no other message has.
            message_id: its Message-ID without brackets; None if it has none.
            key: the digest of its content; see :func:`models.mail.reader.message_key`.
            labels: its labels.
            time: when the labels were chosen. If several messages have the same key, the latest one counts.
            selected_by: what selected it for a review.
        """
        self.ids.append(id_)
        self._times.append(time)
        # The same test examples in every process, whatever its seed of ``hash``.
        self._draws.append(int.from_bytes(blake2b(key.encode(), digest_size=8).digest()))
        self._selections.append(_SELECTIONS.index(selected_by))
        self._keys.extend((hash(id_), hash(message_id or id_), hash(key)))
        names = tuple(sorted(set(labels)))
        if names not in self._label_sets:
            valid = tuple(filter(is_name, names))
            self.invalid.update(set(names).difference(valid))
            self._label_sets[names] = len(self._distinct)
            self._distinct.append(valid)
        self._numbers.append(self._label_sets[names])

    def sort(self) -> None:
        """Sort the messages by time, so that they can be looked up.

        A Message-ID that several messages have, as some faulty programs write, identifies none of them.
        """
        order = np.argsort(np.frombuffer(self._times, dtype=np.float64), kind="stable")
        keys = np.frombuffer(self._keys, dtype=np.int64).reshape(-1, _KEYS)[order].copy()
        _, groups, counts = np.unique(keys[:, 1], return_inverse=True, return_counts=True)
        ambiguous = counts[groups] > 1
        keys[ambiguous, 1] = keys[ambiguous, 0]
        hashes, positions = keys.ravel(), np.repeat(np.arange(len(order)), _KEYS)
        by_hash = np.argsort(hashes, kind="stable")
        self._hashes, self._positions = hashes[by_hash], positions[by_hash]
        self.ids = [self.ids[i] for i in order.tolist()]
        self._numbers = array("l", [self._numbers[i] for i in order.tolist()])
        self.is_used = np.zeros(len(order), dtype=np.bool_)
        self.is_test = np.zeros(len(order), dtype=np.bool_)
        selections = np.frombuffer(self._selections, dtype=np.int8)[order]
        sample = np.flatnonzero(selections == _SELECTIONS.index("sample"))
        draws = np.frombuffer(self._draws, dtype=np.uint64)[order[sample]]
        self.is_test[sample[np.argsort(draws)[: round(TEST_SHARE * len(order))]]] = True
        self._selections = array("b", selections.tobytes())
        self._times, self._keys, self._draws = array("d"), array("q"), array("Q")

    @property
    def n_sampled(self) -> int:
        """Number of messages of the random sample."""
        return self._selections.count(_SELECTIONS.index("sample"))

    def labels(self, position: int) -> tuple[str, ...]:
        """Return the label set of a message."""
        return self._distinct[self._numbers[position]]

    def selected_by(self, position: int) -> SelectedBy:
        """Return what selected a message for a review."""
        return _SELECTIONS[self._selections[position]]

    def find(self, id_: str | None, email: Email | None) -> int | None:
        """Return the position of a message, or None if it is not among the messages.

        A message is found by the digest of its content, by its id, or by its Message-ID, in this order.

        Args:
            id_: the id of an example, which can be the id or the Message-ID of a message; None if it has
                none.
            email: the content of the example, if it is an e-mail.
        """
        for key in self._keys_of(id_, email):
            wanted = hash(key)
            end = int(np.searchsorted(self._hashes, wanted, side="right"))
            if end and self._hashes[end - 1] == wanted:
                return int(self._positions[end - 1])
        return None

    def _keys_of(self, id_: str | None, email: Email | None) -> Sequence[str]:
        keys: list[str | None] = []
        message_id = None
        if email is not None:
            message_id, digest = identity(email)
            keys.append(message_key(message_id, digest))
        if id_ is not None:
            keys.append(id_[1:-1] if id_.startswith("<") and id_.endswith(">") else id_)
        keys.append(message_id)
        return [key[: self._max_id_chars] for key in keys if key]


def identity(email: Email) -> tuple[str | None, str]:
    """Return the Message-ID (None if there is none) and the body digest of an e-mail."""
    if email.raw is not None:
        return message_identity(email.raw)
    return None, read_email(email).body_digest
