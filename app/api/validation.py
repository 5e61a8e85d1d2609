"""Validate JSON bodies against their schema, strictly and in pieces.

The libraries that parse and validate hold the interpreter until they return, and report every error that they
find. This module passes them at most a few thousand values at a time, so that other requests go on, and stops
at the 50th error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias, get_args, get_origin

from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypeAliasType

from app.api.errors import MAX_ERRORS
from app.api.json_body import parse
from app.api.validation_errors import ErrorMessages
from app.errors import TooLarge
from app.settings import MIB, Settings
from app.threads import REQUESTS

MAX_VALUES: Final = 50_000
"""Values that are validated at once: those of one document, or those of the body without its documents."""

LARGE_BYTES: Final = 64 * 1024
"""A larger body is parsed and validated in a thread, so that other requests continue."""

_PIECE_VALUES: Final = 2_500
"""Values of a list's entries that are usually validated at once."""

_AT_ONCE_BYTES: Final = 2 * MIB
"""Bodies of this size are validated at once if they have at most ``_PIECE_VALUES`` values, such as texts."""

_Entries: TypeAlias = list[Any] | dict[str, Any]

_MAX_DETAILS: Final = 5_000
"""Errors that are described. Describing an error takes several microseconds."""

_CONVERTED: Final = {"bool_type", "int_type", "float_type"}


class BodyValidator:
    """Validate the bodies of one operation.

    Args:
        body_type: the schema. Its attributes are those of ``app.api.schemas.RequestModel``: the fields that
            can have many entries, their maximum numbers of entries, and the fields that contain documents.

    >>> BodyValidator(dict[str, int]).validate({"a": 5.0})
    {'a': 5}
    """

    def __init__(self, body_type: Any) -> None:
        self._adapter = TypeAdapter[Any](body_type)
        self._messages = ErrorMessages(self._adapter)
        self._max_items: Mapping[str, Callable[[Settings], int]] = getattr(body_type, "max_items", {})
        self._documents: frozenset[str] = getattr(body_type, "documents", frozenset())
        names = getattr(body_type, "large_fields", ())
        self._large = {
            name: TypeAdapter[Any](_entries_type(body_type.model_fields[name].annotation)) for name in names
        }

    async def read(self, body: bytes, settings: Settings) -> Any:
        """Parse and validate a body; a large one in a thread.

        Args:
            body: the body; must not be empty.
            settings: limit the number of entries.

        Raises:
            BadRequest: the body is not JSON.
            Invalid: an object contains a field twice, or a string contains characters that are not allowed.
            RequestValidationError: the body is invalid; has at most 50 errors.
            TooLarge: the body has too many values or entries.
        """
        if len(body) > LARGE_BYTES:
            return await REQUESTS.run(self.read_now, body, settings)
        return self.read_now(body, settings)

    def read_now(self, body: bytes, settings: Settings) -> Any:
        """Parse and validate a body in this thread; see ``read``."""
        limits = (limit(settings) for limit in self._max_items.values())
        given = parse(body, documents=self._documents, max_entries=max((MAX_VALUES, *limits)))
        self._check_lengths(given, settings)
        at_once = len(body) <= LARGE_BYTES or (
            len(body) <= _AT_ONCE_BYTES and _count(given, _PIECE_VALUES) <= _PIECE_VALUES
        )
        return self.validate(given, body if at_once else None)

    def validate_large(self, given: Any, settings: Settings) -> Any:
        """Check the numbers of entries of a parsed body, and validate it in pieces; see ``validate``."""
        self._check_lengths(given, settings)
        return self.validate(given)

    def _check_lengths(self, given: Any, settings: Settings) -> None:
        for field, limit in self._max_items.items():
            entries = given.get(field) if isinstance(given, dict) else None
            most = limit(settings)
            if isinstance(entries, list | dict) and len(entries) > most:
                message = f"{field} has {len(entries):,} entries; the limit is {most:,}"
                raise TooLarge(message, errors=[(f"/{field}", message)])

    def validate(self, given: Any, body: bytes | None = None) -> Any:
        """Return the validated value.

        Values are not converted to another type: 0 is not false, "5" is not 5. A whole number can be 5.0.

        Args:
            given: the parsed body.
            body: the unparsed body, if it has few values; None otherwise.

        Raises:
            RequestValidationError: the body is invalid; has at most 50 errors.
            TooLarge: the body has too many values.
        """
        if body is not None:
            return self._validate_at_once(given, body)
        large = {
            name: given[name]
            for name in self._large
            if isinstance(given, dict) and isinstance(given.get(name), list | dict)
        }
        if not large:
            _check_count(given, "")
            return self._validate_at_once(given, None)
        rest = {**given, **dict.fromkeys(large, None)}
        _check_count(rest, "")
        errors = _conversions(
            self._adapter, {**rest, **{name: type(entries)() for name, entries in large.items()}}
        )
        for name, entries in large.items():
            rest[name], of_list = _validate_entries(self._large[name], name, entries)
            errors += of_list
        if not errors:
            value, errors = _convert(self._adapter, rest)  # validated entries are accepted as they are
        if errors:
            raise self._invalid(errors, given)
        return value

    def _validate_at_once(self, given: Any, body: bytes | None) -> Any:
        value, errors = _validate(self._adapter, given, body)
        if errors:
            raise self._invalid(errors, given)
        return value

    def _invalid(self, errors: list[dict[str, Any]], given: Any) -> RequestValidationError:
        worded = [self._messages.word(item, given) for item in errors[:MAX_ERRORS]]
        return RequestValidationError(worded, body=given)


def missing_body() -> RequestValidationError:
    """Return the error for a request without a body."""
    return RequestValidationError(
        [{"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}], body=None
    )


def _entries_type(annotation: Any) -> Any:
    """Return the type of a list or an object that can be optional, without constraints on its length."""
    pending = [annotation]
    while pending:
        part = pending.pop()
        if get_origin(part) in (list, dict):
            return part
        pending += [part.__value__] if isinstance(part, TypeAliasType) else get_args(part)
    raise TypeError(f"{annotation} is neither a list nor an object")


def _validate_entries(
    adapter: TypeAdapter[Any], name: str, entries: _Entries
) -> tuple[_Entries, list[dict[str, Any]]]:
    validated: Any = type(entries)()
    errors: list[dict[str, Any]] = []
    for first, piece in _pieces(name, entries):
        values, faults = _validate(adapter, piece, None)
        for fault in faults[:MAX_ERRORS]:
            _, *inner = fault["loc"]
            if inner and isinstance(entries, list):
                inner[0] += first
            errors.append({**fault, "loc": ("body", name, *inner)})
        if len(errors) >= MAX_ERRORS:
            break
        if not errors:
            validated.update(values) if isinstance(entries, dict) else validated.extend(values)
    return validated, errors


def _pieces(name: str, entries: _Entries) -> Iterator[tuple[int, _Entries]]:
    """Split a list or an object into pieces with few values, each with the index of its first entry."""
    first = n_values = 0
    keys: Any = [*entries] if isinstance(entries, dict) else range(len(entries))
    for i, key in enumerate(keys, start=1):
        n_values += 1 + _check_count(entries[key], f"/{name}/{key}")
        if n_values >= _PIECE_VALUES or i == len(keys):
            piece: Any = (
                {key: entries[key] for key in keys[first:i]}
                if isinstance(entries, dict)
                else entries[first:i]
            )
            yield first, piece
            first, n_values = i, 0


def _check_count(value: Any, pointer: str) -> int:
    """Return the number of values inside a value.

    Raises:
        TooLarge: there are more than ``MAX_VALUES``.
    """
    if (count := _count(value, MAX_VALUES)) > MAX_VALUES:
        message = f"has more than {MAX_VALUES:,} values; send a smaller body"
        raise TooLarge(f"{pointer or 'the body'} {message}", errors=[(pointer, message)])
    return count


def _count(value: Any, limit: int) -> int:
    """Return the number of values inside a value; a number above the limit if there are more."""
    count = 0
    pending = [value]
    while pending and count <= limit:
        container = pending.pop()
        if isinstance(container, dict | list):
            count += len(container)
            pending += container.values() if isinstance(container, dict) else container
    return count


def _validate(adapter: TypeAdapter[Any], value: Any, body: bytes | None) -> tuple[Any, list[dict[str, Any]]]:
    """Return the validated value, and the errors."""
    try:
        return adapter.validate_json(body or json.dumps(value, ensure_ascii=False), strict=True), []
    except ValidationError as error:
        wrong = _conversions_in(error)
    return (None, wrong) if wrong else _convert(adapter, value)


def _conversions(adapter: TypeAdapter[Any], value: Any) -> list[dict[str, Any]]:
    """Return an error for each value that the lax mode would convert to another type."""
    try:
        adapter.validate_json(json.dumps(value, ensure_ascii=False), strict=True)
    except ValidationError as error:
        return _conversions_in(error)
    return []


def _conversions_in(error: ValidationError) -> list[dict[str, Any]]:
    """Return the errors of the strict mode that the lax mode would not report, without numbers like 5.0."""
    return [
        item
        for item in _errors(error)
        if item["type"] in {*_CONVERTED, "value_error"} and not _is_whole(item["input"])
    ]


def _convert(adapter: TypeAdapter[Any], value: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return the value validated in the lax mode, and the errors."""
    try:
        return adapter.validate_python(value), []
    except ValidationError as error:
        return None, _errors(error)


def _errors(error: ValidationError) -> list[dict[str, Any]]:
    count = error.error_count()
    if count > _MAX_DETAILS:
        message = f"has {count:,} invalid values, such as fields that do not exist"
        return [{"type": "value_error", "loc": ("body",), "msg": message, "input": None}]
    details = error.errors(include_url=False)
    return [{**item, "loc": ("body", *item["loc"])} for item in details]


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()
