"""Strict parsing of JSON bodies: whatever is ambiguous is rejected."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fastapi import Request

from app.http.errors import BadRequest, Invalid, Unsupported

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class JsonRequest(Request):
    """A request whose body :func:`parse` parses once."""

    async def json(self) -> Any:
        """Return the body as Python values."""
        if not hasattr(self, "_parsed"):
            self._parsed = parse(await self.body())
        return self._parsed


async def expect_json(request: Request) -> JsonRequest:
    """Parse the body of a request as JSON.

    Raises:
        Unsupported: the body has another media type, or is compressed.
        BadRequest: the body is not JSON.
        Invalid: an object contains a field twice.
    """
    refuse_encoding(request)
    parsed = JsonRequest(request.scope, request.receive)
    if not await parsed.body():
        return parsed  # validation reports the missing body
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    # A missing Content-Type is rejected too: a web page can send such a request without the user's consent.
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Unsupported(
            f"{kind or 'a body without Content-Type'} is not supported here; send application/json"
        )
    await parsed.json()
    return parsed


def refuse_encoding(request: Request) -> None:
    """Reject compressed bodies; only the content of a data set can be compressed.

    Raises:
        Unsupported: the body has a Content-Encoding.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise Unsupported(f"Content-Encoding {encoding} is not supported here; send the body uncompressed")


def parse(body: bytes, *, replace_surrogates: bool = False) -> Any:
    """Parse a JSON text.

    Args:
        body: the text.
        replace_surrogates: whether to replace unpaired surrogates instead of rejecting them. Some programs
            write them for bytes that they cannot decode.

    Raises:
        BadRequest: the text is not JSON, or is nested too deeply.
        Invalid: an object contains a field twice, or a string contains an unpaired surrogate.

    >>> parse(b'{"a": [1, {"b": 2}]}')
    {'a': [1, {'b': 2}]}
    >>> parse(b'{"a": [{"b": 1, "b": 2}]}')
    Traceback (most recent call last):
    app.http.errors.Invalid: /a/0/b occurs twice
    """
    repeated: list[tuple[dict[str, Any], str]] = []

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        given = dict(pairs)
        if len(given) < len(pairs):
            names = Counter(name for name, _ in pairs)
            repeated.append((given, names.most_common(1)[0][0]))
        return given

    try:
        value = json.loads(body, object_pairs_hook=fields)
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise _malformed("it is nested too deeply") from error
    except ValueError as error:  # a number of thousands of digits
        raise _malformed(str(error)) from error
    if repeated:
        place = next(
            f"{pointer}/{escape(name)}"
            for pointer, found in _parts(value)
            for given, name in repeated
            if found is given
        )
        raise Invalid(f"{place} occurs twice", errors=[(place, "occurs twice")])
    if _SURROGATE.search(body):
        if replace_surrogates:
            return _without_surrogates(value)
        for place, part in _parts(value):
            if isinstance(part, str) and _without_surrogates(part) != part:
                message = "contains an unpaired surrogate, which is not a character"
                raise Invalid(f"{place} {message}", errors=[(place, message)])
    return value


def escape(part: Any) -> str:
    """Escape a name or an index for a JSON pointer."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"the body is not JSON: {reason}", errors=[("", reason)])


def _parts(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value inside a value, and every field name, with its JSON pointer."""
    yield pointer, value
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{pointer}/{escape(name)}"
            yield place, name
            yield from _parts(inner, place)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _parts(inner, f"{pointer}/{i}")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(inner) for inner in value]
    return value
