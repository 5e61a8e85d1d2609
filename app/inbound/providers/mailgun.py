"""Mailgun routes: a form with the raw message, and an HMAC of a timestamp and a token.

Source: "Securing Webhooks" and "Receive, Forward and Store" of Mailgun. The signature does not cover the
message. So each token is valid for one message only, see ``Delivery.single_use``.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from app.inbound.providers.delivery import Delivery, check_age, digest, invalid_signature, not_configured
from app.inbound.providers.forms import read_form, required_field

VARIABLE = "COVEY_INBOUND_MAILGUN_KEYS"


def check_keys(keys: Sequence[str]) -> None:
    """Refuse a request if there is no key, before its body is read.

    Raises:
        NotFound: there is no key.
    """
    if not keys:
        raise not_configured("Mailgun", VARIABLE)


def read(keys: Sequence[str], content_type: str, body: bytes, *, now: float) -> Delivery:
    """Verify a delivery, and return it.

    Args:
        keys: the signature must belong to one of these webhook signing keys.
        content_type: the header ``Content-Type``.
        body: the body.
        now: the time.

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
    check_age(float(timestamp), now)
    message = required_field(form, "body-mime", "the URL of the route must end with /mime")
    return Delivery("mailgun", digest(timestamp + token), message, single_use=True)
