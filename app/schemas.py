"""What the schemas of every resource share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainSerializer, StringConstraints


class Request(BaseModel):
    """Base of what clients send: unknown fields, NaN and infinities are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Answer(BaseModel):
    """Base of what clients receive: fields without a value are left out."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp: TypeAlias = Annotated[datetime, PlainSerializer(_rfc3339, when_used="json")]
"""A moment in UTC, RFC 3339 with milliseconds."""

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""A name of a model, an alias or a router."""

Title: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Description: TypeAlias = Annotated[str, StringConstraints(max_length=10_000)]

JsonObject: TypeAlias = dict[str, Any]
