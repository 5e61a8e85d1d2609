"""HTTP routes of data sets."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query, Request, Response

from app.api.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.api.errors import Unsupported
from app.api.idempotency import IdempotencyHeader, key_id_of
from app.api.paging import ListFilter, NameFilter, PageQuery
from app.api.schemas import DatasetId
from app.api.uploads import receive
from app.datasets import creation, service
from app.datasets import examples as example_pages
from app.datasets.schemas import (
    Dataset,
    DatasetCreate,
    DatasetPage,
    DatasetPatch,
    DatasetState,
    ExamplePage,
    LabelPage,
)
from app.threads import REQUESTS, STORAGE

router = resource("datasets")

CONTENT_ENCODINGS = ("gzip", "zstd")


@router.post(
    "/datasets",
    status_code=201,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(201, "Location")},
    response_description="The data set.",
)
async def create(
    ctx: Context, idempotency: IdempotencyHeader, body: DatasetCreate, response: Response
) -> Dataset:
    """Create a data set.

    Upload its content with `PUT /v1/datasets/{dataset_id}/content` afterwards, include its examples in this
    request, or derive it from other data sets.
    """
    pool = REQUESTS if body.examples is None else STORAGE
    dataset = await pool.run(creation.create, ctx, body, idempotency)
    response.headers["Location"] = f"/v1/datasets/{dataset.id}"
    return dataset


@router.get("/datasets", dependencies=[ReadScope], response_description="A page of data sets.")
def list(  # noqa: A001 - the verb of the operation's id
    ctx: Context,
    page: PageQuery,
    name: NameFilter = "",
    state: Annotated[DatasetState | None, Query(description="Only items in this state.")] = None,
) -> DatasetPage:
    """List data sets, newest first."""
    return service.page(ctx.db, page, ListFilter(name, state))


@router.get(
    "/datasets/{dataset_id}",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The data set.",
)
def get(ctx: Context, dataset_id: DatasetId) -> Dataset:
    """Get a data set.

    The response has its state and, if the data set is ready, statistics of its content.
    """
    return service.get(ctx.db, dataset_id)


@router.patch(
    "/datasets/{dataset_id}",
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The changed data set.",
)
def update(ctx: Context, dataset_id: DatasetId, body: DatasetPatch) -> Dataset:
    """Change the name or description of a data set."""
    return service.update(ctx.db, dataset_id, body)


@router.delete(
    "/datasets/{dataset_id}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The data set is deleted; no content.",
)
def delete(ctx: Context, dataset_id: DatasetId) -> None:
    """Delete a data set and its files.

    The request is rejected with 409 while an unfinished job uses the data set.
    """
    service.delete(ctx, dataset_id)


@router.put(
    "/datasets/{dataset_id}/content",
    status_code=202,
    dependencies=[TrainScope],
    responses=responses(404, 409, 413, 415),
    response_description="The data set; a worker reads its content.",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def upload_content(
    ctx: Context,
    request: Request,
    dataset_id: DatasetId,
    content_encoding: Annotated[
        str | None, Header(description="`gzip` or `zstd` if the content is compressed.")
    ] = None,
) -> Dataset:
    """Upload the content of a data set.

    Send the raw bytes in the format of the data set. A worker reads and checks the content afterwards: get
    the data set until its state is `ready` or `failed`. A failed data set accepts other content.
    """
    encoding = (content_encoding or "identity").strip().lower()
    if encoding not in (*CONTENT_ENCODINGS, "identity"):
        raise Unsupported(f"the Content-Encoding {encoding} is not supported; send gzip, zstd or no encoding")
    key_id = key_id_of(request)
    await REQUESTS.run(service.check_accepts_content, ctx, dataset_id, key_id)
    key = service.new_upload_key(dataset_id)
    await receive(
        ctx.storage,
        key,
        request.stream(),
        limit=ctx.settings.max_upload_bytes,
        what="content of the data set",
    )
    return await REQUESTS.run(
        service.attach_content, ctx, dataset_id, key, None if encoding == "identity" else encoding, key_id
    )


@router.get(
    "/datasets/{dataset_id}/examples",
    dependencies=[ReadScope],
    responses=responses(404, 409),
    response_description="A page of examples.",
)
async def list_examples(ctx: Context, dataset_id: DatasetId, page: PageQuery) -> ExamplePage:
    """List the examples of a ready data set in the order of its content."""
    return await STORAGE.run(example_pages.page, ctx, dataset_id, page)


@router.get(
    "/datasets/{dataset_id}/labels",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of labels.",
)
def list_labels(ctx: Context, dataset_id: DatasetId, page: PageQuery) -> LabelPage:
    """List the labels of a data set with their numbers of examples, in label order."""
    return service.page_labels(ctx.db, dataset_id, page)
