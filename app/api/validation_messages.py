"""Words the errors of validation: each names a field of the body and what is wrong with it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter

from app.api.error_places import path_in_body
from app.api.unknown_fields import UnknownFields

_NO_OBJECT: Final = {"dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"}
_SHORTEST: Final = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


class ValidationMessages:
    """Words the errors of bodies of one type where Pydantic's words are about Python or name no remedy."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._unknown_fields = UnknownFields(adapter)

    def word(self, item: dict[str, Any], body: Any) -> dict[str, Any]:
        """Return an error of Pydantic with another message, and if needed with another place.

        Args:
            item: the error, with its context. The location starts with "body".
            body: the body.
        """
        context: dict[str, Any] = item.get("ctx", {})
        kind = item["type"]
        if kind in _NO_OBJECT:
            return {**item, "msg": "Input should be an object"}
        if kind == "extra_forbidden":
            path = path_in_body(item, body) or item["loc"][1:]
            return {**item, "msg": self._unknown_fields.describe(path, body)}
        if kind in _SHORTEST:
            bound, name = _SHORTEST[kind]
            entries = "entry" if context[name] == 1 else "entries"
            return {**item, "msg": f"Input should have {bound} {context[name]:,} {entries}"}
        if kind in ("union_tag_invalid", "union_tag_not_found"):
            return _word_tag(item, context)
        return item


def _word_tag(item: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    # Pydantic quotes the field that tells the branch, and the values that it can have.
    loc = (*item["loc"], context["discriminator"].strip("'"))
    if item["type"] == "union_tag_not_found":
        return {**item, "type": "missing", "loc": loc, "msg": "Field required"}
    return {**item, "loc": loc, "msg": f"Input should be one of {context['expected_tags']}"}
