"""API keys over HTTP."""

from __future__ import annotations

from fastapi import Response

from app.http import AdminScope, Env, headed, resource, responses
from app.idempotency import OnceHeader
from app.keys import service
from app.keys.schemas import ApiKeyCreate, ApiKeyCreated, ApiKeyPage, ApiKeyRotate
from app.paging import PageQuery
from app.schemas import KeyId

router = resource("api_keys")


@router.post(
    "/api-keys",
    status_code=201,
    dependencies=[AdminScope],
    responses={**responses(409), **headed(201, "Location")},
)
def create(env: Env, once: OnceHeader, body: ApiKeyCreate, response: Response) -> ApiKeyCreated:
    """Create a key. Its secret is shown in this answer only; from now on every request needs a key.

    Repeated with its `Idempotency-Key`, the request makes no second key: it is answered with 409, which
    names the first one.
    """
    made = service.create(env.db, body, once)
    response.headers["Location"] = f"/v1/api-keys/{made.id}"
    return made


@router.get("/api-keys", dependencies=[AdminScope])
def list(env: Env, page: PageQuery) -> ApiKeyPage:  # noqa: A001 - the verb of the operation's id
    """List keys, without their secrets."""
    return service.page(env.db, page)


@router.post("/api-keys/{key_id}/rotate", dependencies=[AdminScope], responses=responses(404, 409))
def rotate(env: Env, once: OnceHeader, key_id: KeyId, body: ApiKeyRotate) -> ApiKeyCreated:
    """Give a key a new secret, shown in this answer only. The secret until now opens for a while, too.

    Repeated with its `Idempotency-Key`, the request is answered with 409, and the key keeps its secrets.
    """
    return service.rotate(env.db, key_id, body, once)


@router.delete("/api-keys/{key_id}", status_code=204, dependencies=[AdminScope], responses=responses(404))
def delete(env: Env, key_id: KeyId) -> None:
    """Delete a key; it opens nothing from now on."""
    service.delete(env.db, key_id)
