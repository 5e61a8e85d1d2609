"""Request and response schemas of API keys."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from app.api.guards import Scope
from app.api.schemas import NextCursor, RequestModel, ResponseModel, Timestamp, Title, UtcDatetime


class ApiKeyCreate(RequestModel):
    """A new API key."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "mail gateway", "scopes": ["predict"]},
            ]
        }
    )

    name: Title
    """Name of the key for people, such as its purpose."""
    scopes: list[Scope] = Field(min_length=1)
    """Scopes of the key: `read` reads resources, `predict` predicts and routes, `review` reads
    decisions and their kept messages and corrects them, `train` changes data sets, models and routers,
    `admin` allows everything."""
    expires_at: UtcDatetime | None = None
    """Time when the key expires. By default it does not expire."""


class ApiKeyRotate(RequestModel):
    """Options of a rotation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_seconds": 86400}]})

    grace_seconds: int = Field(default=86_400, ge=0, le=30 * 86_400)
    """Seconds for which the old secret keeps working, so that you can replace it everywhere. Set 0 if others
    may know the old secret."""


class ApiKey(ResponseModel):
    """An API key without its secret."""

    id: str
    """Id of the key; starts with `key_`."""
    name: str
    """Name of the key for people."""
    scopes: list[Scope]
    """Scopes of the key, sorted."""
    created_at: Timestamp
    """Time when the key was created."""
    expires_at: Timestamp | None = None
    """Time when the key expires. Absent if it does not expire."""
    last_used_at: Timestamp | None = None
    """Time of the last use, accurate to one minute. Absent if the key was never used."""
    previous_secret_expires_at: Timestamp | None = None
    """Time until which the secret before the last rotation keeps working. Absent if there is none."""


class ApiKeyCreated(ApiKey):
    """An API key with its secret. No other response contains the secret."""

    secret: str
    """The secret. Send it as `Authorization: Bearer <secret>`."""


class ApiKeyPage(ResponseModel):
    """A page of API keys, newest first."""

    items: list[ApiKey]
    """API keys of this page."""
    next_cursor: NextCursor = None
