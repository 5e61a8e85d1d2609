"""Pages of webhooks: the list with a form, and a webhook with its deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fastapi import Request, Response

from app.api.base_route import AdminScope, Context
from app.api.paging import PageQuery
from app.api.schemas import WebhookId
from app.console.rendering import page
from app.console.route import pages
from app.console.schema_form import SchemaForm
from app.webhooks import service
from app.webhooks.schemas import WebhookCreate

router = pages("/webhooks")

EVENTS: Mapping[str, str] = {
    "decision.review": "A person should review a message",
    "job.ended": "A job has ended",
    "router.drift": "Messages differ from the training",
    "version.promoted": "A version was put live",
    "webhook.test": "Test",
}
"""Words for the events."""


@router.get("", dependencies=[AdminScope])
def webhooks(ctx: Context, request: Request, paging: PageQuery) -> Response:
    """Show the webhooks, newest first, and the form of a new one."""
    return page(
        request,
        "webhooks/list.html",
        webhooks=service.page(ctx.db, paging),
        events=EVENTS,
        fields=_form().fields(["router", "model"], {}),
    )


@router.get("/{webhook_id}", dependencies=[AdminScope])
def webhook(ctx: Context, request: Request, webhook_id: WebhookId, paging: PageQuery) -> Response:
    """Show a webhook and the events for it, newest first."""
    return page(
        request,
        "webhooks/detail.html",
        webhook=service.get(ctx.db, webhook_id),
        deliveries=service.page_deliveries(ctx.db, webhook_id, paging),
        events=EVENTS,
    )


@cache
def _form() -> SchemaForm:
    return SchemaForm(WebhookCreate.model_json_schema())
