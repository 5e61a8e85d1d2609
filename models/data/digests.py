"""Digests of the content of documents, by which the same document is found in two data sets."""

from __future__ import annotations

import json
from hashlib import blake2b

import numpy as np

from models.data.examples import Examples, FeatureRows
from models.mail.email import Email

_DIGEST_BYTES = 16


def document_digests(examples: Examples) -> list[bytes]:
    """Return a digest of the content of each document, without its labels and its id.

    A raw message and its parts have different digests.

    >>> first, second, third = document_digests(Examples("text", ["a", "b", "a"], [("x",), (), ()]))
    >>> first == third, first == second
    (True, False)
    """
    documents = examples.documents
    if isinstance(documents, FeatureRows):
        matrix = documents.matrix
        names = np.array([json.dumps(name) for name in documents.names], dtype=object)
        rows = zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True)
        return [
            _digest("\n".join(names[matrix.indices[start:end]]).encode() + matrix.data[start:end].tobytes())
            for start, end in rows
        ]
    return [_digest(_content(document)) for document in documents]


def _content(document: str | Email) -> bytes:
    if isinstance(document, str):
        return document.encode()
    if document.raw is not None:
        return document.raw
    return json.dumps(document.parts(), sort_keys=True).encode()


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()
