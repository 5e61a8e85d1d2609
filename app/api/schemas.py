"""Base classes and common types of all schemas."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypeAlias

from fastapi import Path
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
)
from typing_extensions import TypeAliasType

from app.api.json_body import describe
from app.settings import Settings

MaxItems: TypeAlias = Mapping[str, Callable[[Settings], int]]
"""Maximum number of entries by field, as a function of the settings."""


class RequestModel(BaseModel):
    """Base of request bodies: unknown fields, NaN and infinities are rejected."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    max_items: ClassVar[MaxItems] = {}
    """Checked before the entries are validated."""

    large_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that can have many entries. They are validated in pieces."""

    documents: ClassVar[frozenset[str]] = frozenset()
    """Fields that contain documents, whose text can contain control characters; see
    ``app.api.json_body``."""


class ResponseModel(BaseModel):
    """Base of response bodies: fields without a value are left out."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp: TypeAlias = Annotated[datetime, PlainSerializer(_rfc3339, when_used="json")]
"""A time in UTC: RFC 3339 with milliseconds."""


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must be between the years 1 and 9999 in UTC") from error


UtcDatetime: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time in a request."""


def _check_rfc3339(text: Any) -> Any:
    if isinstance(text, str) and not _RFC3339.fullmatch(text):
        raise ValueError(
            "must be a time with a time zone (RFC 3339), such as 2026-01-31T09:00:00Z; "
            "in a URL, write + as %2B"
        )
    return text


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

TimeParameter: TypeAlias = Annotated[UtcDatetime, BeforeValidator(_check_rfc3339)]
"""A time in a query. Without the check, the number of seconds since 1970 would be a time, too."""

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Name: TypeAlias = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""Name of a model, an alias or a router."""

VersionNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
VersionRef = TypeAliasType(
    "VersionRef", Annotated[VersionNumber | Name, Field(description="The number of a version, or an alias.")]
)
"""The number of a version, or the name of an alias."""

DatasetId: TypeAlias = Annotated[str, Path(description="Id of the data set.")]
JobId: TypeAlias = Annotated[str, Path(description="Id of the job.")]
DecisionId: TypeAlias = Annotated[str, Path(description="Id of the decision.")]
WebhookId: TypeAlias = Annotated[str, Path(description="Id of the webhook.")]
DeliveryId: TypeAlias = Annotated[str, Path(description="Id of the event for a webhook.")]
KeyId: TypeAlias = Annotated[str, Path(description="Id of the API key.")]
UserId: TypeAlias = Annotated[str, Path(description="Id of the user.")]
ModelName: TypeAlias = Annotated[Name, Path(description="Name of the model.")]
RouterName: TypeAlias = Annotated[Name, Path(description="Name of the router.")]


def _one_line(text: str) -> str:
    for character in text:
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}:
            raise ValueError(describe(character))
    return text


OneLine = AfterValidator(_one_line)
"""Text without control characters and line breaks."""

Title: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200), OneLine]
Description: TypeAlias = Annotated[str, StringConstraints(max_length=10_000)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]

NextCursor: TypeAlias = Annotated[
    str | None, Field(description="`cursor` of the next page; left out on the last page.")
]

JsonObject: TypeAlias = dict[str, Any]
