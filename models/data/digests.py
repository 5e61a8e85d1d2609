"""Which documents are the same: those with equal digests.

The report on a data set, splits, folds and comparisons of versions all use this notion. Two documents are the
same if a learner reads the same in them:

- Texts are the same if they have the same words and punctuation, with any white space between them.
- Numeric documents are the same if they have the same values that are not 0.
- E-mails are the same if author, subject, text, and the names and types of attachments are. Recipients do not
  count: copies for several people are the same document.

Labels, ids and the other fields of an example do not count. A message that quotes another one is a document
of its own. A raw message differs from its parts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from models.arrays import Ints, Matrix, numbered_by_first_occurrence
from models.mail import Email, MailDocument
from models.mail.content import content_of
from models.mail.fields import DEFAULT_FIELDS

Document: TypeAlias = "str | Email | MailDocument | Mapping[str, float]"
"""A text, an e-mail, or the values of features by name."""

_DIGEST_BYTES: Final = 8
_WHITE_SPACE: Final = b" \t\n\v\f\r"
_MAX_SHORT_BYTES: Final = 256


class DocumentSource(Protocol):
    """The part of an ``ExampleSource`` that is needed here."""

    def document_digests(self) -> Ints:
        """Return a digest of every document, (g,)."""
        ...


def document_groups(source: DocumentSource) -> Ints:
    """Return a number for each example, (g,): equal documents have equal numbers, in order from 0.

    >>> from models.data.examples import Examples
    >>> document_groups(Examples("text", ["a bill", "a fault", " a  bill"], [("x",), (), ()])).tolist()
    [0, 1, 0]
    """
    return numbered_by_first_occurrence(source.document_digests())


def digest_of(document: Document) -> int:
    """Return the digest of a document, a signed number of 64 bits that is the same in every process.

    Two different documents have the same digest with a probability of 1 in 2^64.

    >>> digest_of({"height": 1.0, "width": 0.0}) == digest_of({"height": 1.0})
    True
    """
    if isinstance(document, str):
        return _digest((_encoded(document),))
    if isinstance(document, Mapping):
        names = sorted(document)
        values = array("d", map(document.__getitem__, names))
        if 0.0 in values:
            names = [name for name in names if document[name]]
            values = array("d", map(document.__getitem__, names))
        return _digest_of_features(names, values.tobytes())
    if not isinstance(document, Email):
        read = [part.text for part in document.learning_parts(DEFAULT_FIELDS)]
        author = getattr(document, "sender_line", "")  # other documents with fields have none
        return _digest(map(_encoded, [author, *read]))
    if document.raw is not None:
        return _digest(content_of(document.raw))
    attachments = [text for attachment in document.attachments for text in attachment]
    fields = [document.from_, document.subject, document.text, document.html, *attachments]
    return _digest(map(_encoded, fields))


def digests_of_rows(names: Sequence[str], matrix: Matrix) -> Ints:
    """Return the digests of numeric documents, (n,).

    Args:
        names: r feature names.
        matrix: (n, r) values.

    >>> digests = digests_of_rows(["width", "height"], csr_array([[0.0, 1.0], [2.0, 1.0]]))
    >>> int(digests[0]) == digest_of({"height": 1.0})
    True
    """
    used, columns = np.unique(matrix.indices, return_inverse=True)  # few of all names, if this is a batch
    used_names = np.array([names[j] for j in used.tolist()], dtype=object)
    order = np.argsort(used_names)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    values = matrix.data.astype(np.float64)  # a copy
    rows = csr_array((values, place[columns], matrix.indptr.copy()), shape=(matrix.shape[0], len(used)))
    rows.sum_duplicates()  # also sorts the columns of each row
    rows.eliminate_zeros()
    used_names = used_names[order]
    spans = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    digests = (
        _digest_of_features(used_names[rows.indices[start:end]], rows.data[start:end].tobytes())
        for start, end in spans
    )
    return np.fromiter(digests, dtype=np.int64, count=rows.shape[0])


def _digest_of_features(names: Iterable[str], values: bytes) -> int:
    """Return the digest of sorted feature names and their values."""
    content = "\n".join(names).encode("utf-8", "surrogatepass")
    return _to_int(blake2b(content + b"\0" + values, digest_size=_DIGEST_BYTES).digest())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(texts: Iterable[bytes]) -> int:
    """Return the digest of some texts, apart from their white space."""
    return _to_int(blake2b(b"\0".join(map(_without_white_space, texts)), digest_size=_DIGEST_BYTES).digest())


def _without_white_space(text: bytes) -> bytes:
    """Return a text without white space if it is long, and with one space between words if it is short.

    In a short text, a space can make the difference between two documents ("1 23", "12 3"). To find the words
    takes ten times longer than to remove white space.
    """
    letters = text.translate(None, _WHITE_SPACE)
    return letters if len(letters) > _MAX_SHORT_BYTES else b" ".join(text.split())


def _to_int(digest: bytes) -> int:
    return int.from_bytes(digest, "little", signed=True)
