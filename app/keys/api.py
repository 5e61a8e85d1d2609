"""HTTP routes of API keys."""

from __future__ import annotations

from fastapi import Response

from app.api.base_route import AdminScope, Context, resource, response_headers, responses
from app.api.idempotency import IdempotencyHeader
from app.api.paging import PageQuery
from app.api.schemas import KeyId
from app.keys import service
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRotate

router = resource("api_keys")


@router.post(
    "/api-keys",
    status_code=201,
    dependencies=[AdminScope],
    responses={**responses(409), **response_headers(201, "Location")},
    response_description="The API key with its secret.",
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: ApiKeyCreate, response: Response
) -> ApiKeyCreated:
    """Create an API key.

    Only this response contains the secret. As soon as the first key exists, every request requires a key. If
    you repeat the request with the same `Idempotency-Key`, no second key is created: the API returns 409 with
    the id of the first key.
    """
    key = service.create(ctx.db, body, idempotency)
    response.headers["Location"] = f"/v1/api-keys/{key.id}"
    return key


@router.get("/api-keys", dependencies=[AdminScope], response_description="A page of API keys.")
def list(ctx: Context, page: PageQuery) -> ApiKeyPage:  # noqa: A001 - the verb of the operation's id
    """List API keys without their secrets, newest first."""
    return service.page(ctx.db, page)


@router.post(
    "/api-keys/{key_id}/rotate",
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The API key with its new secret.",
)
def rotate(ctx: Context, idempotency: IdempotencyHeader, key_id: KeyId, body: ApiKeyRotate) -> ApiKeyCreated:
    """Replace the secret of an API key.

    Only this response contains the new secret. The old secret keeps working for a grace period. If you repeat
    the request with the same `Idempotency-Key`, the API returns 409, and the secrets do not change.
    """
    return service.rotate(ctx.db, key_id, body, idempotency)


@router.delete(
    "/api-keys/{key_id}",
    status_code=204,
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The API key is deleted; no content.",
)
def delete(ctx: Context, key_id: KeyId) -> None:
    """Delete an API key.

    Requests with the key are rejected from now on. The request is rejected with 409 if the key is the last
    valid one with the scope `admin`.
    """
    service.delete(ctx.db, key_id)
