"""Data sets over HTTP."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread
from fastapi import Header, Request, Response

from app.datasets import examples as example_pages
from app.datasets import service
from app.datasets.schemas import Dataset, DatasetCreate, DatasetPage, DatasetPatch, ExamplePage, LabelPage
from app.http.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.http.errors import Unsupported
from app.http.idempotency import IdempotencyHeader
from app.http.paging import PageQuery
from app.http.schemas import DatasetId
from app.http.uploads import receive

router = resource("datasets")

ENCODINGS = ("gzip", "zstd")


@router.post(
    "/datasets",
    status_code=201,
    dependencies=[TrainScope],
    responses={**responses(409), **response_headers(201, "Location")},
)
def create(ctx: Context, idempotency: IdempotencyHeader, body: DatasetCreate, response: Response) -> Dataset:
    """Create a data set. Its content follows by `PUT …/content`, or stands in the request as `examples`."""
    made = service.create(ctx, body, idempotency)
    response.headers["Location"] = f"/v1/datasets/{made.id}"
    return made


@router.get("/datasets", dependencies=[ReadScope])
def list(ctx: Context, page: PageQuery) -> DatasetPage:  # noqa: A001 - the verb of the operation's id
    """List data sets, the newest first."""
    return service.page(ctx.db, page)


@router.get("/datasets/{dataset_id}", dependencies=[ReadScope], responses=responses(404))
def get(ctx: Context, dataset_id: DatasetId) -> Dataset:
    """Read a data set: its state, and once it is ready what is in it."""
    return service.get(ctx.db, dataset_id)


@router.patch("/datasets/{dataset_id}", dependencies=[TrainScope], responses=responses(404))
def update(ctx: Context, dataset_id: DatasetId, body: DatasetPatch) -> Dataset:
    """Change a data set's name or description."""
    return service.patch(ctx.db, dataset_id, body)


@router.delete(
    "/datasets/{dataset_id}", status_code=204, dependencies=[TrainScope], responses=responses(404, 409)
)
def delete(ctx: Context, dataset_id: DatasetId) -> None:
    """Delete a data set and its files. Refused while a job needs it."""
    service.delete(ctx, dataset_id)


@router.put(
    "/datasets/{dataset_id}/content",
    status_code=202,
    dependencies=[TrainScope],
    responses=responses(404, 409, 413, 415),
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
        str | None, Header(description="`gzip` or `zstd`, where the content is compressed.")
    ] = None,
) -> Dataset:
    """Upload a data set's content as raw bytes, in the format the data set was created with.

    The bytes go to storage as they arrive; a worker reads and checks them afterwards.
    """
    encoding = (content_encoding or "identity").strip().lower()
    if encoding not in (*ENCODINGS, "identity"):
        raise Unsupported(f"Content-Encoding {encoding} is not read here; send gzip, zstd or none")
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        raise Unsupported("a form is not read here; send the content itself as the body")
    await to_thread.run_sync(service.expect_content, ctx.db, dataset_id)
    key = service.upload_key(dataset_id)
    await receive(
        ctx.storage,
        key,
        request.stream(),
        limit=ctx.settings.max_upload_bytes,
        what="content of the data set",
    )
    return await to_thread.run_sync(
        service.attach_content, ctx, dataset_id, key, None if encoding == "identity" else encoding
    )


@router.get("/datasets/{dataset_id}/examples", dependencies=[ReadScope], responses=responses(404, 409))
def list_examples(ctx: Context, dataset_id: DatasetId, page: PageQuery) -> ExamplePage:
    """List the examples of a ready data set, in their order."""
    return example_pages.page(ctx, dataset_id, page)


@router.get("/datasets/{dataset_id}/labels", dependencies=[ReadScope], responses=responses(404))
def list_labels(ctx: Context, dataset_id: DatasetId, page: PageQuery) -> LabelPage:
    """List the labels of a data set with their counts, in label order."""
    return service.labels(ctx.db, dataset_id, page)
