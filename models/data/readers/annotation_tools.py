"""Turns the exports of annotation tools, as JSON, into the fields of an example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from models.data.limits import IngestLimits
from models.data.record import RecordError, json_pointer, json_type, quoted
from models.data.values.labels import ParsedLabels, parse_labels
from models.errors import BadDataError

_ANNOTATIONS: Final = ("annotations", "completions")
_PRODIGY_ANSWERS: Final = frozenset({"accept", "reject", "ignore"})
_PATH_SEPARATOR: Final = "/"


@dataclass(frozen=True)
class Annotated:
    """One example of a tool.

    Attributes:
        value: the object with its fields.
        labels: its labels, if they are not in a field.
    """

    value: Mapping[str, Any]
    labels: ParsedLabels | None = None


class AnnotationTools:
    """Recognizes the objects of Label Studio, Prodigy and spaCy by their fields.

    Args:
        controls: the controls of Label Studio whose choices are labels, or None.
        limits: limits on names.
        names_document: whether the user names the fields of the document.
    """

    def __init__(self, controls: Sequence[str] | None, limits: IngestLimits, *, names_document: bool) -> None:
        self._controls = None if controls is None else frozenset(controls)
        self._names_document = names_document
        self._limits = limits
        self._n_tasks = self._n_unannotated = self._n_disagreeing = self._n_refused = 0
        self._found_controls: dict[str, None] = {}
        self._other_types: dict[str, None] = {}

    def examples(self, value: Any) -> Iterable[Annotated]:
        """Return the examples of a JSON value; none for a task without an answer.

        Raises:
            RecordError: the value is no example.
        """
        if type(value) is list:
            return [Annotated(_from_pair(value))]
        if type(value) is not dict:
            raise RecordError(f"an example must be a JSON object, not {json_type(value)}")
        if type(value.get("data")) is dict and any(type(value.get(name)) is list for name in _ANNOTATIONS):
            return self._from_task(value)
        if type(value.get("paragraphs")) is list:
            return [Annotated(_from_paragraph(part)) for part in value["paragraphs"]]
        if value.get("answer") in _PRODIGY_ANSWERS and ("accept" in value or "_task_hash" in value):
            return self._from_prodigy(value)
        return [Annotated(value)]

    def warnings(self) -> list[str]:
        """Return the warnings that are known only after the last example.

        Raises:
            BadDataError: no annotation has choices, or the option names a control that no annotation has.
        """
        if self._n_tasks and not self._found_controls and self._other_types:
            raise BadDataError(
                "no annotation of Label Studio has choices for the whole document; "
                f"the annotations are of the types {', '.join(map(quoted, list(self._other_types)[:5]))}"
            )
        if self._found_controls and self._controls is not None:
            missing = sorted(self._controls - self._found_controls.keys())
            if missing:
                raise BadDataError(
                    f"the option labels names the control {quoted(missing[0])}, which no annotation has; "
                    f"the controls are {', '.join(map(quoted, self._found_controls))}"
                )
        warnings = []
        if self._n_unannotated:
            warnings.append(
                f"tasks without an annotation: {self._n_unannotated:,}; they are not in the data set"
            )
        if self._n_disagreeing:
            warnings.append(
                f"tasks with different labels from several annotators: {self._n_disagreeing:,}; labels that "
                "only some of them chose are unknown; to decide, mark one annotation as ground truth"
            )
        if self._n_refused:
            warnings.append(
                f"tasks with the answer reject or ignore: {self._n_refused:,}; they are not in the data set"
            )
        return warnings

    def _from_task(self, task: Mapping[str, Any]) -> Iterable[Annotated]:
        """Return the example of a task of Label Studio."""
        name = next(name for name in _ANNOTATIONS if type(task.get(name)) is list)
        self._n_tasks += 1
        annotations = []
        for j, annotation in enumerate(task[name]):
            if type(annotation) is not dict or type(annotation.get("result")) is not list:
                raise RecordError(
                    "an annotation must be an object with the list result; export the format JSON of "
                    "Label Studio",
                    json_pointer(name, j),
                )
            if not (annotation.get("was_cancelled") or annotation.get("skipped")):
                annotations.append((j, annotation))
        if not annotations:
            self._n_unannotated += 1
            return []
        annotations = [item for item in annotations if item[1].get("ground_truth")] or annotations
        chosen = [self._choices(item["result"], json_pointer(name, j, "result")) for j, item in annotations]
        any_chosen = dict.fromkeys(label for labels in chosen for label in labels)
        disputed = [label for label in any_chosen if not all(label in labels for labels in chosen)]
        self._n_disagreeing += bool(disputed)
        labels = ParsedLabels([label for label in any_chosen if label not in disputed], disputed)
        data = task["data"]
        if not self._names_document and not {"text", "email", "raw_email", "features"} & data.keys():
            names = ", ".join(quoted(key) for key in list(data)[:10])
            raise RecordError(
                f"the task has no field text; set the option text to the field of the text; the fields are "
                f"{names}",
                "/data",
            )
        view = {key: item for key, item in data.items() if key not in {"labels", "unknown_labels"}}
        view |= {"data": data, "meta": task.get("meta")}
        if task.get("id") is not None:
            view["id"] = task["id"]
        return [Annotated(view, labels)]

    def _choices(self, results: list[Any], pointer: str) -> list[str]:
        """Return the labels that one annotator chose."""
        labels: list[str] = []
        for j, result in enumerate(results):
            place = f"{pointer}/{j}/value"
            value = result.get("value") if type(result) is dict else None
            if type(value) is not dict:
                continue
            if "choices" in value:
                found = parse_labels(value, place, ",", self._limits).labels
            elif type(value.get("taxonomy")) is list:
                paths = value["taxonomy"]
                names = [
                    _PATH_SEPARATOR.join(map(str, path)) if type(path) is list else path for path in paths
                ]
                found = parse_labels(names, f"{place}/taxonomy", ",", self._limits).labels
            else:
                if len(self._other_types) < 100:
                    self._other_types[str(result.get("type"))] = None
                continue
            control = str(result.get("from_name"))
            if len(self._found_controls) < 1000:
                self._found_controls[control] = None
            if self._controls is None and len(self._found_controls) > 1:
                raise BadDataError(
                    f"the annotations have the choices of several controls: "
                    f"{', '.join(map(quoted, self._found_controls))}; "
                    "set the option labels to one of them, or to a list of them"
                )
            if self._controls is None or control in self._controls:
                labels += found
        return labels

    def _from_prodigy(self, task: Mapping[str, Any]) -> Iterable[Annotated]:
        if task["answer"] != "accept" and "accept" in task:
            self._n_refused += 1
            return []
        if "accept" not in task and "cats" not in task:
            raise RecordError(
                "the answer of Prodigy is about one label, so that the other labels of the text are not "
                "known; export the annotations with data-to-spacy, which merges the answers",
                "/answer",
            )
        if "accept" not in task:
            return [Annotated(task)]
        labels = parse_labels(task["accept"], "/accept", ",", self._limits)
        view = {key: item for key, item in task.items() if key not in {"label", "labels"}}
        return [Annotated(view, labels)]


def _from_pair(pair: list[Any]) -> dict[str, Any]:
    """Return the example of a text and its annotations, as the training data of spaCy."""
    if len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is dict and "cats" in pair[1]:
        return {"text": pair[0], "cats": pair[1]["cats"]}
    if pair and type(pair[0]) is str:
        raise RecordError(
            "an example in a list must be a pair of a text and its categories, "
            'such as ["a", {"cats": {"b": 1}}]'
        )
    raise RecordError("an example must be a JSON object, not a list")


def _from_paragraph(paragraph: Any) -> dict[str, Any]:
    """Return the example of a paragraph in the JSON of spaCy 2."""
    if type(paragraph) is not dict or "raw" not in paragraph or type(paragraph.get("cats")) is not list:
        raise RecordError("a paragraph must be an object with the fields raw and cats", "/paragraphs")
    categories: dict[str, Any] = {}
    for category in paragraph["cats"]:
        if type(category) is not dict or not {"label", "value"} <= category.keys():
            raise RecordError("a category must be an object with the fields label and value", "/paragraphs")
        categories[str(category["label"])] = category["value"]
    return {"text": paragraph["raw"], "cats": categories}
