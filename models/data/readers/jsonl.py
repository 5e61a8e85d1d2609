"""JSON Lines: one example an object, one object a line.

An example is ``{"id"?, "text" | "features": {name: number} | "email": {"subject", "from", "to", "text",
"html"} | "raw_email": base64, "labels": [str], "split"?: "train" | "test"}``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from pydantic_core import from_json

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.lines import decode, numbered_lines
from models.data.readers.options import FormatOptions
from models.data.record import (
    Items,
    Record,
    RecordError,
    check_name,
    check_number,
    check_split,
    json_type,
    pointer,
)
from models.errors import BadRecord
from models.mail.email import Email

FIELDS = ("id", "text", "features", "email", "raw_email", "labels", "split")
DOCUMENT_FIELDS = ("text", "features", "email", "raw_email")
EMAIL_FIELDS = {"subject": "subject", "from": "from_", "to": "to", "text": "text", "html": "html"}

_LARGE = 2**1000  # well within the range of a double, which whole numbers of JSON are not bound by
_SPACED_COLON = re.compile(rb'"[ \t\r]+:')
_PLACE = re.compile(r" at line \d+ column (\d+)$")


class JSONLOptions(FormatOptions):
    """JSON Lines leaves nothing to choose."""

    format: Literal["jsonl"]


def read_jsonl(source: InputFile, options: JSONLOptions, limits: IngestLimits) -> Items:  # noqa: ARG001
    """The records of a JSON Lines file; blank lines are passed over."""
    for item in numbered_lines(source.stream, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        if not line or line.isspace():
            continue
        try:
            yield record_from_json(parse_object(line), limits, line=number)
        except RecordError as error:
            yield error.at(number)


def parse_object(line: bytes) -> dict[str, Any]:
    """A line as a JSON object, strictly by RFC 8259: no NaN, no lone surrogates, no repeated keys.

    Raises:
        RecordError: not one JSON object in UTF-8; names the column.
    """
    try:
        value = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        decode(line)  # tells the character's column where the fault is in the encoding
        message = str(error)
        place = _PLACE.search(message)
        reason = _PLACE.sub("", message)
        raise RecordError(f"column {place[1] if place else 1}: not valid JSON: {reason}") from error
    if type(value) is not dict:
        raise RecordError(f"the line must hold a JSON object, not {json_type(value)}")
    _reject_repeated_keys(line, value)
    return value


def _reject_repeated_keys(line: bytes, value: dict[str, Any]) -> None:
    """Parsers keep the last of several equal keys; whoever wrote the file may have meant another.

    Every pair of the source has a quote followed by a colon, perhaps with white space between. So where
    that sequence occurs no more often than keys were parsed, no key was lost, and the slow way is spared.
    """
    n_keys = len(value) + sum(len(nested) for nested in value.values() if type(nested) is dict)
    if line.count(b'":') == n_keys and not _SPACED_COLON.search(line):
        return

    def refuse(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise RecordError("the key stands twice in one object", pointer(twice))
        return members

    json.loads(line, object_pairs_hook=refuse)


def record_from_json(value: Mapping[str, Any], limits: IngestLimits, *, line: int) -> Record:
    """An example from its JSON object.

    Args:
        value: the decoded object.
        limits: caps on names.
        line: where it stands, for reports.

    Raises:
        RecordError: names the field by its JSON pointer.
    """
    for name in value:
        if name not in FIELDS:
            raise RecordError(f"unknown field; an example has {', '.join(FIELDS)}", pointer(name))
    given = [name for name in DOCUMENT_FIELDS if name in value]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise RecordError(f"an example has exactly one of {', '.join(DOCUMENT_FIELDS)}; this has {found}")
    record = Record(line=line, labels=_labels(value, limits))
    if "id" in value:
        record.id = check_name(value["id"], "the id", "/id", limits.name_length)
    if "split" in value:
        record.split = check_split(value["split"], "/split")
    match given[0]:
        case "text":
            record.text = _string(value["text"], "/text")
        case "features":
            record.features = _features(value["features"], limits)
        case "email":
            record.email = _email(value["email"])
        case _:
            record.email = Email(raw=_base64(value["raw_email"]))
    return record


def _labels(value: Mapping[str, Any], limits: IngestLimits) -> list[str]:
    if "labels" not in value:
        raise RecordError("labels are missing; an example without a label says []", "/labels")
    labels = value["labels"]
    if type(labels) is not list:
        raise RecordError(f"labels must be a list of strings, not {json_type(labels)}", "/labels")
    return [check_name(name, "a label", f"/labels/{j}", limits.name_length) for j, name in enumerate(labels)]


def _string(value: object, field: str) -> str:
    if type(value) is not str:
        raise RecordError(f"must be a string, not {json_type(value)}", field)
    return value


def _features(value: object, limits: IngestLimits) -> dict[str, float]:
    if type(value) is not dict:
        raise RecordError(
            f"features must be an object of numbers by name, not {json_type(value)}", "/features"
        )
    if _are_plain(value, limits):
        return value
    return {
        check_name(name, "a feature name", pointer("features", name), limits.name_length): check_number(
            number, "a feature", pointer("features", name)
        )
        for name, number in value.items()
    }


def _are_plain(features: dict[str, Any], limits: IngestLimits) -> bool:
    """Whether features are in order beyond doubt, told much sooner than by looking at one after another."""
    numbers = features.values()
    return (
        set(map(type, numbers)) <= {float, int}
        and max(numbers, default=0) < _LARGE
        and min(numbers, default=0) > -_LARGE
        and not any(map(math.isnan, numbers))
        and "".join(features).isprintable()
        and not any(map(str.isspace, features))
        and "" not in features
        and max(map(len, features), default=0) <= limits.name_length
    )


def _email(value: object) -> Email:
    if type(value) is not dict:
        raise RecordError(f"email must be an object, not {json_type(value)}", "/email")
    for name in value:
        if name not in EMAIL_FIELDS:
            raise RecordError(
                f"unknown field; an email has {', '.join(EMAIL_FIELDS)}", pointer("email", name)
            )
    parts = {EMAIL_FIELDS[name]: _string(part, f"/email/{name}") for name, part in value.items()}
    return replace(Email(), **cast("Any", parts))


def _base64(value: object) -> bytes:
    try:
        return base64.b64decode(_string(value, "/raw_email"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"not base64: {error}", "/raw_email") from error
