"""Amazon SNS: notifications that are signed with RSA.

Source: "Verifying the signatures of Amazon SNS messages" of AWS. The service downloads nothing: neither the
certificate that ``SigningCertURL`` names, nor the page that confirms a subscription. An administrator stores
the certificate in a file. All customers have messages signed by this certificate, so a message must also name
a topic of the administrator.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509 import load_pem_x509_certificates

from app.inbound.providers.delivery import check_age, invalid_signature, misconfigured, not_configured
from app.inbound.providers.json_fields import malformed

RAW_DELIVERY_HEADER = b"x-amz-sns-rawdelivery"

CERTIFICATES_VARIABLE = "COVEY_INBOUND_SES_CERTIFICATES"
TOPICS_VARIABLE = "COVEY_INBOUND_SES_TOPICS"

MAX_BODY_BYTES: Final = 2 * 1024 * 1024
"""SNS sends at most 256 KiB of text, which JSON can make longer. Larger bodies are not read."""

NOTIFICATION: Final = "Notification"
_CONFIRMATION_FIELDS: Final = (
    "Message",
    "MessageId",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
)
SIGNED_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": _CONFIRMATION_FIELDS,
    "UnsubscribeConfirmation": _CONFIRMATION_FIELDS,
}
"""The fields that the signature covers, in their order, by the type of the message."""


class SnsMessage(msgspec.Struct, frozen=True):
    """A message of SNS. Other fields are skipped without being stored, because anybody can send them."""

    type: str | None = msgspec.field(name="Type", default=None)
    message: str | None = msgspec.field(name="Message", default=None)
    message_id: str | None = msgspec.field(name="MessageId", default=None)
    subject: str | None = msgspec.field(name="Subject", default=None)
    subscribe_url: str | None = msgspec.field(name="SubscribeURL", default=None)
    timestamp: str | None = msgspec.field(name="Timestamp", default=None)
    token: str | None = msgspec.field(name="Token", default=None)
    topic_arn: str | None = msgspec.field(name="TopicArn", default=None)
    signature: str | None = msgspec.field(name="Signature", default=None)
    signature_version: str | None = msgspec.field(name="SignatureVersion", default=None)


# SHA-1 is the default of a topic. A collision does not help to forge a message: the id and the time that SNS
# assigns, and the topic, follow the part that others can choose.
_HASHES: Final = {"1": hashes.SHA1(), "2": hashes.SHA256()}  # noqa: S303


def read_certificates(file: Path | None, topics: Sequence[str]) -> list[rsa.RSAPublicKey]:
    """Return the public keys of the certificates in a file.

    Args:
        file: certificates in PEM.
        topics: the topics that the administrator has set.

    Raises:
        NotFound: there is no file or no topic.
        NotReady: the file cannot be read.
    """
    if file is None or not topics:
        raise not_configured("Amazon SES", f"{CERTIFICATES_VARIABLE} and {TOPICS_VARIABLE}")
    try:
        keys = [certificate.public_key() for certificate in load_pem_x509_certificates(file.read_bytes())]
    except (OSError, ValueError) as error:
        raise misconfigured(CERTIFICATES_VARIABLE, error) from error
    return [key for key in keys if isinstance(key, rsa.RSAPublicKey)]


def verify(keys: Sequence[rsa.RSAPublicKey], topics: Sequence[str], body: bytes) -> SnsMessage:
    """Verify a message of SNS, and return it.

    Args:
        keys: the signature must belong to one of these keys.
        topics: the accepted topics.
        body: the body.

    Raises:
        BadRequest: the body is not JSON of SNS.
        Forbidden: the signature is wrong, the topic is another one, or the message is too old.
    """
    try:
        message = msgspec.json.decode(body, type=SnsMessage)
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error
    algorithm = _HASHES.get(message.signature_version or "")
    if message.type not in SIGNED_FIELDS or algorithm is None:
        raise invalid_signature("the type or the version of the signature is unknown")
    try:
        signature = base64.b64decode(message.signature or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid_signature("the signature is not base64") from error
    signed = canonical_text(message)
    if not any(_is_valid(key, signature, signed, algorithm) for key in keys):
        raise invalid_signature(
            "the signature does not belong to this message and the certificates; if AWS has replaced its "
            f"certificate, add the new one to the file of {CERTIFICATES_VARIABLE}"
        )
    if message.topic_arn not in topics:
        raise invalid_signature(f"the message belongs to a topic that {TOPICS_VARIABLE} does not list")
    try:
        signed_at = datetime.fromisoformat(message.timestamp or "").timestamp()
    except (ValueError, OverflowError) as error:
        raise invalid_signature("the timestamp of the message is not a time") from error
    check_age(signed_at, time.time())
    return message


def canonical_text(message: SnsMessage) -> bytes:
    """Return the text that the signature of a message covers."""
    values = {field.encode_name: getattr(message, field.name) for field in msgspec.structs.fields(message)}
    signed = [(name, values[name]) for name in SIGNED_FIELDS[message.type or ""]]
    return "".join([f"{name}\n{value}\n" for name, value in signed if value is not None]).encode()


def _is_valid(
    key: rsa.RSAPublicKey, signature: bytes, signed: bytes, algorithm: hashes.HashAlgorithm
) -> bool:
    try:
        key.verify(signature, signed, padding.PKCS1v15(), algorithm)
    except InvalidSignature:
        return False
    return True
