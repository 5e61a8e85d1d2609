"""Read the labeling configuration of a project in Label Studio, which is XML.

Predictions fill a control ``<Choices>``, which belongs to an object, ``<Text>`` or ``<HyperText>``. The
object names the field of the tasks that contains its text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from app.errors import Invalid

MAX_CHARS: Final = 2_000_000
"""Maximum length of a configuration."""

OBJECTS: Final = ("Text", "HyperText")


@dataclass
class _Control:
    """A tag ``Choices``."""

    attributes: Mapping[str, str]
    choices: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class LabelConfig:
    """The place of a project's predictions, and the source of their texts.

    Attributes:
        from_name: name of the control.
        to_name: name of its object.
        several: whether an annotator can select several choices.
        choices: the choices; None if each task has its own.
        field: the field of a task that contains the text.
        is_html: whether the text is HTML.
    """

    from_name: str
    to_name: str
    several: bool
    choices: frozenset[str] | None
    field: str
    is_html: bool

    def selectable(self, labels: Sequence[str]) -> list[str]:
        """Return those labels that are choices."""
        return [label for label in labels if self.choices is None or label in self.choices]


def read_label_config(text: str, labels: Collection[str], pointer: str) -> LabelConfig:
    """Read a labeling configuration.

    If there are several controls, the first one counts that has a choice with the name of a label.

    Args:
        text: the configuration.
        labels: the labels of the version.
        pointer: its place in the request, for errors.

    Raises:
        Invalid: it is not XML, or no control can be used.
    """
    controls, objects = _parse(text, pointer)
    control = next((control for control in controls if _fits(control, labels)), None)
    if control is None:
        raise _invalid(
            pointer,
            "the labeling configuration has no <Choices> with a <Choice> that is a label of the model; its "
            f"labels are {', '.join(sorted(labels)[:20])}" + (", …" if len(labels) > 20 else ""),
        )
    from_name, to_name = control.attributes.get("name", ""), control.attributes.get("toName", "")
    found = objects.get(to_name)
    if found is None:
        tags = " or ".join(f"<{tag}>" for tag in OBJECTS)
        raise _invalid(
            pointer, f"the control {from_name!r} does not belong to {tags} with the name {to_name!r}"
        )
    tag, attributes = found
    value = attributes.get("value", "")
    if not value.startswith("$") or len(value) == 1 or attributes.get("valueType", "text") != "text":
        raise _invalid(
            pointer,
            f'the object {to_name!r} must have the text itself, such as value="$text", and no URL',
        )
    return LabelConfig(
        from_name,
        to_name,
        several=control.attributes.get("choice", "single") == "multiple",
        choices=None if "value" in control.attributes else frozenset(control.choices),
        field=value[1:],
        is_html=tag == "HyperText",
    )


def _fits(control: _Control, labels: Collection[str]) -> bool:
    return "value" in control.attributes or not control.choices.isdisjoint(labels)


def _parse(text: str, pointer: str) -> tuple[list[_Control], dict[str, tuple[str, Mapping[str, str]]]]:
    """Return the controls, and the tag and attributes of each object by its name."""
    if len(text) > MAX_CHARS:
        raise _invalid(pointer, f"has {len(text):,} characters; the limit is {MAX_CHARS:,}")
    controls: list[_Control] = []
    open_controls: list[_Control] = []
    objects: dict[str, tuple[str, Mapping[str, str]]] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Choices":
            controls.append(_Control(attributes))
            open_controls.append(controls[-1])
        elif tag == "Choice" and open_controls:
            # An alias replaces the value in annotations.
            open_controls[-1].choices.add(attributes.get("alias") or attributes.get("value", ""))
        elif tag in OBJECTS:
            objects[attributes.get("name", "")] = (tag, attributes)

    def end(tag: str) -> None:
        if tag == "Choices":
            open_controls.pop()

    def refuse_entity(*_: object) -> None:
        raise ValueError("it declares entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise _invalid(pointer, f"the labeling configuration is not valid XML: {error}") from error
    return controls, objects


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(f"{pointer}: {message}", errors=[(pointer, message)])
