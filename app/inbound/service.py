"""Route the messages that e-mail providers deliver, each delivery once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import structlog

from app.api.idempotency import Idempotency
from app.context import AppContext
from app.db.session import Database
from app.errors import Conflict, NotReady, ServiceError
from app.inbound.providers.delivery import Delivery, Notice, VerifyBody, digest, invalid_signature
from app.inbound.routed_message import RoutedMessage
from app.inbound.schemas import Receipt
from app.routing.kept_messages import OriginalMessage
from app.routing.message_router import MessageRouter
from app.routing.raw_messages import read_raw
from app.threads import REQUESTS

log = structlog.get_logger()

RETRY_SECONDS = 60
"""After which time a provider should send a message again that has no decision."""


async def receive(
    ctx: AppContext, message_router: MessageRouter, router: str, body: bytes, verify: VerifyBody
) -> Receipt:
    """Verify a delivery and route its message.

    A repetition of a delivery gets the first receipt, also if its message differs. The service stores the
    receipt after the decision, so a process can die in between. Then the repetition is routed again, and gets
    the first decision, because the message is the same.

    Args:
        ctx: the application context.
        message_router: routes the message.
        router: name of the router.
        body: the body of the request.
        verify: verifies the body.

    Raises:
        ServiceError: the provider did not send the body, or has sent its signature with another message.
        NotReady: the message could not be read or routed, whatever the reason. The provider must try again.
    """
    # Both steps take time, so that they run in a thread.
    read = await REQUESTS.run(verify, body)
    with _kept_by_provider(router):
        delivery = await REQUESTS.run(read)
    if isinstance(delivery, Notice):
        if delivery.confirm_url is not None:
            log.warning("inbound.confirm_subscription", router=router, url=delivery.confirm_url)
        return Receipt(confirm_url=delivery.confirm_url)
    once = _idempotency(router, delivery)
    first = await REQUESTS.run(_first_receipt, ctx.db, once, delivery.single_use)
    if first is not None:
        return first
    limit = ctx.settings.max_message_bytes
    message, truncated = delivery.message[:limit], len(delivery.message) > limit
    with _kept_by_provider(router):
        content = await message_router.route(
            router,
            lambda: read_raw(message, truncated),
            n_bytes=len(message),
            original=OriginalMessage("message/rfc822", message, truncated),
        )
        decision = RoutedMessage.from_json(content)
        receipt = Receipt(decision_id=decision.decision_id, disposition=decision.disposition)
        return await REQUESTS.run(partial(once.run, ctx.db, Receipt, lambda _: receipt))


@contextmanager
def _kept_by_provider(router: str) -> Iterator[None]:
    """Turn every error into one after which the provider keeps the message and tries again.

    The reason can be an option of the provider, or a router that does not exist. An
    operator can correct both.
    """
    try:
        yield
    except NotReady:
        raise
    except ServiceError as error:
        log.warning("inbound.not_routed", router=router, reason=error.detail)
        raise NotReady(error.detail, errors=error.errors, retry_after=RETRY_SECONDS) from error


def _idempotency(router: str, delivery: Delivery) -> Idempotency:
    caller = f"inbound/{delivery.provider}"
    if delivery.key is None:
        return Idempotency(caller, None, "")
    if delivery.single_use:
        return Idempotency(caller, delivery.key, digest(router.encode(), delivery.message))
    return Idempotency(caller, f"{router}/{delivery.key}", "")


def _first_receipt(db: Database, once: Idempotency, single_use: bool) -> Receipt | None:
    """Return the receipt of an earlier delivery. A key for one message only is reserved for this one."""
    try:
        first = once.first_response(db, Receipt)
        if first is None and single_use:
            once.reserve(db)
    except Conflict as error:
        raise invalid_signature("this signature was used for another message") from error
    return first
