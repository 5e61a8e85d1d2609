"""Checks JSON values of a saved model, which may be forged, before anything stores or returns them."""

from __future__ import annotations

import math
from typing import Any

from models.data.record import json_pointer
from models.errors import ArtifactError

MAX_NESTING = 32
"""Maximum number of nested lists and objects."""

_MAX_INTEGER = 2**63


def check_json(value: Any) -> None:
    """Check that every value can be encoded as JSON in UTF-8, and stored in any database.

    Raises:
        ArtifactError: a string contains an unpaired surrogate or NUL, a number is not finite or does not fit
            in 64 bits, or values are nested too deeply; names the place.
    """
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while pending:
        item, place = pending.pop()
        if len(place) > MAX_NESTING:
            raise _invalid(place, f"is nested more than {MAX_NESTING} times")
        if isinstance(item, dict):
            for key, inner in item.items():
                _check_text(key, place)
                pending.append((inner, (*place, key)))
        elif isinstance(item, list):
            pending.extend((inner, (*place, number)) for number, inner in enumerate(item))
        elif isinstance(item, str):
            _check_text(item, place)
        elif isinstance(item, float) and not math.isfinite(item):
            raise _invalid(place, "is not a finite number")
        elif isinstance(item, int) and not -_MAX_INTEGER <= item < _MAX_INTEGER:
            raise _invalid(place, "does not fit in 64 bits")


def _check_text(text: str, place: tuple[str | int, ...]) -> None:
    if "\0" in text:
        raise _invalid(place, "contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _invalid(place, "contains an unpaired surrogate") from None


def _invalid(place: tuple[str | int, ...], problem: str) -> ArtifactError:
    pointer = json_pointer(*place[:MAX_NESTING])
    return ArtifactError(f"the manifest is invalid at {pointer or 'its root'}: the value {problem}")
