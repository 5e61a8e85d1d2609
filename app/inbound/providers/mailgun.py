"""Mailgun routes: a form with the raw message, and an HMAC of a timestamp and a token.

Source: "Securing Webhooks" and "Receive, Forward and Store" of Mailgun. The signature does not cover the
message. So each token is valid for one message only, see ``Delivery.single_use``.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Sequence
from functools import partial

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
    not_configured,
)
from app.inbound.providers.forms import FORM_TYPES, Form, find_fields
from app.settings import Settings

VARIABLE = "COVEY_INBOUND_MAILGUN_KEYS"

MAX_FIELD_BYTES = 200
"""Maximum size of the timestamp, the token and the signature. Mailgun sends 10, 50 and 64 bytes."""


def check_head(settings: Settings, head: RequestHead, router: str) -> VerifyBody:
    """Refuse a request if there is no key.

    Raises:
        NotFound: there is no key.
    """
    keys = accepted_by(router, settings.inbound_mailgun_keys)
    if not keys:
        raise not_configured("Mailgun", VARIABLE)
    return partial(verify, keys, head.get(b"content-type") or "", settings.max_message_bytes)


def verify(keys: Sequence[str], content_type: str, max_bytes: int, body: bytes) -> ReadVerified:
    """Verify the signature in a body, before any other field of the form is read.

    Args:
        keys: the signature must belong to one of these webhook signing keys.
        content_type: the header ``Content-Type``.
        max_bytes: maximum size of a message; more of it is not decoded.
        body: the body.

    Raises:
        Forbidden: the signature is wrong or too old.
        BadRequest: the body is not a form.
    """
    form = find_fields(content_type, body)
    timestamp, token, signature = (
        form.get(name, MAX_FIELD_BYTES + 1) for name in ("timestamp", "token", "signature")
    )
    if not timestamp or not token or not signature:
        raise invalid_signature("the form lacks timestamp, token or signature")
    if max(map(len, (timestamp, token, signature))) > MAX_FIELD_BYTES:
        raise invalid_signature(f"timestamp, token or signature is longer than {MAX_FIELD_BYTES} bytes")
    expected = [hmac.digest(key.encode(), timestamp + token, "sha256").hex().encode() for key in keys]
    # Every key is compared, so that the time does not depend on which one is right.
    if not sum(hmac.compare_digest(one, signature.lower()) for one in expected):
        raise invalid_signature("the signature does not belong to this token and this key")
    if not timestamp.isdigit() or len(timestamp) > 15:
        raise invalid_signature("the timestamp of the signature is not a number")
    check_age(float(timestamp), time.time())
    return partial(read, form, digest(timestamp + token), max_bytes)


def read(form: Form, key: str, max_bytes: int) -> Delivery:
    """Return the delivery in a verified form.

    Raises:
        Invalid: the form has no raw message.
    """
    message = form.required("body-mime", max_bytes + 1, "the URL of the route must end with /mime")
    return Delivery("mailgun", key, message, single_use=True)


# Mailgun sends raw messages only to URLs that end with "mime".
PROVIDER = Provider("mailgun", "mailgun/mime", FORM_TYPES, check_head)
