"""Postmark inbound: JSON with the raw message, and HTTP Basic credentials from the URL of the webhook.

Postmark does not sign its requests; see "Inbound webhook" of Postmark. Turn on "Include raw email content in
JSON payload".
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence

from app.api.errors import Unauthorized
from app.inbound.providers.delivery import Delivery, digest, not_configured
from app.inbound.providers.json_fields import read_object, required_text

VARIABLE = "COVEY_INBOUND_POSTMARK_CREDENTIALS"


def check_credentials(credentials: Sequence[str], authorization: str | None) -> None:
    """Refuse a request by its header ``Authorization``, before its body is read.

    Args:
        credentials: the accepted ones, each ``user:password``.
        authorization: the header; None if there is none.

    Raises:
        NotFound: there are no credentials.
        Unauthorized: the request has no credentials, or others. Postmark tries again later.
    """
    if not credentials:
        raise not_configured("Postmark", VARIABLE)
    scheme, _, encoded = (authorization or "").partition(" ")
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


def read(body: bytes) -> Delivery:
    """Return the delivery in a body.

    Raises:
        BadRequest: the body is not JSON.
        Invalid: the body has no raw message.
    """
    fields = read_object(body)
    remedy = 'turn on "Include raw email content in JSON payload"'
    message = required_text(fields, "RawEmail", remedy).encode("utf-8", "replace")
    key = fields.get("MessageID")
    return Delivery(
        "postmark", digest(key.encode("utf-8", "replace")) if isinstance(key, str) else None, message
    )
