"""What a client may say and will hear about API keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field

from app.http.guards import Scope
from app.http.schemas import NextCursor, RequestModel, ResponseModel, Timestamp, Title


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is not a moment of the years 1 to 9999 in UTC") from error


Moment: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class ApiKeyCreate(RequestModel):
    """A new key."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "mail gateway", "scopes": ["predict"]},
            ]
        }
    )

    name: Title
    """What it is for."""
    scopes: list[Scope] = Field(min_length=1)
    """`read` looks, `predict` predicts and routes, `train` changes data and models, `admin` does all."""
    expires_at: Moment | None = None
    """When it stops opening anything; never by default."""


class ApiKeyRotate(RequestModel):
    """How a key goes from its secret to a new one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_seconds": 86400}]})

    grace_seconds: int = Field(default=86_400, ge=0, le=30 * 86_400)
    """How long the secret until now opens as well, so that it can be replaced everywhere; 0 for a secret that
    others may have seen."""


class ApiKey(ResponseModel):
    """A key, without its secret."""

    id: str
    """Begins with `key_`."""
    name: str
    """What it is for."""
    scopes: list[Scope]
    """What it opens."""
    created_at: Timestamp
    """When it was made."""
    expires_at: Timestamp | None = None
    """When it stops opening anything."""
    last_used_at: Timestamp | None = None
    """When it was last used, to the minute."""
    previous_secret_expires_at: Timestamp | None = None
    """Until when the secret before the last rotation opens as well."""


class ApiKeyCreated(ApiKey):
    """A key with its secret, which is shown this once."""

    secret: str
    """Send it as `Authorization: Bearer <secret>`."""


class ApiKeyPage(ResponseModel):
    """A page of keys."""

    items: list[ApiKey]
    """The page."""
    next_cursor: NextCursor = None
