"""Reads JSON: one example per line (JSON Lines), one array of examples, or objects over several lines.

An example is ``{"id"?, "text" | "features": {name: number} | "email": {"subject", "from", "to", "text",
"html"} | "raw_email": base64, "labels": [str], "unknown_labels"?: [str], "weight"?: number,
"split"?: "train" | "validation" | "test", "fold"?: number,
"selected_by"?: "sample" | "doubt" | "fallback" | "volunteered"}``.
"""

from __future__ import annotations

from typing import Any

from models.data.limits import IngestLimits
from models.data.readers.annotation_tools import AnnotationTools
from models.data.readers.input_file import InputFile
from models.data.readers.json_fields import FIELD_SET, FieldReader
from models.data.readers.json_options import JSONLOptions
from models.data.readers.json_stream import find_layout, numbered_values
from models.data.readers.json_syntax import parse_json
from models.data.record import Declarations, Items, RecordError, json_pointer, quoted
from models.errors import BadDataError, BadRecord

__all__ = ["JSONLOptions", "read_jsonl"]


def read_jsonl(file: InputFile, options: JSONLOptions, limits: IngestLimits) -> Items:
    """Yield the records of a JSON file. Blank lines are skipped."""
    layout = find_layout(file.peek_start())
    fields = FieldReader(options, limits)
    tools = AnnotationTools(options, limits)
    yield fields.declarations()
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
            if type(value) is dict and value.keys() <= FIELD_SET:
                yield fields.record(value, number)  # as the tools would return it, but faster
                continue
            for example in tools.examples(value):
                yield fields.record(example.value, number, labels=example.labels)
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
    yield fields.final_declarations()


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
