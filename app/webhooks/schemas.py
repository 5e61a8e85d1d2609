"""Request and response schemas of webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from app.api.schemas import Name, NextCursor, OneLine, RequestModel, ResponseModel, Timestamp
from app.db.outbox import Event

DeliveredEvent: TypeAlias = Literal[Event, "webhook.test"]
DeliveryState: TypeAlias = Literal["pending", "delivered", "failed"]


def _receiver(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from error
    if not url.isascii() or " " in url:
        raise ValueError("must consist of printable ASCII characters; encode others")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be a URL with the scheme https or http, and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password; requests are signed instead")
    if parts.fragment or port == 0:
        raise ValueError("must not contain a fragment or the port 0")
    try:
        # What the sender does with the name: it must be valid in a URL and for the resolver.
        httpx.URL(url).host.encode("idna")
        parts.hostname.encode("idna")
    except (ValueError, httpx.InvalidURL) as error:
        raise ValueError(f"has no valid host name: {error}") from error
    return url


class WebhookCreate(RequestModel):
    """A new webhook."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "url": "https://helpdesk.example.org/covey",
                    "events": ["decision.review"],
                    "router": "frontdesk",
                },
            ]
        }
    )

    url: Annotated[str, StringConstraints(min_length=1, max_length=2000), OneLine, AfterValidator(_receiver)]
    """URL of the receiver. Use `https`, so that others cannot read the events."""
    events: list[Event] = Field(min_length=1, max_length=20)
    """Events to send. `decision.review`: a person should review a message, because the router is not sure, or
    the message went to the fallback or belongs to the random sample. `job.ended`: a job has succeeded, failed
    or was cancelled; an experiment counts as one job, when it ends. `router.drift`: the messages of a router
    differ from the training. `version.promoted`: an alias names another version than before."""
    router: Name | None = None
    """Router whose decisions are sent. By default those of all routers. Requires `decision.review`."""
    model: Name | None = None
    """Model whose events are sent. By default those of all models, and of jobs without a model."""


class WebhookRotate(RequestModel):
    """Options of a rotation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_seconds": 86400}]})

    grace_seconds: int = Field(default=86_400, ge=0, le=30 * 86_400)
    """Seconds for which requests are signed with both secrets, so that you can replace the old one in the
    receiver. Set 0 if others may know the old secret."""


class Webhook(ResponseModel):
    """A webhook without its secret."""

    id: str
    """Id of the webhook; starts with `wh_`."""
    url: str
    """URL of the receiver."""
    events: list[Event]
    """Events to send, sorted."""
    router: str | None = None
    """Router whose decisions are sent. Absent for all routers."""
    model: str | None = None
    """Model whose events are sent. Absent for all models."""
    created_at: Timestamp
    """Time when the webhook was created. Earlier events are not sent."""
    previous_secret_expires_at: Timestamp | None = None
    """Time until which requests are also signed with the secret before the last rotation. Absent if there is
    none."""
    last_success_at: Timestamp | None = None
    """Time of the last event that the receiver has accepted. Absent if there is none."""
    failing_since: Timestamp | None = None
    """Time since which every attempt has failed. Absent if the last attempt was successful."""
    disabled_at: Timestamp | None = None
    """Time when the webhook was disabled. It gets no events until a test succeeds. Absent if it is
    enabled."""
    disabled_reason: str | None = None
    """Why the webhook was disabled. Absent if it is enabled."""


class WebhookCreated(Webhook):
    """A webhook with its secret. No other response contains the secret."""

    secret: str
    """The key of the signatures, as Standard Webhooks defines it; starts with `whsec_`."""


class WebhookPage(ResponseModel):
    """A page of webhooks, newest first."""

    items: list[Webhook]
    """Webhooks of this page."""
    next_cursor: NextCursor = None


class Delivery(ResponseModel):
    """One event for a webhook."""

    id: str
    """Id of the event, which the receiver gets as `webhook-id`; starts with `msg_`."""
    event: DeliveredEvent
    """Kind of the event."""
    state: DeliveryState
    """`pending`: an attempt will follow. `delivered`: the receiver has accepted the event. `failed`: no
    further attempt follows."""
    attempts: int
    """Number of attempts."""
    data: dict[str, Any]
    """The event, as the receiver gets it in `data`."""
    created_at: Timestamp
    """Time of the event."""
    due_at: Timestamp | None = None
    """Time of the next attempt. Absent if none follows."""
    last_attempt_at: Timestamp | None = None
    """Time of the last attempt. Absent if there was none."""
    response_status: int | None = None
    """Status of the last response. Absent if there was none."""
    response_body: str | None = None
    """The first 2,000 bytes of the last response, as text. Absent if it was empty."""
    error: str | None = None
    """Why the last attempt has failed. Absent if it has not."""
    finished_at: Timestamp | None = None
    """Time when the state became final. Absent while the event is pending."""


class DeliveryPage(ResponseModel):
    """A page of events for a webhook, newest first."""

    items: list[Delivery]
    """Events of this page."""
    next_cursor: NextCursor = None
