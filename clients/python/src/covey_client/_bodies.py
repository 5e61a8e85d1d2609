"""Bodies of requests, and what else the blocking and the asynchronous client send alike."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from covey_client.generated.models import Alias, Instance
from covey_client.progress import Progress

T_co = TypeVar("T_co", covariant=True)
Body = TypeVar("Body")

Document = str | bytes | Instance | Mapping[str, Any]
"""A document to predict for: a text, a raw e-mail message, or an instance as in the API."""


class Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[T_co]:
        """The items."""

    @property
    def next_cursor(self) -> str | None:
        """Cursor of the next page."""


MAX_LIMIT = 500
"""Size of the pages of lists."""


class _Fields:
    """A body that the caller wrote as in the API. The service checks it, and names what is wrong."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return dict(self._fields)


def body_of(_kind: type[Body], body: Body | Mapping[str, Any]) -> Body:
    return cast("Body", _Fields(json_of(body))) if isinstance(body, Mapping) else body


def json_of(value: Any) -> Any:
    """Return a body as JSON. Its fields can be objects of the generated client."""
    if isinstance(value, Mapping):
        return {name: json_of(field) for name, field in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def instance_of(document: Document) -> dict[str, Any]:
    """Return a document as the API expects it.

    >>> instance_of("Where is my parcel?"), instance_of(b"Subject: Parcel")
    ({'text': 'Where is my parcel?'}, {'raw_email': 'U3ViamVjdDogUGFyY2Vs'})
    """
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, bytes):
        return {"raw_email": base64.b64encode(document).decode()}
    fields: dict[str, Any] = json_of(document)
    return fields


def require_list(items: object, name: str) -> None:
    """Refuse a single item, which Python would take for a list of its characters or fields.

    Raises:
        TypeError: it is no list.
    """
    if isinstance(items, str | bytes | Mapping):
        raise TypeError(f"{name} must be a list, even of one item")


def new_key() -> str:
    return str(uuid.uuid4())


def etag_of(alias: Alias | None) -> str | None:
    return None if alias is None else f'"{alias.revision}"'


def uploading(sent: int, total: int | None) -> Progress:
    return Progress("uploading", sent, total, "bytes")
