"""Reads the document of an example from the values of its fields: a text, features or an e-mail."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from models.data.limits import IngestLimits
from models.data.record import RecordError, check_name, check_number, json_pointer, json_type
from models.data.values.scalars import parse_numbers
from models.mail.email import Email

EMAIL_FIELDS: Final = {
    "subject": "subject",
    "from": "from_",
    "to": "to",
    "text": "text",
    "html": "html",
    "list_id": "list_id",
}
"""The attribute of ``Email`` for each field of an e-mail with a text."""

_ATTACHMENT_FIELDS: Final = {"name": "name", "content_type": "content_type"}


def parse_text(value: object, field: str) -> str:
    """Return a text; an empty one for a missing value.

    Raises:
        RecordError: the value is no text, or its bytes are not UTF-8.
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    if type(value) is bytes:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise RecordError(f"byte 0x{value[error.start]:02x} is not valid UTF-8", field) from error
    raise RecordError(f"must be a string, not {json_type(value)}", field)


def join_texts(texts: Iterable[str]) -> str:
    r"""Join texts of several fields by a blank line. Texts without content are omitted.

    >>> join_texts(["Invoice", " ", "It is wrong."])
    'Invoice\n\nIt is wrong.'
    """
    return "\n\n".join(text for text in texts if text and not text.isspace())


def parse_features(value: object, field: str, limits: IngestLimits) -> tuple[dict[str, float], int]:
    """Return the features of an object that maps names to numbers, and the number of missing values.

    Args:
        value: the object. A missing value is read as 0.
        field: the column or the JSON pointer that an error names.
        limits: limits on names.

    Raises:
        RecordError: the value is no object, a name is invalid, or a value is no number.

    >>> parse_features({"height": 2, "width": None}, "/features", IngestLimits())
    ({'height': 2.0, 'width': 0.0}, 1)
    """
    if type(value) is not dict:
        raise RecordError(
            f"features must be an object that maps names to numbers, not {json_type(value)}", field
        )
    if _are_features(value, limits):
        return value, 0
    features = {}
    n_missing = 0
    for name, number in value.items():
        place = field + json_pointer(name) if field.startswith("/") else field
        check_name(name, "a feature name", place, limits.name_length)
        n_missing += number is None
        features[name] = 0.0 if number is None else check_number(number, "a feature", place)
    return features, n_missing


def _are_features(features: dict[str, Any], limits: IngestLimits) -> bool:
    """Return whether all features are valid. Faster than checking them one by one, which names the fault."""
    return (
        parse_numbers(features.values()) is not None
        and "".join(features).isprintable()
        and not any(map(str.isspace, features))
        and "" not in features
        and max(map(len, features), default=0) <= limits.name_length
    )


def parse_raw_email(value: object, field: str) -> Email:
    """Return the e-mail of a raw message, which is bytes or a text in base64.

    Raises:
        RecordError: the value is something else, or not valid base64.
    """
    if type(value) is bytes:
        return Email(raw=value)
    try:
        return Email(raw=base64.b64decode(parse_text(value, field), validate=True))
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"must be base64: {error}", field) from error


def parse_email(value: object, field: str) -> Email:
    """Return the e-mail of an object with its parts.

    Raises:
        RecordError: the value is no object, or a part of it is unknown or invalid.

    >>> parse_email({"subject": "Hi", "from": "Ann"}, "/email").parts()
    {'subject': 'Hi', 'from': 'Ann'}
    """
    if type(value) is not dict:
        raise RecordError(f"email must be an object, not {json_type(value)}", field)
    parts = dict(value)
    attachments = _attachments(parts.pop("attachments", None), f"{field}/attachments")
    email = Email(**_strings(parts, EMAIL_FIELDS, "an email", field, "attachments"))
    return replace(email, attachments=attachments) if attachments else email


def _strings(
    value: Mapping[str, Any], attributes: Mapping[str, str], owner: str, field: str, *others: str
) -> dict[str, Any]:
    """Return the strings of an object by attribute.

    Args:
        value: the object.
        attributes: the attribute of each field.
        owner: what has the fields, for the error text.
        field: JSON pointer of the object.
        others: fields that are read elsewhere, for the error text.

    Raises:
        RecordError: a field is unknown, or is no string.
    """
    for name in value:
        if name not in attributes:
            raise RecordError(
                f"unknown field; the fields of {owner} are {', '.join((*attributes, *others))}",
                field + json_pointer(name),
            )
    return {attributes[name]: parse_text(part, f"{field}/{name}") for name, part in value.items()}


def _attachments(value: object, field: str) -> tuple[tuple[str, str], ...]:
    """Return the file name and the content type of each attachment."""
    if value is None:
        return ()
    if type(value) is not list:
        raise RecordError(f"attachments must be a list, not {json_type(value)}", field)
    attachments = []
    for i, item in enumerate(value):
        place = f"{field}/{i}"
        if type(item) is not dict:
            raise RecordError(f"an attachment must be an object, not {json_type(item)}", place)
        parts = _strings(item, _ATTACHMENT_FIELDS, "an attachment", place)
        attachments.append((parts.get("name", ""), parts.get("content_type", "")))
    return tuple(attachments)
