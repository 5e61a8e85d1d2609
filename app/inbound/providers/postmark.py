"""Postmark inbound: JSON with the raw message, and HTTP Basic credentials from the URL of the webhook.

Postmark does not sign its requests; see "Inbound webhook" of Postmark. Turn on "Include raw email content in
JSON payload".
"""

from __future__ import annotations

import base64
import binascii
import hmac
from functools import partial

from app.api.errors import Unauthorized
from app.api.request_head import RequestHead
from app.inbound.providers.delivery import Delivery, Provider, VerifyBody, accepted_by, digest, not_configured
from app.inbound.providers.json_fields import read_object, required_text
from app.settings import Settings

VARIABLE = "COVEY_INBOUND_POSTMARK_CREDENTIALS"


def check_head(settings: Settings, head: RequestHead, router: str) -> VerifyBody:
    """Refuse a request by its header ``Authorization``.

    Raises:
        NotFound: there are no credentials.
        Unauthorized: the request has no credentials, or others. Postmark tries again later.
    """
    credentials = accepted_by(router, settings.inbound_postmark_credentials)
    if not credentials:
        raise not_configured("Postmark", VARIABLE)
    scheme, _, encoded = (head.get(b"authorization") or "").partition(" ")
    try:
        given = base64.b64decode(encoded.strip(), validate=True) if scheme.lower() == "basic" else b""
    except (binascii.Error, ValueError):
        given = b""
    # All are compared, so that the time does not depend on which one is right.
    if not sum(hmac.compare_digest(one.encode(), given) for one in credentials):
        raise Unauthorized(
            "the user and password of the webhook's URL are missing or wrong; see COVEY_INBOUND_POSTMARK_"
            "CREDENTIALS",
            headers={"WWW-Authenticate": 'Basic realm="covey"'},
        )
    return lambda body: partial(read, body)


def read(body: bytes) -> Delivery:
    """Return the delivery in a body, whose request had the credentials.

    Raises:
        BadRequest: the body is not JSON.
        Invalid: the body has no raw message.
    """
    fields = read_object(body)
    hint = 'turn on "Include raw email content in JSON payload"'
    message = required_text(fields, "RawEmail", hint).encode("utf-8", "replace")
    key = fields.get("MessageID")
    return Delivery(
        "postmark", digest(key.encode("utf-8", "replace")) if isinstance(key, str) else None, message
    )


PROVIDER = Provider("postmark", "postmark", frozenset({"application/json"}), check_head)
