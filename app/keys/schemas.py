"""What a client may say and will hear about API keys."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from app.schemas import Answer, Request, Timestamp, Title

Scope: TypeAlias = Literal["read", "predict", "train", "admin"]


class ApiKeyCreate(Request):
    """A new key."""

    name: Title
    scopes: list[Scope] = Field(min_length=1)
    """`read` looks, `predict` predicts and routes, `train` changes data and models, `admin` does all."""
    expires_at: Timestamp | None = None


class ApiKey(Answer):
    """A key, without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: Timestamp
    expires_at: Timestamp | None = None
    last_used_at: Timestamp | None = None


class ApiKeyCreated(ApiKey):
    """A key with its secret, which is shown this once."""

    secret: str
    """Send it as `Authorization: Bearer <secret>`."""


class ApiKeyPage(Answer):
    """A page of keys."""

    items: list[ApiKey]
    next_cursor: str | None = None
