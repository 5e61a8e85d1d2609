"""Rank the labels of all examples of a data set, block by block, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from models.data.examples import Documents, ExampleSource, FeatureRows
from models.errors import UnsuitableDataError
from models.features.numeric import NumericFeatures
from models.mail import MailDocument, read_email
from models.mail.email import Email
from models.pipeline import Pipeline, Ranking

BLOCK_RANKED_LABELS = 2**18
"""Maximum number of ranked labels of a block, which limits the memory."""

BLOCK_SCORES = 2**23
"""Maximum number of documents times labels of a block, which limits the memory of large label sets."""

MAX_FAILED_DOCUMENTS = 100
"""Number of documents without a score after which it is not worth while to continue."""

AnyDocuments: TypeAlias = "Documents | Sequence[MailDocument]"


@dataclass(frozen=True)
class RankedBlock:
    """Consecutive documents and their rankings.

    Attributes:
        ids: ids of n documents.
        ranking: their rankings.
    """

    ids: Sequence[str]
    ranking: Ranking


@dataclass(frozen=True)
class FailedDocument:
    """A document that has no scores.

    Attributes:
        id: its id.
        code: code of the error.
        detail: the error.
    """

    id: str
    code: str
    detail: str


def rank_examples(
    pipeline: Pipeline, source: ExampleSource, *, top: int | None, max_products: int
) -> Iterator[RankedBlock | FailedDocument]:
    """Rank the labels of all examples, in their order. Read one batch at a time.

    Args:
        pipeline: the fitted pipeline of a version.
        source: the examples.
        top: length of the rankings; None includes every label.
        max_products: maximum number of products of two features of a block.

    Raises:
        UnsuitableDataError: more than ``MAX_FAILED_DOCUMENTS`` documents have no scores.
    """
    n_labels = len(pipeline.labels_)
    n_ranked = n_labels if top is None else min(top, n_labels)
    size = max(1, min(BLOCK_RANKED_LABELS // n_ranked, BLOCK_SCORES // n_labels))
    n_failed = 0
    for batch in source.batches():
        for first in range(0, len(batch.ids), size):
            ids = batch.ids[first : first + size]
            documents = _to_documents(pipeline, _slice(batch.documents, first, first + len(ids)))
            for part in _rank(pipeline, ids, documents, top, max_products):
                if isinstance(part, FailedDocument):
                    n_failed += 1
                    if n_failed > MAX_FAILED_DOCUMENTS:
                        raise UnsuitableDataError(
                            f"more than {MAX_FAILED_DOCUMENTS} documents have no scores; the latest is "
                            f"{part.id}: {part.detail}"
                        )
                yield part


def _to_documents(pipeline: Pipeline, documents: Documents) -> AnyDocuments:
    """Convert documents to the kind that a pipeline was trained on, as for a prediction request."""
    if isinstance(documents, FeatureRows):
        return documents
    if pipeline.kind_ == "email":
        return [
            read_email(document if isinstance(document, Email) else Email(text=document))
            for document in documents
        ]
    return [
        read_email(document).learning_text() if isinstance(document, Email) else document
        for document in documents
    ]


def _rank(
    pipeline: Pipeline, ids: Sequence[str], documents: AnyDocuments, top: int | None, max_products: int
) -> Iterator[RankedBlock | FailedDocument]:
    """Rank the labels of a block. If that fails, halve the block until the failing documents are alone."""
    try:
        _check_products(pipeline, documents, max_products)
        ranking = pipeline.rank(documents, top=top)
    except UnsuitableDataError as error:
        if len(ids) == 1:
            yield FailedDocument(ids[0], error.code, str(error))
            return
        middle = len(ids) // 2
        yield from _rank(pipeline, ids[:middle], _slice(documents, 0, middle), top, max_products)
        yield from _rank(pipeline, ids[middle:], _slice(documents, middle, len(ids)), top, max_products)
    else:
        yield RankedBlock(ids, ranking)


def _check_products(pipeline: Pipeline, documents: AnyDocuments, limit: int) -> None:
    if isinstance(documents, FeatureRows) and isinstance(pipeline.features_, NumericFeatures):
        n_products = pipeline.features_.n_products(documents)
        if n_products > limit:
            raise UnsuitableDataError(
                f"the document has {n_products:,} products of two features; the limit is {limit:,}"
            )


def _slice(documents: Any, first: int, last: int) -> Any:
    """Return some of the documents, of the same type."""
    if isinstance(documents, FeatureRows):
        return FeatureRows(documents.names, documents.matrix[first:last])
    return documents[first:last]
