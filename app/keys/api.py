"""API keys over HTTP."""

from __future__ import annotations

from fastapi import Response

from app.http.base_route import AdminScope, Context, resource, response_headers, responses
from app.http.idempotency import IdempotencyHeader
from app.http.paging import PageQuery
from app.http.schemas import KeyId
from app.keys import service
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRotate

router = resource("api_keys")


@router.post(
    "/api-keys",
    status_code=201,
    dependencies=[AdminScope],
    responses={**responses(409), **response_headers(201, "Location")},
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: ApiKeyCreate, response: Response
) -> ApiKeyCreated:
    """Create a key. Its secret is shown in this answer only; from now on every request needs a key.

    Repeated with its `Idempotency-Key`, the request makes no second key: it is answered with 409, which
    names the first one.
    """
    made = service.create(ctx.db, body, idempotency)
    response.headers["Location"] = f"/v1/api-keys/{made.id}"
    return made


@router.get("/api-keys", dependencies=[AdminScope])
def list(ctx: Context, page: PageQuery) -> ApiKeyPage:  # noqa: A001 - the verb of the operation's id
    """List keys, without their secrets."""
    return service.page(ctx.db, page)


@router.post("/api-keys/{key_id}/rotate", dependencies=[AdminScope], responses=responses(404, 409))
def rotate(ctx: Context, idempotency: IdempotencyHeader, key_id: KeyId, body: ApiKeyRotate) -> ApiKeyCreated:
    """Give a key a new secret, shown in this answer only. The secret until now opens for a while, too.

    Repeated with its `Idempotency-Key`, the request is answered with 409, and the key keeps its secrets.
    """
    return service.rotate(ctx.db, key_id, body, idempotency)


@router.delete("/api-keys/{key_id}", status_code=204, dependencies=[AdminScope], responses=responses(404))
def delete(ctx: Context, key_id: KeyId) -> None:
    """Delete a key; it opens nothing from now on."""
    service.delete(ctx.db, key_id)
