"""SendGrid Inbound Parse: a form with the raw message, signed with ECDSA.

Source: "Getting Started with the Event Webhook Security Features" and "Setting up the Inbound Parse Webhook"
of Twilio SendGrid. The signature covers the timestamp and the bytes of the body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from collections.abc import Sequence
from functools import partial

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.serialization import load_der_public_key

from app.api.request_head import RequestHead
from app.inbound.providers.delivery import (
    Delivery,
    Provider,
    ReadVerified,
    VerifyBody,
    accepted_by,
    check_age,
    digest,
    invalid_signature,
    misconfigured,
    not_configured,
)
from app.inbound.providers.forms import FORM_TYPES, find_fields
from app.settings import Settings

VARIABLE = "COVEY_INBOUND_SENDGRID_KEYS"
SIGNATURE_HEADER = b"x-twilio-email-event-webhook-signature"
TIMESTAMP_HEADER = b"x-twilio-email-event-webhook-timestamp"


def read_keys(texts: Sequence[str]) -> list[ec.EllipticCurvePublicKey]:
    """Return the public keys of a setting: each is DER in base64, as SendGrid shows it.

    Raises:
        NotFound: there is no key.
        NotReady: a text is not such a key.
    """
    if not texts:
        raise not_configured("SendGrid", VARIABLE)
    keys = []
    for text in texts:
        try:
            key = load_der_public_key(base64.b64decode(text, validate=True))
        except (ValueError, UnsupportedAlgorithm) as error:
            raise misconfigured(VARIABLE, "it is not a public key in base64") from error
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise misconfigured(VARIABLE, "it is not a key for ECDSA")
        keys.append(key)
    return keys


def check_head(settings: Settings, head: RequestHead, router: str) -> VerifyBody:
    """Refuse a request by the headers of its signature.

    Raises:
        NotFound: there is no key.
        NotReady: a key cannot be used.
        Forbidden: a header is missing, or the timestamp is too old.
    """
    keys = read_keys(accepted_by(router, settings.inbound_sendgrid_keys))
    signature, timestamp = head.get(SIGNATURE_HEADER), head.get(TIMESTAMP_HEADER)
    if signature is None or timestamp is None:
        raise invalid_signature(
            "the request is not signed; add a security policy with signatures to Inbound Parse"
        )
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 15:
        raise invalid_signature("the timestamp of the signature is not a number")
    check_age(float(timestamp), time.time())
    return partial(
        verify, keys, signature, timestamp, head.get(b"content-type") or "", settings.max_message_bytes
    )


def verify(
    keys: Sequence[ec.EllipticCurvePublicKey],
    signature: str,
    timestamp: str,
    content_type: str,
    max_bytes: int,
    body: bytes,
) -> ReadVerified:
    """Verify the signature of a body.

    Args:
        keys: the signature must belong to one of these keys.
        signature: the signature, DER in base64.
        timestamp: the timestamp as text.
        content_type: the header ``Content-Type``.
        max_bytes: maximum size of a message; more of it is not decoded.
        body: the body.

    Raises:
        Forbidden: the signature is wrong.
    """
    try:
        decoded = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid_signature("the signature is not base64") from error
    signed = hashlib.sha256(timestamp.encode())
    signed.update(body)
    if not any(_is_valid(key, decoded, signed.digest()) for key in keys):
        raise invalid_signature("the signature does not belong to this body and this key")
    return partial(read, content_type, max_bytes, body)


def read(content_type: str, max_bytes: int, body: bytes) -> Delivery:
    """Return the delivery in a verified body.

    Raises:
        BadRequest: the body is not a form.
        Invalid: the form has no raw message.
    """
    hint = 'turn on "POST the raw, full MIME message"'
    message = find_fields(content_type, body).required("email", max_bytes + 1, hint)
    # SendGrid gives its deliveries no id. The bytes of the message are one: a repetition has the same.
    return Delivery("sendgrid", digest(message), message)


def _is_valid(key: ec.EllipticCurvePublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed, ec.ECDSA(Prehashed(hashes.SHA256())))
    except InvalidSignature:
        return False
    return True


PROVIDER = Provider("sendgrid", "sendgrid", FORM_TYPES, check_head)
