"""HTTP routes of models, versions and aliases."""

from __future__ import annotations

import re
from typing import Annotated

from anyio import to_thread
from fastapi import Header, Path, Request, Response
from fastapi.responses import FileResponse

from app.http.base_route import Context, ReadScope, TrainScope, resource, response_headers, responses
from app.http.errors import RangeNotSatisfiable
from app.http.idempotency import StreamedIdempotencyHeader
from app.http.json_body import refuse_encoding
from app.http.paging import PageQuery
from app.http.schemas import ModelName, Name
from app.http.uploads import receive
from app.registry import service
from app.registry.schemas import Alias, AliasPut, Model, ModelPage, ModelVersion, ModelVersionPage

router = resource("models")
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="The version's number.")]
AliasName = Annotated[Name, Path(description="The alias's name.")]


@router.get("/models", dependencies=[ReadScope])
def list(ctx: Context, page: PageQuery) -> ModelPage:  # noqa: A001 - the verb of the operation's id
    """List models, by name."""
    return service.page_models(ctx.db, page)


@router.get("/models/{name}", dependencies=[ReadScope], responses=responses(404))
def get(ctx: Context, name: ModelName) -> Model:
    """Read a model: how many versions it has, and what its aliases name."""
    return service.get_model(ctx.db, name)


@router.delete("/models/{name}", status_code=204, dependencies=[TrainScope], responses=responses(404, 409))
def delete(ctx: Context, name: ModelName) -> None:
    """Delete a model with all its versions. Refused while a router or a job needs it."""
    service.delete_model(ctx, name)


@router.get("/models/{name}/versions", dependencies=[ReadScope], responses=responses(404))
def list_versions(ctx: Context, name: ModelName, page: PageQuery) -> ModelVersionPage:
    """List the versions of a model, the newest first."""
    return service.page_versions(ctx.db, name, page)


@router.post(
    "/models/{name}/versions",
    status_code=201,
    dependencies=[TrainScope],
    responses={**responses(409), **response_headers(201, "Location")},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_version(
    ctx: Context,
    idempotency: StreamedIdempotencyHeader,
    request: Request,
    response: Response,
    name: ModelName,
) -> ModelVersion:
    """Import an artifact, as downloaded from this or another service, as the model's next version."""
    refuse_encoding(request)
    key = service.artifact_key()
    await receive(ctx.storage, key, request.stream(), limit=ctx.settings.max_artifact_bytes, what="artifact")
    made = await to_thread.run_sync(service.import_version, ctx, name, key, idempotency)
    response.headers["Location"] = f"/v1/models/{name}/versions/{made.version}"
    return made


@router.get("/models/{name}/versions/{version}", dependencies=[ReadScope], responses=responses(404))
def get_version(ctx: Context, name: ModelName, version: Number) -> ModelVersion:
    """Read a version: labels, parameters, measures, where it comes from."""
    return service.get_version(ctx.db, name, version)


@router.delete(
    "/models/{name}/versions/{version}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409),
)
def delete_version(ctx: Context, name: ModelName, version: Number) -> None:
    """Delete a version and its artifact. Refused while an alias or a router names it."""
    service.delete_version(ctx, name, version)


@router.get(
    "/models/{name}/versions/{version}/artifact",
    dependencies=[ReadScope],
    response_class=FileResponse,
    responses={
        **responses(404, 416),
        200: {
            "headers": {"ETag": {}},
            "description": "The artifact's bytes.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        206: {
            "description": "The part of the bytes that was asked for.",
            "headers": {"ETag": {}},
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
    },
)
def download_artifact(
    ctx: Context,
    name: ModelName,
    version: Number,
    range_: Annotated[
        str | None, Header(alias="range", description="A part of the file, such as `bytes=1000-`.")
    ] = None,
) -> FileResponse:
    """Download the file that a version is; its SHA-256 is the `ETag`.

    A download that broke off goes on with a `Range`.
    """
    path, shown = service.artifact_path(ctx, name, version)
    if range_ is not None:
        _expect_one_range(range_, shown.artifact.size_bytes)
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=f"{name}-{version}.covey",
        headers={"ETag": f'"{shown.artifact.sha256}"'},
    )


def _expect_one_range(value: str, size: int) -> None:
    found = re.fullmatch(r"bytes=(\d{1,18})-(\d{0,18})", value.strip())
    if found is None or int(found[1]) >= size or (found[2] and int(found[2]) < int(found[1])):
        raise RangeNotSatisfiable(
            f"Range: {value[:100]} is no part of {size} bytes; ask for one, such as bytes=1000-",
            headers={"Content-Range": f"bytes */{size}"},
        )


@router.put(
    "/models/{name}/aliases/{alias}",
    dependencies=[TrainScope],
    responses={**responses(404, 412), **response_headers(200, "ETag")},
)
def put_alias(
    ctx: Context,
    response: Response,
    name: ModelName,
    alias: AliasName,
    body: AliasPut,
    if_match: Annotated[
        str | None, Header(description="The `ETag` that the alias must still have.", max_length=200)
    ] = None,
) -> Alias:
    """Make an alias name a version. `live` is what is served by default: this is how a model is promoted."""
    made = service.put_alias(ctx.db, name, alias, body, if_match)
    response.headers["ETag"] = f'"{made.revision}"'
    return made


@router.delete(
    "/models/{name}/aliases/{alias}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409),
)
def delete_alias(ctx: Context, name: ModelName, alias: AliasName) -> None:
    """Delete an alias. Refused while a router serves by it."""
    service.delete_alias(ctx.db, name, alias)
