"""JSON bodies, read strictly: what could be understood in two ways is refused."""

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
    """A request whose body is parsed once, by :func:`parse`."""

    async def json(self) -> Any:
        """The body as Python values."""
        if not hasattr(self, "_parsed"):
            self._parsed = parse(await self.body())
        return self._parsed


async def expect_json(request: Request) -> JsonRequest:
    """The request, once its body is known to be JSON.

    Raises:
        Unsupported: it says that it is something else, or compressed.
        BadRequest: it is not what it says.
        Invalid: an object in it names a field twice.
    """
    refuse_encoding(request)
    parsed = JsonRequest(request.scope, request.receive)
    if not await parsed.body():
        return parsed  # its absence is told with what is missing
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    # Also without a Content-Type: a page in a browser could send such a request unasked.
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Unsupported(f"{kind or 'a body without Content-Type'} is not read here; send application/json")
    await parsed.json()
    return parsed


def refuse_encoding(request: Request) -> None:
    """Only the content of data sets may come compressed.

    Raises:
        Unsupported: the body has an encoding.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise Unsupported(f"a body with Content-Encoding {encoding} is not read here; send it plain")


def parse(body: bytes, *, mend: bool = False) -> Any:
    """A JSON text as Python values.

    Args:
        body: the text.
        mend: replace halves of surrogate pairs (programs write them for bytes that they could not decode)
            instead of refusing them.

    Raises:
        BadRequest: it is not JSON, or nested beyond what can be read.
        Invalid: an object names a field twice, or a string is no Unicode.

    >>> parse(b'{"a": [1, {"b": 2}]}')
    {'a': [1, {'b': 2}]}
    >>> parse(b'{"a": [{"b": 1, "b": 2}]}')
    Traceback (most recent call last):
    app.http.errors.Invalid: /a/0/b is given twice
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
            f"{pointer}/{escaped(name)}"
            for pointer, found in _parts(value)
            for given, name in repeated
            if found is given
        )
        raise Invalid(f"{place} is given twice", errors=[(place, "is given twice")])
    if _SURROGATE.search(body):
        if mend:
            return _mended(value)
        for place, part in _parts(value):
            if isinstance(part, str) and _mended(part) != part:
                message = "holds half a surrogate pair, which is no character"
                raise Invalid(f"{place} {message}", errors=[(place, message)])
    return value


def escaped(part: Any) -> str:
    """A name or an index as a part of a JSON pointer."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _malformed(reason: str) -> BadRequest:
    return BadRequest(f"the body is not JSON: {reason}", errors=[("", reason)])


def _parts(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside a value, and every name of a field, with its place."""
    yield pointer, value
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{pointer}/{escaped(name)}"
            yield place, name
            yield from _parts(inner, place)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _parts(inner, f"{pointer}/{i}")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_mended(name): _mended(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mended(inner) for inner in value]
    return value
