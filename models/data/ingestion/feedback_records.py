"""Joins the labels that people chose for messages with these messages.

The messages come from up to three places: another data set, whose examples get the new labels; an upload; and
a store of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from models.data.examples import FAIR_SELECTIONS
from models.data.ingestion.message_labels import MessageLabels, identity
from models.data.ingestion.stored_records import stored_records
from models.data.ingestion.string_set import CompactStringSet
from models.data.record import Declarations, Item, Items, Record, is_name, join_first
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.mail.email import Email
from models.mail.reader import read_email

PAGE_SIZE = 100
"""Number of messages that are looked up in the store at a time."""


StoredMessages = Callable[[Sequence[str]], Iterator[tuple[str, Email]]]
"""Yields the id and the content of each of these messages that the store has, one after the other."""


@dataclass
class FeedbackCounts:
    """How many messages with labels were found, and where.

    Attributes:
        n_relabelled: examples of the other data set that got the new labels.
        n_new: messages that were added.
        n_without_message: messages that are in none of the places.
        n_unlabelled: uploaded messages without new labels, which were omitted.
        n_repeated: uploaded messages that are in another place, too, or were uploaded before.
    """

    n_relabelled: int = 0
    n_new: int = 0
    n_without_message: int = 0
    n_unlabelled: int = 0
    n_repeated: int = 0


class FeedbackRecords:
    """Yields the records of a data set that is made from the labels that people chose.

    Each message occurs once. A message of the other data set keeps its id, split, fold and weight, so that
    its test part stays the same. Messages that are added remember what selected them for a review. Those that
    are no fair test (:func:`models.data.examples.is_fair_test`) are never held out, even if the upload says
    so.

    Args:
        labels: the labels of messages, sorted.
        other: the other data set, of e-mails or texts; None if there is none.
        stored: reads messages from the store.
        with_splits: whether messages that are added belong to the test or the training part; otherwise they
            belong to no part, unless the upload has one.
        text_chars: messages become texts with at most this number of characters, because the examples of the
            other data set are texts; None if they stay e-mails.
        warnings: further warnings for the report.
        progress: receives the counts after each message or batch of messages. An exception that it raises
            stops the work.

    Attributes:
        counts: the counts so far.
    """

    def __init__(
        self,
        labels: MessageLabels,
        other: StoredExamples | None,
        stored: StoredMessages,
        *,
        with_splits: bool,
        text_chars: int | None = None,
        warnings: Sequence[str] = (),
        progress: Callable[[FeedbackCounts], None] = lambda _counts: None,
    ) -> None:
        self.counts = FeedbackCounts()
        self._labels = labels
        self._other = other
        self._stored = stored
        self._with_splits = with_splits
        self._text_chars = text_chars
        self._other_warnings = warnings
        self._progress = progress
        self._ids = CompactStringSet()

    def records(self, uploaded: Iterable[Item] = ()) -> Items:
        """Yield the records.

        Args:
            uploaded: the records of the upload.

        Raises:
            BadDataError: no message is left, or the upload has documents that are not e-mails.
        """
        if not len(self._labels):
            raise BadDataError("no decision has feedback in this time; a data set needs at least one")
        if self._other is not None:
            yield from self._relabelled(self._other)
        for item in uploaded:
            if not isinstance(item, Record) or self._join(item):
                yield item
            self._progress(self.counts)
        yield from self._from_store()
        if not self.counts.n_relabelled + self.counts.n_new:
            raise BadDataError(
                f"no message of the {len(self._labels):,} decisions with feedback is available; set "
                "keep_messages of the router to keep messages from now on, or set a format and upload the "
                "messages"
            )
        yield Declarations(warnings=list(self._warnings()))

    def _relabelled(self, other: StoredExamples) -> Items:
        line = 1
        for batch in other.batches():
            for record in stored_records(batch, line):
                position = self._labels.find(record.id, record.email)
                if position is not None:
                    self._labels.is_used[position] = True
                    self._set_labels(record, position)
                    self.counts.n_relabelled += 1
                self._ids.add(record.id or "")
                yield record
            line += batch.n_examples
            self._progress(self.counts)

    def _join(self, record: Record) -> bool:
        """Set the labels of an uploaded message. Return whether it belongs to the data set."""
        if record.email is None:
            raise BadDataError(
                f"the file has examples of kind {record.kind}; only e-mails can be joined with feedback"
            )
        position = self._labels.find(record.id, record.email)
        if position is None:
            self.counts.n_unlabelled += 1
            return False
        if self._labels.is_used[position]:
            self.counts.n_repeated += 1
            return False
        message_id, _ = identity(record.email)
        self._add(record, position, [record.id, message_id])
        return True

    def _from_store(self) -> Items:
        unused = np.flatnonzero(~self._labels.is_used).tolist()
        for start in range(0, len(unused), PAGE_SIZE):
            positions = {self._labels.ids[i]: i for i in unused[start : start + PAGE_SIZE]}
            for id_, email in self._stored(list(positions)):
                record = Record(line=self.counts.n_new + 1, labels=(), email=email)
                message_id, _ = identity(email)
                self._add(record, positions.pop(id_), [message_id])
                yield record
                self._progress(self.counts)
            self.counts.n_without_message += len(positions)
            self._progress(self.counts)

    def _add(self, record: Record, position: int, ids: Sequence[str | None]) -> None:
        """Make an example of a message. Its id is the first one that is valid and that no other has.

        A text has the id of the decision: it is found by its id only, and a Message-ID can occur twice.
        """
        self._labels.is_used[position] = True
        self._set_labels(record, position)
        if self._text_chars is not None and record.email is not None:
            record.text = read_email(record.email).learning_text()[: self._text_chars]
            record.email, ids = None, ()
        record.selected_by = self._labels.selected_by(position)
        if record.split is None and self._with_splits:
            record.split = "test" if self._labels.is_test[position] else "train"
        elif record.split is not None and record.selected_by not in FAIR_SELECTIONS:
            record.split = "train"
        record.id = next(
            id_
            for id_ in (*ids, self._labels.ids[position])
            if id_ is not None and is_name(id_) and not self._ids.add(id_)
        )
        self.counts.n_new += 1

    def _set_labels(self, record: Record, position: int) -> None:
        record.labels = self._labels.labels(position)
        record.unknown = ()

    def _warnings(self) -> Iterator[str]:
        counts = self.counts
        yield from self._other_warnings
        if invalid := sorted(self._labels.invalid):
            yield (
                "labels of feedback that are blank or have control characters were omitted: "
                f"{join_first(invalid)}"
            )
        if counts.n_without_message:
            yield (
                f"decisions with feedback whose message is not available: {counts.n_without_message:,} of "
                f"{len(self._labels):,}; they are not in the data set"
            )
        if counts.n_unlabelled:
            yield f"uploaded messages without feedback: {counts.n_unlabelled:,}; they are not in the data set"
        if counts.n_repeated:
            yield f"uploaded messages that occur more than once: {counts.n_repeated:,}; each is there once"
