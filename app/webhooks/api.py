"""HTTP routes of webhooks."""

from __future__ import annotations

from fastapi import Response

from app.api.base_route import AdminScope, Context, resource, response_headers, responses
from app.api.idempotency import IdempotencyHeader
from app.api.paging import PageQuery
from app.api.schemas import DeliveryId, WebhookId
from app.webhooks import service
from app.webhooks.schemas import (
    Delivery,
    DeliveryPage,
    Webhook,
    WebhookCreate,
    WebhookCreated,
    WebhookPage,
    WebhookRotate,
)

router = resource("webhooks")


@router.post(
    "/webhooks",
    status_code=201,
    dependencies=[AdminScope],
    responses={**responses(409), **response_headers(201, "Location")},
    response_description="The webhook with its secret.",
)
def create(
    ctx: Context, idempotency: IdempotencyHeader, body: WebhookCreate, response: Response
) -> WebhookCreated:
    """Create a webhook.

    Covey sends each event from now on to the URL, in a request that is signed as Standard Webhooks defines
    it. Only this response contains the secret of the signatures. An event is sent again until the receiver
    returns a status from 200 to 299, so it can arrive more than once: `webhook-id` identifies it.
    """
    webhook = service.create(ctx, body, idempotency)
    response.headers["Location"] = f"/v1/webhooks/{webhook.id}"
    return webhook


@router.get("/webhooks", dependencies=[AdminScope], response_description="A page of webhooks.")
def list(ctx: Context, page: PageQuery) -> WebhookPage:  # noqa: A001 - the verb of the operation's id
    """List webhooks without their secrets, newest first."""
    return service.page(ctx.db, page)


@router.get(
    "/webhooks/{webhook_id}",
    dependencies=[AdminScope],
    responses=responses(404),
    response_description="The webhook.",
)
def get(ctx: Context, webhook_id: WebhookId) -> Webhook:
    """Get a webhook without its secret."""
    return service.get(ctx.db, webhook_id)


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    dependencies=[AdminScope],
    responses=responses(404),
    response_description="A page of events for the webhook.",
)
def list_deliveries(ctx: Context, webhook_id: WebhookId, page: PageQuery) -> DeliveryPage:
    """List the events for a webhook, newest first, with their outcomes."""
    return service.page_deliveries(ctx.db, webhook_id, page)


@router.post(
    "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
    status_code=202,
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The event, which is sent soon.",
)
def redeliver(ctx: Context, webhook_id: WebhookId, delivery_id: DeliveryId) -> Delivery:
    """Send an event to a webhook again, whether the receiver has accepted it or not.

    The request has the same `webhook-id` as before.
    """
    return service.redeliver(ctx.db, webhook_id, delivery_id)


@router.post(
    "/webhooks/{webhook_id}/test",
    status_code=202,
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The event, which is sent soon.",
)
def test(ctx: Context, webhook_id: WebhookId) -> Delivery:
    """Send the event `webhook.test` to a webhook.

    The list of its deliveries shows the result. If the webhook is disabled and the receiver accepts the
    event, the webhook is enabled again.
    """
    return service.send_test(ctx.db, webhook_id)


@router.post(
    "/webhooks/{webhook_id}/rotate",
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The webhook with its new secret.",
)
def rotate(
    ctx: Context, idempotency: IdempotencyHeader, webhook_id: WebhookId, body: WebhookRotate
) -> WebhookCreated:
    """Replace the secret of a webhook.

    Only this response contains the new secret. For a grace period, requests have two signatures: one with
    each secret. If you repeat the request with the same `Idempotency-Key`, the API returns 409, and the
    secrets do not change.
    """
    return service.rotate(ctx, webhook_id, body, idempotency)


@router.delete(
    "/webhooks/{webhook_id}",
    status_code=204,
    dependencies=[AdminScope],
    responses=responses(404),
    response_description="The webhook is deleted; no content.",
)
def delete(ctx: Context, webhook_id: WebhookId) -> None:
    """Delete a webhook, with its events that were not sent yet."""
    service.delete(ctx.db, webhook_id)
