"""Convert a JSON Schema to the fields of a form.

The schemas are those of the API's requests, which are made from the parameter classes of the learners. So a
new parameter needs no change here: its control, limits, default and description follow from its schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from markupsafe import Markup, escape

Schema: TypeAlias = Mapping[str, Any]

Control: TypeAlias = Literal[
    "integer", "number", "text", "choice", "boolean", "lines", "json", "object", "union", "constant"
]

_ABSENT: Any = object()
_TYPES: Mapping[type, str] = {str: "string", list: "array", int: "integer", float: "number"}


@dataclass(frozen=True)
class Field:
    """A value of the request, and how a person enters it.

    Attributes:
        name: JSON pointer of the value without the first slash.
        id: unique on the page; fields of several variants can have one name.
        label: what the value is, in words.
        control: how it is entered. ``lines`` is a list of texts, one in each line; a ``constant`` is not.
        help: the description in the schema.
        value: what the field shows; an empty text for a value that is left out.
        default: the default for people; None if there is none.
        required: whether the request needs the value.
        attributes: attributes of the HTML element, such as ``min``.
        choices: the possible values of a ``choice``.
        fields: the fields of an ``object``.
        variants: the variants of a ``union``.
    """

    name: str
    id: str
    label: str
    control: Control
    help: Markup | str = ""
    value: Any = ""
    default: str | None = None
    required: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    choices: Sequence[Any] = ()
    fields: Sequence[Field] = ()
    variants: Sequence[Variant] = ()

    @property
    def part(self) -> str:
        """The last part of the name, as in the request."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class Variant:
    """A possible form of a value.

    Attributes:
        key: distinguishes the variants of one union.
        label: what the user chooses.
        sent: the text that the choice itself sends; empty if only the fields send something.
        help: the description in the schema.
        selected: whether the form shows this variant.
        fields: the fields of the variant.
    """

    key: str
    label: str
    sent: str
    help: Markup
    selected: bool
    fields: Sequence[Field]


class SchemaForm:
    """Make the fields of requests with one schema.

    Args:
        schema: the JSON Schema of an object, with ``$defs``.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._definitions: Mapping[str, Schema] = schema.get("$defs", {})

    def fields(self, names: Sequence[str], values: Mapping[str, Any]) -> list[Field]:
        """Return the fields of some properties.

        Args:
            names: the properties, in the order of the form.
            values: a request, perhaps with only a few properties, that the form shows.
        """
        return self._properties(self._schema, names, "", "f", values)

    def _properties(
        self, schema: Schema, names: Sequence[str], pointer: str, id_: str, values: Mapping[str, Any]
    ) -> list[Field]:
        required = schema.get("required", ())
        return [
            self._field(
                schema["properties"][name],
                f"{pointer}{name}",
                f"{id_}-{name}",
                values.get(name, _ABSENT),
                required=name in required,
            )
            for name in names
        ]

    def _field(self, schema: Schema, name: str, id_: str, value: Any, *, required: bool) -> Field:
        help_ = schema.get("description", "")
        schema = self._resolve(schema)
        default = schema.get("default")
        if value is _ABSENT or value is None:
            value = default
        common: dict[str, Any] = {
            "name": name,
            "id": id_,
            "label": _label(name),
            "help": _text(help_ or schema.get("description", "")),
            "required": required,
        }
        options = self._options(schema)
        is_nullable = any(option.get("type") == "null" for option in options)
        options = [option for option in options if option.get("type") != "null"]
        if {option.get("type") for option in options} == {"integer", "number"}:
            options = [{"type": "number"}]  # a number of documents, or a share
        if len(options) == 1 and not _is_object(options[0]):
            option = options[0]
            if option.get("type") == "boolean" and is_nullable:
                option = {"enum": [True, False]}
            return self._simple(option, common, value, default)
        if len(options) == 1 and not is_nullable:
            return self._object(options[0], common, value)
        return self._union(options, common, value, is_nullable=is_nullable)

    def _simple(self, schema: Schema, common: dict[str, Any], value: Any, default: Any) -> Field:
        if "const" in schema:
            return Field(**common, control="constant", value=schema["const"])
        shown = "" if value is None else value
        common["default"] = None if default is None else _default(default)
        if "enum" in schema:
            return Field(**common, control="choice", value=shown, choices=schema["enum"])
        match schema.get("type"):
            case "integer" | "number" as control:
                return Field(**common, control=control, value=shown, attributes=_limits(schema))
            case "boolean":
                return Field(**common, control="boolean", value=bool(value))
            case "string":
                return Field(**common, control="text", value=shown, attributes=_limits(schema))
            case "array" if self._resolve(schema.get("items", {})).get("type") == "string":
                return Field(**common, control="lines", value="\n".join(value or ()))
            case _:
                text = "" if value is None else json.dumps(value, ensure_ascii=False)
                return Field(**common, control="json", value=text)

    def _object(self, schema: Schema, common: dict[str, Any], value: Any) -> Field:
        values = value if isinstance(value, Mapping) else {}
        fields = self._properties(
            schema, list(schema["properties"]), f"{common['name']}/", common["id"], values
        )
        return Field(**common, control="object", fields=fields)

    def _union(
        self,
        options: Sequence[Schema],
        common: dict[str, Any],
        value: Any,
        *,
        is_nullable: bool,
    ) -> Field:
        discriminator = _discriminator(options)
        chosen = _choose(options, value, discriminator)
        variants = []
        if is_nullable:
            variants.append(Variant("default", "by default", "", Markup(), selected=value is None, fields=()))
        for number, option in enumerate(options):
            if "enum" in option:
                variants += [
                    Variant(str(text), str(text), str(text), Markup(), selected=value == text, fields=())
                    for text in option["enum"]
                ]
                continue
            selected = number == chosen
            fields, key, sent = self._variant(option, common, value if selected else None, discriminator)
            help_ = _text(option.get("description", ""))
            label = sent or key.replace("_", " ")
            variants.append(Variant(key, label, sent, help_, selected=selected, fields=fields))
        name = common["name"] if discriminator is None else f"{common['name']}/{discriminator}"
        return Field(**{**common, "name": name}, control="union", variants=variants)

    def _variant(
        self, option: Schema, common: dict[str, Any], value: Any, discriminator: str | None
    ) -> tuple[list[Field], str, str]:
        """Return the fields of a variant, its key, and what the choice sends."""
        if "const" in option:
            return [], str(option["const"]), str(option["const"])
        name, id_ = common["name"], common["id"]
        if not _is_object(option):
            kind = {"array": "list", "string": "text"}.get(option.get("type", ""), str(option.get("type")))
            inner = {"name": name, "id": f"{id_}-{kind}", "label": _label(name)}
            return [self._simple(option, inner, value, None)], f"a {kind}", ""
        sent = ""
        names = list(option["properties"])
        if discriminator is not None:
            sent = str(option["properties"][discriminator]["const"])
            names.remove(discriminator)
        kind = next((p["const"] for p in option["properties"].values() if "const" in p), "")
        key = sent or (f"{kind} with settings" if kind else names[0] if len(names) == 1 else "with settings")
        values = value if isinstance(value, Mapping) else {}
        return self._properties(option, names, f"{name}/", f"{id_}-{key}", values), key, sent

    def _resolve(self, schema: Schema) -> Schema:
        """Follow references. Properties beside a reference replace those of its definition."""
        while "$ref" in schema:
            definition = self._definitions[schema["$ref"].rpartition("/")[2]]
            schema = {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema

    def _options(self, schema: Schema) -> list[Schema]:
        """Return the alternatives of a schema, without nesting."""
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if alternatives is None:
            return [schema]
        return [option for part in alternatives for option in self._options(self._resolve(part))]


def _discriminator(options: Sequence[Schema]) -> str | None:
    """Return the property that distinguishes all options; None if there is none."""
    if all(map(_is_object, options)):
        for name in options[0]["properties"]:
            if all("const" in option["properties"].get(name, ()) for option in options):
                return str(name)
    return None


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" and "properties" in schema


def _choose(options: Sequence[Schema], value: Any, discriminator: str | None) -> int | None:
    """Return the index of the option that a value has; without a value, None."""
    if value is None:
        return None
    fitting = (number for number, option in enumerate(options) if _fits(option, value, discriminator))
    return next(fitting, None)


def _fits(option: Schema, value: Any, discriminator: str | None) -> bool:
    if isinstance(value, Mapping):
        if discriminator is None:
            return _is_object(option) and set(value) <= set(option["properties"])
        return bool(option["properties"][discriminator]["const"] == value.get(discriminator))
    if "const" in option or "enum" in option:
        return value in option.get("enum", [option.get("const")])
    return option.get("type") == _TYPES.get(type(value))


def _label(name: str) -> str:
    part = name.rpartition("/")[2]
    words = part.replace("_", " ")
    return words[:1].upper() + words[1:]


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False) if value else "none"
    return str(value)


def _limits(schema: Schema) -> dict[str, str]:
    """Return the limits that the browser checks. The API checks the others."""
    names = {"minimum": "min", "maximum": "max", "maxLength": "maxlength", "pattern": "pattern"}
    return {html: str(schema[key]) for key, html in names.items() if key in schema}


def _text(description: str) -> Markup:
    r"""Return the first paragraph of a description as HTML, with code between backticks.

    >>> _text("The `rounds`.\n\nWhy there are rounds.")
    Markup('The <code>rounds</code>.')
    """
    paragraph = " ".join(description.strip().partition("\n\n")[0].split())
    return Markup(re.sub("`+([^`]+)`+", r"<code>\1</code>", str(escape(paragraph))))  # noqa: S704 - escaped above
