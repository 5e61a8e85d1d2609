"""What the schemas of every resource share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeAlias

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints

from app.settings import Settings

MaxItems: TypeAlias = Mapping[str, Callable[[Settings], int]]
"""Fields that are lists or maps, and how many entries they may have under the settings."""


class RequestModel(BaseModel):
    """Base of what clients send: unknown fields, NaN and infinities are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    longest: ClassVar[MaxItems] = {}
    """Looked at before anything is made of the entries."""


class ResponseModel(BaseModel):
    """Base of what clients receive: fields without a value are left out."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp: TypeAlias = Annotated[datetime, PlainSerializer(_rfc3339, when_used="json")]
"""A moment in UTC, RFC 3339 with milliseconds."""

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""A name of a model, an alias or a router."""

DatasetId: TypeAlias = Annotated[str, Path(description="The data set's id.")]
JobId: TypeAlias = Annotated[str, Path(description="The job's id.")]
DecisionId: TypeAlias = Annotated[str, Path(description="The decision's id.")]
KeyId: TypeAlias = Annotated[str, Path(description="The key's id.")]
ModelName: TypeAlias = Annotated[Name, Path(description="The model's name.")]
RouterName: TypeAlias = Annotated[Name, Path(description="The router's name.")]


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL, which not every database can keep")
    return text


WithoutNul = AfterValidator(_without_nul)

Title: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200), WithoutNul]
Description: TypeAlias = Annotated[str, StringConstraints(max_length=10_000), WithoutNul]
Count: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]

NextCursor: TypeAlias = Annotated[
    str | None, Field(description="`cursor` of the next page; left out on the last one.")
]

JsonObject: TypeAlias = dict[str, Any]
