"""Amazon SES receiving: messages that SES publishes to a topic of Amazon SNS.

Source: "Contents of notifications for Amazon SES email receiving" of AWS. The receipt rule must have an SNS
action, whose notifications contain the message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from app.api.request_head import RequestHead
from app.errors import BadRequest, Invalid
from app.inbound.providers import sns
from app.inbound.providers.delivery import Delivery, Notice, Provider, ReadBody, digest
from app.inbound.providers.json_fields import read_object, required_text
from app.settings import Settings, split


def check_head(settings: Settings, _: RequestHead) -> ReadBody:
    """Refuse a request if the settings do not allow Amazon SES to deliver.

    Raises:
        NotFound: there is no certificate or no topic.
        NotReady: the certificates cannot be read.
    """
    topics = split(settings.inbound_ses_topics)
    keys = sns.read_certificates(settings.inbound_ses_certificates, topics)
    return lambda body: read(sns.read(keys, topics, body))


def read(fields: Mapping[str, Any]) -> Delivery | Notice:
    """Return the delivery in a verified message of SNS, or a notice if it brings no message.

    Raises:
        Invalid: the notification of a received message does not contain it.
    """
    if fields["Type"] != sns.NOTIFICATION:
        return Notice(_text(fields, "SubscribeURL") if fields["Type"] == "SubscriptionConfirmation" else None)
    try:
        notification = read_object(_text(fields, "Message") or "")
    except BadRequest:
        return Notice()  # SES publishes a text to test a topic
    if notification.get("notificationType") != "Received":
        return Notice()
    content = required_text(
        notification, "content", "use the SNS action of a receipt rule, not the S3 action"
    )
    key = _text(fields, "MessageId")
    return Delivery(
        "ses",
        None if key is None else digest(key.encode("utf-8", "replace")),
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


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


# SNS sends JSON as text, unless the subscription sets another type.
PROVIDER = Provider(
    "ses", "ses", frozenset({"text/plain", "application/json"}), check_head, max_bytes=sns.MAX_BODY_BYTES
)
