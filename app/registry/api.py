"""HTTP routes of models, versions and aliases."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import FileResponse

from app.api.base_route import (
    Context,
    ReadOrReview,
    ReadScope,
    TrainScope,
    resource,
    response_headers,
    responses,
)
from app.api.downloads import RangeHeader, download, download_responses
from app.api.etags import IfMatch
from app.api.idempotency import IdempotencyHeader, StreamedIdempotencyHeader, key_id_of
from app.api.paging import ListFilter, NameFilter, PageQuery
from app.api.request_head import head_of, refuse_encoding
from app.api.schemas import ModelName, Name
from app.api.uploads import InStorageThread, receive_file
from app.registry import aliases, partial_fits, pivots, promotion, service
from app.registry.partial_fit_schemas import PartialFit
from app.registry.schemas import (
    Alias,
    AliasHistoryPage,
    AliasPage,
    AliasPut,
    AliasRollback,
    Model,
    ModelPage,
    ModelVersion,
    ModelVersionPage,
    PivotPage,
)
from app.serving.dependencies import Loaded
from app.threads import PARTIAL_FITS, STORAGE
from models.artifact.manifest import MAX_NAME_LENGTH

router = resource("models")
Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="Number of the version, from 1.")]
AliasName = Annotated[Name, Path(description="Name of the alias.")]
PREVIOUS = AliasRollback()
"""The body of a rollback that has none."""


@router.get("/models", dependencies=[ReadScope], response_description="A page of models.")
def list(  # noqa: A001 - the verb of the operation's id
    ctx: Context, page: PageQuery, name: NameFilter = ""
) -> ModelPage:
    """List models in order of their names."""
    return service.page_models(ctx.db, page, ListFilter(name))


@router.get(
    "/models/{name}",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="The model.",
)
def get(ctx: Context, name: ModelName) -> Model:
    """Get a model.

    The response has the number of its versions and the version of each alias.
    """
    return service.get_model(ctx.db, name)


@router.delete(
    "/models/{name}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The model is deleted; no content.",
)
def delete(ctx: Context, name: ModelName) -> None:
    """Delete a model with all its versions.

    The request is rejected with 409 while a router or an unfinished job uses the model.
    """
    service.delete_model(ctx, name)


@router.get(
    "/models/{name}/versions",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of versions.",
)
def list_versions(ctx: Context, name: ModelName, page: PageQuery) -> ModelVersionPage:
    """List the versions of a model, newest first."""
    return service.page_versions(ctx.db, name, page)


@router.post(
    "/models/{name}/versions",
    status_code=201,
    dependencies=[TrainScope],
    responses={**responses(409), **response_headers(201, "Location")},
    response_description="The imported version.",
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
    """Import an artifact as the next version of a model.

    Send the bytes of an artifact that was downloaded from this or another service. If the model does not
    exist, it is created. If it has no alias `live`, the alias is set to the imported version.
    """
    refuse_encoding(head_of(request))
    # The artifact is checked in a local file first, so that the storage receives it once, and only if valid.
    async with InStorageThread(ctx.storage.temporary_file(".covey")) as path:
        limit = ctx.settings.max_upload_bytes
        sha256 = await receive_file(path, request.stream(), limit=limit, what="artifact")
        version = await STORAGE.run(service.import_version, ctx, name, path, idempotency.of(sha256))
    response.headers["Location"] = f"/v1/models/{name}/versions/{version.version}"
    return version


@router.get(
    "/models/{name}/versions/{version}",
    dependencies=[ReadOrReview],
    responses=responses(404),
    response_description="The version.",
)
def get_version(ctx: Context, name: ModelName, version: Number) -> ModelVersion:
    """Get a version of a model.

    The response has its labels, parameters, measures and origin.
    """
    return service.get_version(ctx.db, name, version)


@router.delete(
    "/models/{name}/versions/{version}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409),
    response_description="The version is deleted; no content.",
)
def delete_version(ctx: Context, name: ModelName, version: Number) -> None:
    """Delete a version and its artifact.

    The request is rejected with 409 while an alias, a router, or an unfinished evaluation or batch prediction
    uses the version.
    """
    service.delete_version(ctx, name, version)


@router.get(
    "/models/{name}/versions/{version}/artifact",
    dependencies=[ReadScope],
    response_class=FileResponse,
    responses={**responses(404, 416), **download_responses("artifact", "application/octet-stream")},
)
async def download_artifact(
    ctx: Context, name: ModelName, version: Number, range_: RangeHeader = None
) -> FileResponse:
    """Download the artifact of a version.

    The `ETag` is the SHA-256 of the file. To resume an interrupted download, send a `Range`.
    """
    path, artifact = await STORAGE.run(service.artifact_path, ctx, name, version)
    return download(
        path,
        sha256=artifact.sha256,
        size=artifact.size_bytes,
        media_type="application/octet-stream",
        filename=f"{name}-{version}.covey",
        range_=range_,
    )


@router.post(
    "/models/{name}/versions/{version}/partial-fit",
    status_code=201,
    dependencies=[TrainScope],
    responses={**responses(404, 409), **response_headers(201, "Location")},
    response_description="The new version.",
)
async def partial_fit(
    ctx: Context,
    loaded: Loaded,
    idempotency: IdempotencyHeader,
    response: Response,
    name: ModelName,
    version: Number,
    body: PartialFit,
) -> ModelVersion:
    """Make the next version of a model from a version and a batch of examples, such as corrections.

    Only for learners with `can_partial_fit` (`GET /v1/learners`). Features and labels stay as they were
    fitted; the learner makes one pass over the examples. When a twentieth of all examples are new, tuned
    thresholds and probabilities are fitted again, also on the scores of the new examples before they were
    learned; see `decision_report`. The new version has no metrics: evaluate it before you promote it.
    `COVEY_MAX_INSTANCES` limits the number of examples.
    """
    result = await PARTIAL_FITS.run(
        partial(partial_fits.create, ctx, loaded, name, version, body, idempotency)
    )
    response.headers["Location"] = f"/v1/models/{name}/versions/{result.version}"
    return result


@router.get(
    "/models/{name}/versions/{version}/pivots",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of pivots.",
)
def list_pivots(
    ctx: Context,
    loaded: Loaded,
    name: ModelName,
    version: Number,
    page: PageQuery,
    label: Annotated[
        str | None, Query(description="Only the pivots of this label.", max_length=MAX_NAME_LENGTH)
    ] = None,
) -> PivotPage:
    """List the pivots of a version of `mp_boost` or `adaboost_mh` by round and label.

    `adaboost_mh` has one pivot in each round, with two predictions for each label. A label of `mp_boost` that
    stopped learning has no further pivots. If early stopping removed rounds, they are not in the list.
    Versions of other learners have no pivots (404 `no_pivots`).
    """
    return pivots.page_pivots(ctx.db, loaded, name, version, label, page)


@router.get(
    "/models/{name}/aliases",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of aliases.",
)
def list_aliases(ctx: Context, name: ModelName, page: PageQuery) -> AliasPage:
    """List the aliases of a model in order of their names."""
    return aliases.page(ctx.db, name, page)


@router.get(
    "/models/{name}/aliases/{alias}",
    dependencies=[ReadScope],
    responses={**responses(404), **response_headers(200, "ETag")},
    response_description="The alias.",
)
def get_alias(ctx: Context, response: Response, name: ModelName, alias: AliasName) -> Alias:
    """Get an alias. Its `ETag` is for the `If-Match` of a request that changes the alias."""
    return _with_etag(response, aliases.get(ctx.db, name, alias))


@router.put(
    "/models/{name}/aliases/{alias}",
    dependencies=[TrainScope],
    responses={**responses(404, 409, 412), **response_headers(200, "ETag")},
    response_description="The alias.",
)
def put_alias(
    ctx: Context,
    loaded: Loaded,
    request: Request,
    response: Response,
    name: ModelName,
    alias: AliasName,
    body: AliasPut,
    if_match: IfMatch = None,
) -> Alias:
    """Create or move an alias.

    Requests without a version use the alias `live`. To promote a version, set `live` to it. The version is
    loaded and verified first. If its file is missing or damaged, or the storage is slow or unavailable, the
    alias does not change, and the response is 503. A version that takes long continues to load: repeat the
    request.
    """
    result = promotion.promote(ctx.db, loaded, name, alias, body, if_match, key_id_of(request))
    return _with_etag(response, result)


@router.delete(
    "/models/{name}/aliases/{alias}",
    status_code=204,
    dependencies=[TrainScope],
    responses=responses(404, 409, 412),
    response_description="The alias is deleted; no content.",
)
def delete_alias(
    ctx: Context, request: Request, name: ModelName, alias: AliasName, if_match: IfMatch = None
) -> None:
    """Delete an alias.

    The request is rejected with 409 while a router uses the alias. The history of the alias is kept.
    """
    aliases.delete(ctx.db, name, alias, if_match, key_id_of(request))


@router.get(
    "/models/{name}/aliases/{alias}/history",
    dependencies=[ReadScope],
    responses=responses(404),
    response_description="A page of changes.",
)
def list_alias_history(ctx: Context, name: ModelName, alias: AliasName, page: PageQuery) -> AliasHistoryPage:
    """List the changes of an alias, newest first: when, by whom and why, from which version to which.

    The list includes the changes before the alias was deleted. It is deleted with the model.
    """
    return aliases.page_history(ctx.db, name, alias, page)


@router.post(
    "/models/{name}/aliases/{alias}/rollback",
    dependencies=[TrainScope],
    responses={**responses(404, 409, 412), **response_headers(200, "ETag")},
    response_description="The alias.",
)
def roll_back_alias(
    ctx: Context,
    loaded: Loaded,
    request: Request,
    response: Response,
    name: ModelName,
    alias: AliasName,
    body: AliasRollback = PREVIOUS,
    if_match: IfMatch = None,
) -> Alias:
    """Set an alias back to an earlier version.

    Without `to_version`, this is the last version before the current one that still exists; if there is none,
    the response is 409 `nothing_to_roll_back`. Another rollback goes one version further back. The version is
    loaded and verified first, as for `PUT`. If a request may have been sent twice, send `If-Match`, so that
    it goes back only once.
    """
    result = promotion.roll_back(ctx.db, loaded, name, alias, body.to_version, if_match, key_id_of(request))
    return _with_etag(response, result)


def _with_etag(response: Response, alias: Alias) -> Alias:
    response.headers["ETag"] = aliases.etag(alias)
    return alias
