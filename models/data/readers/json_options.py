"""The options of JSON Lines."""

from __future__ import annotations

from typing import Literal

from models.data.readers.options import Name, TableOptions


class JSONLOptions(TableOptions):
    """The fields of the JSON objects, where a column means a field.

    A name that begins with ``/`` is the JSON pointer of a nested field, such as ``/data/text``. By default,
    the fields are those of an example, and an unknown field is an error. If the options name fields, other
    fields are unused.
    """

    format: Literal["jsonl"]
    weight: Name | None = None
    """The field with the weight of an example in a training. By default, the field ``weight`` if the options
    name no field."""
    raw_email: Name | None = None
    """The field with a raw message in base64."""
