"""Reads JSON Lines: each line is a JSON object with one example.

An example is ``{"id"?, "text" | "features": {name: number} | "email": {"subject", "from", "to", "text",
"html"} | "raw_email": base64, "labels": [str], "unknown_labels"?: [str],
"split"?: "train" | "validation" | "test"}``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from pydantic_core import from_json

from models.data.limits import IngestLimits
from models.data.readers.input_file import InputFile
from models.data.readers.lines import decode_utf8, numbered_lines
from models.data.readers.options import FormatOptionsBase
from models.data.record import (
    Items,
    Record,
    RecordError,
    check_name,
    check_number,
    check_split,
    json_pointer,
    json_type,
)
from models.errors import BadRecord
from models.mail.email import Email

FIELDS = ("id", "text", "features", "email", "raw_email", "labels", "unknown_labels", "split")
DOCUMENT_FIELDS = ("text", "features", "email", "raw_email")
EMAIL_FIELDS = {"subject": "subject", "from": "from_", "to": "to", "text": "text", "html": "html"}

_LARGE = 2**1000  # in the range of a double; integers in JSON can be larger
_SPACED_COLON = re.compile(rb'"[ \t\r]+:')
_POSITION = re.compile(r" at line \d+ column (\d+)$")


class JSONLOptions(FormatOptionsBase):
    """JSON Lines has no options."""

    format: Literal["jsonl"]


def read_jsonl(file: InputFile, options: JSONLOptions, limits: IngestLimits) -> Items:  # noqa: ARG001
    """Yield the records of a JSON Lines file. Blank lines are skipped."""
    for item in numbered_lines(file.stream, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, line = item
        if not line or line.isspace():
            continue
        try:
            yield record_from_json(parse_object(line), limits, line=number)
        except RecordError as error:
            yield error.at_line(number)


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object, strictly by RFC 8259: no NaN, unpaired surrogates or repeated keys.

    Raises:
        RecordError: the line is not one JSON object in UTF-8; names the column.
    """
    try:
        value = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        decode_utf8(line)  # if the encoding is the fault, this error names the column
        message = str(error)
        position = _POSITION.search(message)
        reason = _POSITION.sub("", message)
        raise RecordError(f"column {position[1] if position else 1}: not valid JSON: {reason}") from error
    if type(value) is not dict:
        raise RecordError(f"the line must be a JSON object, not {json_type(value)}")
    _reject_repeated_keys(line, value)
    return value


def _reject_repeated_keys(line: bytes, value: dict[str, Any]) -> None:
    """Reject an object with a repeated key, of which parsers silently keep only the last value.

    Every key is followed by a colon, possibly after white space. If a quote and a colon occur only as often
    as keys were parsed, no key was lost, and the slow check is not needed.
    """
    n_keys = len(value) + sum(len(nested) for nested in value.values() if type(nested) is dict)
    if line.count(b'":') == n_keys and not _SPACED_COLON.search(line):
        return

    def reject(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            key = next(key for key, _ in pairs if counts[key] > 1)
            raise RecordError("the key occurs twice in one object; remove one", json_pointer(key))
        return members

    json.loads(line, object_pairs_hook=reject)


def record_from_json(value: Mapping[str, Any], limits: IngestLimits, *, line: int) -> Record:
    """Return the record of an example.

    Args:
        value: the parsed JSON object.
        limits: limits on names.
        line: line number, for reports.

    Raises:
        RecordError: a field is invalid; names it by its JSON pointer.
    """
    for name in value:
        if name not in FIELDS:
            raise RecordError(
                f"unknown field; the fields of an example are {', '.join(FIELDS)}", json_pointer(name)
            )
    documents = [name for name in DOCUMENT_FIELDS if name in value]
    if len(documents) != 1:
        actual = " and ".join(documents) if documents else "none of them"
        raise RecordError(
            f"an example must have exactly one of {', '.join(DOCUMENT_FIELDS)}; this one has {actual}"
        )
    record = Record(line=line, labels=_labels(value, limits))
    if "id" in value:
        record.id = check_name(value["id"], "the id", "/id", limits.name_length)
    if "unknown_labels" in value:
        record.unknown = _label_list(value["unknown_labels"], "unknown_labels", limits)
    if "split" in value:
        record.split = check_split(value["split"], "/split")
    match documents[0]:
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
        raise RecordError("the field labels is missing; use [] for an example without a label", "/labels")
    return _label_list(value["labels"], "labels", limits)


def _label_list(names: object, field: str, limits: IngestLimits) -> list[str]:
    if type(names) is not list:
        raise RecordError(f"{field} must be a list of strings, not {json_type(names)}", f"/{field}")
    return [check_name(name, "a label", f"/{field}/{j}", limits.name_length) for j, name in enumerate(names)]


def _string(value: object, field: str) -> str:
    if type(value) is not str:
        raise RecordError(f"must be a string, not {json_type(value)}", field)
    return value


def _features(value: object, limits: IngestLimits) -> dict[str, float]:
    if type(value) is not dict:
        raise RecordError(
            f"features must be an object that maps names to numbers, not {json_type(value)}", "/features"
        )
    if _pass_fast_check(value, limits):
        return value
    return {
        check_name(name, "a feature name", json_pointer("features", name), limits.name_length): check_number(
            number, "a feature", json_pointer("features", name)
        )
        for name, number in value.items()
    }


def _pass_fast_check(features: dict[str, Any], limits: IngestLimits) -> bool:
    """Return whether all features are valid. Faster than checking them one by one, which names the fault."""
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
                f"unknown field; the fields of an email are {', '.join(EMAIL_FIELDS)}",
                json_pointer("email", name),
            )
    parts = {EMAIL_FIELDS[name]: _string(part, f"/email/{name}") for name, part in value.items()}
    return replace(Email(), **cast("Any", parts))


def _base64(value: object) -> bytes:
    try:
        return base64.b64decode(_string(value, "/raw_email"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"must be base64: {error}", "/raw_email") from error
