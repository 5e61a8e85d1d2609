"""HTTP routes that e-mail providers call when they have received a message.

They need no API key: the provider signs its requests, or knows a password. They are not in the OpenAPI
document, because their bodies belong to the providers, and no client of this service sends them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from app.api.base_route import resource
from app.api.direct_routes import Direct, DirectRequest
from app.api.request_head import refuse_encoding
from app.api.schemas import RouterName
from app.api.web_pages import split
from app.errors import TooLarge
from app.inbound import service
from app.inbound.providers import mailgun, postmark, sendgrid, ses, sns
from app.inbound.providers.delivery import Delivery, Notice
from app.inbound.providers.forms import FORM_TYPES
from app.inbound.schemas import Receipt

router = resource("routers")

_FORM: Final[dict[str, Any]] = {"requestBody": {"content": {kind: {} for kind in sorted(FORM_TYPES)}}}
_JSON: Final[dict[str, Any]] = {"requestBody": {"content": {"application/json": {}}}}
_SNS: Final[dict[str, Any]] = {"requestBody": {"content": {"text/plain": {}, "application/json": {}}}}
"""SNS sends JSON as ``text/plain``, unless the subscription sets another type."""


@router.post("/routers/{name}/inbound/sendgrid", include_in_schema=False, openapi_extra=_FORM)
async def receive_sendgrid(request: Direct, name: RouterName) -> Receipt:
    """Route a message that SendGrid Inbound Parse has received."""
    settings = request.context.settings
    keys = sendgrid.read_keys(split(settings.inbound_sendgrid_keys))
    signature = request.head.get(sendgrid.SIGNATURE_HEADER)
    timestamp = request.head.get(sendgrid.TIMESTAMP_HEADER)
    sendgrid.check_head(signature, timestamp, time.time())
    content_type, body = await _read(request)
    return await _receive(
        request, name, lambda: sendgrid.read(keys, signature or "", timestamp or "", content_type, body)
    )


@router.post("/routers/{name}/inbound/mailgun/mime", include_in_schema=False, openapi_extra=_FORM)
async def receive_mailgun(request: Direct, name: RouterName) -> Receipt:
    """Route a message that a route of Mailgun forwards. Mailgun wants a URL that ends with ``mime``."""
    settings = request.context.settings
    keys = split(settings.inbound_mailgun_keys)
    mailgun.check_keys(keys)
    content_type, body = await _read(request)
    return await _receive(
        request,
        name,
        lambda: mailgun.read(keys, content_type, body, now=time.time()),
    )


@router.post("/routers/{name}/inbound/postmark", include_in_schema=False, openapi_extra=_JSON)
async def receive_postmark(request: Direct, name: RouterName) -> Receipt:
    """Route a message that Postmark has received."""
    postmark.check_credentials(
        split(request.context.settings.inbound_postmark_credentials), request.head.get(b"authorization")
    )
    _, body = await _read(request)
    return await _receive(request, name, lambda: postmark.read(body))


@router.post("/routers/{name}/inbound/ses", include_in_schema=False, openapi_extra=_SNS)
async def receive_ses(request: Direct, name: RouterName) -> Receipt:
    """Route a message that Amazon SES has received and published to Amazon SNS."""
    settings = request.context.settings
    topics = split(settings.inbound_ses_topics)
    keys = sns.read_certificates(settings.inbound_ses_certificates, topics)
    _, body = await _read(request, sns.MAX_BODY_BYTES)
    now = time.time()
    return await _receive(request, name, lambda: ses.read(sns.read(keys, topics, body, now=now)))


async def _read(request: DirectRequest, limit: int | None = None) -> tuple[str, bytes]:
    """Return the Content-Type and the body.

    Args:
        request: the request.
        limit: the maximum size of the body in bytes, if it is less than that of the middleware.

    Raises:
        Unsupported: the body is compressed.
        TooLarge: the body is larger than the limit.
    """
    refuse_encoding(request.head)
    content_type = request.head.get(b"content-type") or ""
    if limit is None:
        return content_type, await request.body()
    body, truncated = await request.body_up_to(limit)
    if truncated:
        raise TooLarge(f"the request's body is larger than the limit of {limit:,} bytes")
    return content_type, body


async def _receive(request: DirectRequest, name: str, read: Callable[[], Delivery | Notice]) -> Receipt:
    return await service.receive(request.context, request.state.message_router, name, read)
