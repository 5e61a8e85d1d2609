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
    ReadBody,
    check_age,
    digest,
    invalid_signature,
    not_configured,
)
from app.inbound.providers.forms import FORM_TYPES, read_form, required_field
from app.settings import Settings, split

VARIABLE = "COVEY_INBOUND_MAILGUN_KEYS"


def check_head(settings: Settings, head: RequestHead) -> ReadBody:
    """Refuse a request if there is no key.

    Raises:
        NotFound: there is no key.
    """
    keys = split(settings.inbound_mailgun_keys)
    if not keys:
        raise not_configured("Mailgun", VARIABLE)
    return partial(read, keys, head.get(b"content-type") or "")


def read(keys: Sequence[str], content_type: str, body: bytes) -> Delivery:
    """Verify a delivery, and return it.

    Args:
        keys: the signature must belong to one of these webhook signing keys.
        content_type: the header ``Content-Type``.
        body: the body.

    Raises:
        Forbidden: the signature is wrong or too old.
        BadRequest: the body is not a form.
        Invalid: the form has no raw message.
    """
    form = read_form(content_type, body)
    timestamp, token, signature = (form.get(name) for name in ("timestamp", "token", "signature"))
    if not timestamp or not token or not signature:
        raise invalid_signature("the form lacks timestamp, token or signature")
    expected = [hmac.digest(key.encode(), timestamp + token, "sha256").hex().encode() for key in keys]
    # Every key is compared, so that the time does not depend on which one is right.
    if not sum(hmac.compare_digest(one, signature.lower()) for one in expected):
        raise invalid_signature("the signature does not belong to this token and this key")
    if not timestamp.isdigit() or len(timestamp) > 15:
        raise invalid_signature("the timestamp of the signature is not a number")
    check_age(float(timestamp), time.time())
    message = required_field(form, "body-mime", "the URL of the route must end with /mime")
    return Delivery("mailgun", digest(timestamp + token), message, single_use=True)


# Mailgun sends raw messages only to URLs that end with "mime".
PROVIDER = Provider("mailgun", "mailgun/mime", FORM_TYPES, check_head)
