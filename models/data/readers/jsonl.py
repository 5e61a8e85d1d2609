"""Reads JSON: one example per line (JSON Lines), one array of examples, or objects over several lines.

An example is ``{"id"?, "text" | "features": {name: number} | "email": {"subject", "from", "to", "text",
"html"} | "raw_email": base64, "labels": [str], "unknown_labels"?: [str], "weight"?: number,
"split"?: "train" | "validation" | "test", "fold"?: number,
"selected_by"?: "sample" | "doubt" | "fallback" | "volunteered"}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from models.data.files.input_file import InputFile
from models.data.limits import IngestLimits
from models.data.options import Name, TableOptions
from models.data.readers.annotation_tools import AnnotationTools
from models.data.record import Declarations, Items, RecordError, json_pointer, quoted
from models.data.record_mapper import EXAMPLE_FIELDS, RecordMapper, ValueSyntax
from models.data.syntax.json_stream import find_layout, numbered_values
from models.data.syntax.json_values import parse_json
from models.errors import BadDataError, BadRecord

_SYNTAX: Final = ValueSyntax("features without a value", "label fields without a value", has_lists=True)
_EXAMPLE_FIELDS: Final = frozenset(EXAMPLE_FIELDS)
_MISSING: Final = object()


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


def read_jsonl(file: InputFile, options: JSONLOptions, limits: IngestLimits) -> Items:
    """Yield the records of a JSON file. Blank lines are skipped."""
    layout = find_layout(file.peek_start())
    mapper = RecordMapper(options, limits, _SYNTAX)
    controls = [options.common_column] if options.common_column is not None else options.own_columns
    names_document = any((options.text, options.email, options.features, options.raw_email))
    tools = AnnotationTools(controls, limits, names_document=names_document)
    yield mapper.declarations
    n_values = 0
    value: Any = None
    for item in numbered_values(file.stream, layout, limits.record_bytes):
        if isinstance(item, BadRecord):
            yield item
            continue
        number, text = item
        if not text or text.isspace():
            continue
        n_values += 1
        try:
            value = parse_json(text, None if layout == "lines" else number)
            if type(value) is dict and value.keys() <= _EXAMPLE_FIELDS:
                # As the tools would return it, but faster.
                yield mapper.record(_with_nested(value, mapper.paths), number)
                continue
            for example in tools.examples(value):
                yield mapper.record(_with_nested(example.value, mapper.paths), number, example.labels)
        except RecordError as error:
            if (
                n_values == 1
                and layout != "array"
                and "unknown field" in error.reason
                and not file.peek_start()
            ):
                _reject_wrapper(value)
            yield error.at_line(number)
    yield Declarations(warnings=tools.warnings())
    yield mapper.final_declarations()


def _with_nested(value: Mapping[str, Any], paths: Mapping[str, Sequence[str]]) -> Mapping[str, Any]:
    """Return an object with fields inside others added by their JSON pointers.

    >>> _with_nested({"meta": {"topic": "a"}}, {"/meta/topic": ["meta", "topic"]})
    {'meta': {'topic': 'a'}, '/meta/topic': 'a'}
    """
    if not paths:
        return value
    row = {name: item for name, item in value.items() if name not in paths}
    for pointer, path in paths.items():
        found = _find(value, path)
        if found is not _MISSING:
            row[pointer] = found
    return row


def _find(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if type(value) is dict:
            value = value.get(key, _MISSING)
        elif type(value) is list and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value


def _reject_wrapper(value: Any) -> None:
    """Explain what to do with an object that contains the list of all examples.

    Raises:
        BadDataError: the object has a list of objects.
    """
    if type(value) is not dict:
        return
    for name, member in value.items():
        if type(member) is list and member and type(member[0]) is dict:
            raise BadDataError(
                f"the file is one object, and the examples are in its list {quoted(name)}; upload only this "
                f"list, for example with jq {quoted(json_pointer(name).replace('/', '.'))}"
            )
