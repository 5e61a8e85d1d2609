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

from app.api.schemas import NAME_PATTERN
from app.console.words import choice_of, label_of, words_for

Schema: TypeAlias = Mapping[str, Any]

Control: TypeAlias = Literal[
    "integer", "number", "text", "choice", "boolean", "lines", "json", "object", "union", "constant"
]

NAME_LIMITS: Mapping[str, str] = {
    "pattern": NAME_PATTERN.strip("^$").replace("_-", r"_\-"),
    "title": "Letters, digits, - and _; at most 64, and the first one is a letter or digit.",
}
"""The attributes of a field for a name. Browsers read patterns with the flag ``v``, which needs ``\\-``."""

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
    def options(self) -> list[tuple[Any, str]]:
        """The choices, each with its words."""
        return [(choice, choice_of(self.name, choice)) for choice in self.choices]

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
        choices: the possible values of texts, by name, if the schema does not list them.
    """

    def __init__(self, schema: Schema, choices: Mapping[str, Sequence[str]] | None = None) -> None:
        self._schema = schema
        self._choices = choices or {}
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
            "label": label_of(name),
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
            elif "const" in option and is_nullable:
                option = {"enum": [option["const"]]}
            return self._simple(option, common, value, default)
        if len(options) == 1 and not is_nullable:
            return self._object(options[0], common, value)
        return self._union(options, common, value, is_nullable=is_nullable)

    def _simple(self, schema: Schema, common: dict[str, Any], value: Any, default: Any) -> Field:
        if "const" in schema:
            return Field(**common, control="constant", value=schema["const"])
        shown = "" if value is None else value
        common["default"] = None if default is None else _default(common["name"], default)
        choices = self._choices.get(common["name"], schema.get("enum"))
        if choices is not None:
            return Field(**common, control="choice", value=shown, choices=choices)
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
        name = common["name"]
        discriminator = _discriminator(options)
        chosen = _choose(options, value, discriminator)
        variants = []
        if is_nullable:
            variants.append(
                Variant(
                    "default", choice_of(name, "default"), "", Markup(), selected=value is None, fields=()
                )
            )
        for number, option in enumerate(options):
            if "enum" in option:
                variants += [
                    Variant(
                        str(text),
                        choice_of(name, text),
                        str(text),
                        Markup(),
                        selected=value == text,
                        fields=(),
                    )
                    for text in option["enum"]
                ]
                continue
            selected = number == chosen
            fields, key, sent = self._variant(option, common, value if selected else None, discriminator)
            help_ = _text(option.get("description", ""))
            variants.append(Variant(key, choice_of(name, key), sent, help_, selected=selected, fields=fields))
        name = name if discriminator is None else f"{name}/{discriminator}"
        if discriminator == "algorithm":
            common["label"] = label_of(name)
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
            inner = {"name": name, "id": f"{id_}-{kind}", "label": label_of(name)}
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
        """Follow references. Properties next to a reference replace those of its definition."""
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


def _default(name: str, value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False) if value else "none"
    return choice_of(name, value)


def _limits(schema: Schema) -> dict[str, str]:
    """Return the limits that the browser checks. The API checks the others."""
    names = {"minimum": "min", "maximum": "max", "maxLength": "maxlength"}
    limits = {html: str(schema[key]) for key, html in names.items() if key in schema}
    if schema.get("pattern") == NAME_PATTERN:
        limits |= NAME_LIMITS
    return limits


def _text(description: str) -> Markup:
    r"""Return the first paragraph of a description as HTML, with the form's words for names of the API.

    Sentences about operations of the API are left out.

    >>> _text("As `max_df`, or `a+b`. See `GET /v1/learners`.\n\nWhy there are rounds.")
    Markup('As “Maximum number of documents with a word”, or <code>a+b</code>.')
    """
    paragraph = " ".join(description.strip().partition("\n\n")[0].split())
    sentences = re.split(r"(?<=\.) (?=[A-Z`])", paragraph)
    kept = " ".join(sentence for sentence in sentences if "/v1/" not in sentence)
    return Markup(re.sub("`+([^`]+)`+", _code, str(escape(kept))))  # noqa: S704 - escaped above


def _code(match: re.Match[str]) -> str:
    words = words_for(match[1])
    return f"<code>{match[1]}</code>" if words is None else f"“{escape(words)}”"
