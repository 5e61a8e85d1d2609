"""The e-mail providers. To add one, write a module with a ``Provider``, and add it here."""

from __future__ import annotations

from typing import Final

from app.inbound.providers import mailgun, postmark, sendgrid, ses
from app.inbound.providers.delivery import Provider

PROVIDERS: Final[tuple[Provider, ...]] = (
    sendgrid.PROVIDER,
    mailgun.PROVIDER,
    postmark.PROVIDER,
    ses.PROVIDER,
)
