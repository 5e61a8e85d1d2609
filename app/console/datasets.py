"""Pages of data sets: the list, the upload, the report, and the examples."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request, Response

from app.api.base_route import Context, ReadScope, TrainScope
from app.api.guards import has_scope
from app.api.paging import Page, PageQuery
from app.api.schemas import DatasetId
from app.console.charts import MAX_LABELS, label_chart
from app.console.corrections import next_training
from app.console.reading_again import proposals, upload_fields
from app.console.rendering import page
from app.console.route import Conditions, pages
from app.datasets import examples, service
from app.datasets.schemas import ExampleItem
from app.threads import STORAGE
from models.data.files.containers import FOREIGN_FILES
from models.data.readers.registry import FORMATS
from models.mail import Email, read_email

router = pages()

STATES = ("awaiting_content", "ingesting", "ready", "failed")
"""The states of data sets, in their order."""

EXAMPLES_ON_A_PAGE = 20
"""Examples are long, so a page has fewer of them than of other things."""

_MAX_FEATURES = 30


@router.get("/datasets", dependencies=[ReadScope])
def datasets(ctx: Context, request: Request, paging: PageQuery, conditions: Conditions) -> Response:
    """Show the data sets, newest first."""
    return page(
        request,
        "datasets/list.html",
        datasets=service.page(ctx.db, paging, conditions),
        conditions=conditions,
        states=STATES,
    )


@router.get("/datasets/new", dependencies=[TrainScope])
def new_dataset(request: Request) -> Response:
    """Show the form to upload a data set."""
    return page(request, "datasets/new.html", fields=upload_fields(), **_file_field())


@router.get("/datasets/{dataset_id}", dependencies=[ReadScope])
def dataset(ctx: Context, request: Request, dataset_id: DatasetId, paging: PageQuery) -> Response:
    """Show the report on a data set: its sizes, warnings and labels, or why it failed."""
    item = service.get(ctx.db, dataset_id)
    labels = service.page_frequent_labels(ctx.db, dataset_id, paging) if item.state == "ready" else None
    chart = None
    if labels is not None and paging.after is None and len(labels.items) > 1:
        chart = label_chart(labels.items[:MAX_LABELS])
    reading = service.reading(ctx.db, dataset_id) if item.uploaded_at is not None else None
    proposed = proposals(reading)
    return page(
        request,
        "datasets/detail.html",
        dataset=item,
        labels=labels,
        chart=chart,
        can_read_again=reading is not None,
        proposals=proposed,
        other_proposals=[way for text, way in proposed.items() if text not in (item.warnings or ())],
        keep_days=ctx.settings.keep_uploads_days,
        **_file_field(),
        next_training=next_training(ctx, item) if has_scope(request, "train") else None,
    )


@router.get("/datasets/{dataset_id}/examples", dependencies=[ReadScope])
async def dataset_examples(
    ctx: Context,
    request: Request,
    dataset_id: DatasetId,
    paging: PageQuery,
    words: Annotated[str, Query(max_length=500)] = "",
    label: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Show the examples that contain some text and have a label."""
    search = examples.ExampleSearch(words=words.strip(), label=label.strip())
    limited = Page(min(paging.limit, EXAMPLES_ON_A_PAGE), paging.after)

    def read() -> Response:
        return page(
            request,
            "datasets/examples.html",
            dataset=service.get(ctx.db, dataset_id),
            search=search,
            found=(found := examples.search(ctx, dataset_id, search, limited)),
            shown=[_show(item) for item in found.items],
        )

    return await STORAGE.run(read)


@dataclass(frozen=True)
class ShownExample:
    """An example as the page shows it.

    Attributes:
        item: the example.
        title: the subject of an e-mail; empty for other documents.
        sender: the sender of an e-mail; empty for other documents.
        text: the document as text; for an e-mail, what its author wrote.
        quoted: text that an e-mail quotes or forwards.
        attachments: names of the attachments of an e-mail.
        features: the numeric features with the largest absolute values.
        n_features: number of all features.
    """

    item: ExampleItem
    title: str = ""
    sender: str = ""
    text: str = ""
    quoted: str = ""
    attachments: Sequence[str] = ()
    features: Sequence[tuple[str, float]] = ()
    n_features: int = 0


def _show(item: ExampleItem) -> ShownExample:
    if item.features is not None:
        largest = sorted(item.features.items(), key=lambda feature: -abs(feature[1]))[:_MAX_FEATURES]
        return ShownExample(item, features=largest, n_features=len(item.features))
    if item.text is not None:
        return ShownExample(item, text=item.text)
    if item.raw_email is not None:
        mail = read_email(Email(raw=base64.b64decode(item.raw_email)))
    else:
        assert item.email is not None, "an example has a document"  # noqa: S101
        parts = item.email
        attachments = tuple((part.name, part.content_type) for part in parts.attachments)
        mail = read_email(
            Email(
                None, parts.subject, parts.from_, parts.to, parts.text, parts.html, parts.list_id, attachments
            )
        )
    return ShownExample(
        item,
        title=mail.subject or "(no subject)",
        sender=mail.sender_line,
        text=mail.new_text,
        quoted=mail.quoted_text,
        attachments=[name or type_ for name, type_ in mail.attachments],
    )


def _file_field() -> dict[str, Any]:
    """Return what the field of a file needs: the suffixes to offer, and the kinds to refuse."""
    names = [suffix for form in FORMATS.values() for suffix in form.suffixes]
    foreign = [
        {
            "magic": [*kind.magic],
            "names": kind.names,
            "part": kind.part,
            "what": kind.what,
            "hint": kind.hint,
        }
        for kind in FOREIGN_FILES
    ]
    return {"suffixes": ",".join([*names, ".zip", ".gz", ".zst"]), "foreign": foreign}
