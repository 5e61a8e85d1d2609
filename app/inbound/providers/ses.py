"""Amazon SES receiving: messages that SES publishes to a topic of Amazon SNS.

Source: "Contents of notifications for Amazon SES email receiving" of AWS. The receipt rule must have an SNS
action, whose notifications contain the message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import Any

from app.api.request_head import RequestHead
from app.errors import BadRequest, Invalid, NotReady
from app.inbound.providers import sns
from app.inbound.providers.delivery import Delivery, Notice, Provider, VerifyBody, accepted_by, digest
from app.inbound.providers.json_fields import read_object, required_text
from app.inbound.providers.sns import SnsMessage
from app.settings import Settings


def check_head(settings: Settings, head: RequestHead, router: str) -> VerifyBody:
    """Refuse a request if the settings do not allow Amazon SES to deliver.

    Raises:
        NotFound: there is no certificate or no topic.
        NotReady: the certificates cannot be read, or the delivery has no signature because of an option of
            the subscription.
    """
    topics = accepted_by(router, settings.inbound_ses_topics)
    keys = sns.read_certificates(settings.inbound_ses_certificates, topics)
    if (head.get(sns.RAW_DELIVERY_HEADER) or "").lower() == "true":
        raise NotReady(
            "the subscription has raw message delivery, which sends no signature; turn off raw message "
            "delivery of the subscription",
            retry_after=60,
        )
    return lambda body: partial(read, sns.verify(keys, topics, body))


def read(message: SnsMessage) -> Delivery | Notice:
    """Return the delivery in a verified message of SNS, or a notice if it brings no e-mail.

    Raises:
        Invalid: the notification of a received e-mail does not contain it.
    """
    if message.type != sns.NOTIFICATION:
        return Notice(message.subscribe_url if message.type == "SubscriptionConfirmation" else None)
    try:
        notification = read_object(message.message or "")
    except BadRequest:
        return Notice()  # SES publishes a text to test a topic
    if notification.get("notificationType") != "Received":
        return Notice()
    content = required_text(
        notification, "content", "use the SNS action of a receipt rule, not the S3 action"
    )
    return Delivery(
        "ses",
        None if message.message_id is None else digest(message.message_id.encode()),
        _decoded(content) if _encoding(notification) == "BASE64" else content.encode("utf-8", "replace"),
    )


def _encoding(notification: Mapping[str, Any]) -> str | None:
    receipt = notification.get("receipt")
    action = receipt.get("action") if isinstance(receipt, dict) else None
    encoding = action.get("encoding") if isinstance(action, dict) else None
    return encoding.upper() if isinstance(encoding, str) else None


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid("/content is not base64", errors=[("/content", "is not base64")]) from error


# SNS sends JSON as text, unless the subscription sets another type.
PROVIDER = Provider(
    "ses", "ses", frozenset({"text/plain", "application/json"}), check_head, max_bytes=sns.MAX_BODY_BYTES
)
