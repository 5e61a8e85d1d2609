"""Request and response schemas of the machine learning backend of Label Studio.

Label Studio defines the names, and sends many fields that no backend needs. They are ignored.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.schemas import MaxItems


class RequestPart(BaseModel):
    """Base of requests and their parts."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)


class SetupRequest(RequestPart):
    """A project that gets predictions."""

    label_config: str = Field(alias="schema")
    """The labeling configuration of the project."""


class Task(RequestPart):
    """A task of a project."""

    id: int | None = None
    """Id of the task."""
    data: dict[str, Any]
    """The fields of the task."""


class LabelStudioPredictRequest(RequestPart):
    """Tasks that need predictions."""

    large_fields: ClassVar[tuple[str, ...]] = ("tasks",)
    max_items: ClassVar[MaxItems] = {"tasks": lambda settings: settings.max_instances}

    tasks: list[Task] = Field(min_length=1)
    """The tasks."""
    label_config: str
    """The labeling configuration of the project."""


class AnnotationValue(RequestPart):
    """The value of an annotated region."""

    choices: list[str] = []
    """The selected choices."""


class AnnotationResult(RequestPart):
    """A region of an annotation."""

    from_name: str = ""
    """Name of the control."""
    value: AnnotationValue = AnnotationValue()
    """Its value."""


class Annotation(RequestPart):
    """An annotation of a task."""

    task: int | None = None
    """Id of the task."""
    result: list[AnnotationResult]
    """The regions."""
    was_cancelled: bool | None = None
    """Whether the annotator has skipped the task."""


class Project(RequestPart):
    """A project."""

    label_config: str
    """The labeling configuration of the project."""


class AnnotationEvent(RequestPart):
    """An event about one annotation, or several."""

    project: Project
    """The project."""
    annotation: Annotation | list[Annotation]
    """The annotations."""
    task: Task | list[Task]
    """Their tasks."""


class ResponsePart(BaseModel):
    """Base of responses."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Health(ResponsePart):
    """The backend responds."""

    status: Literal["UP"] = "UP"
    """Always `UP`."""
    model_class: Literal["Covey"] = "Covey"
    """Always `Covey`."""


class SetupResponse(ResponsePart):
    """The version that predicts."""

    model_version: str
    """The model and the number of the version."""


class Versions(ResponsePart):
    """The versions that a user can select."""

    versions: list[str]
    """The version that predicts."""


class TaskPrediction(ResponsePart):
    """The prediction for a task."""

    result: list[dict[str, Any]]
    """A region with the predicted choices; empty if there are none."""
    score: float | None = None
    """Probability that the choices are right. Absent if the version is not calibrated, or if the choices are
    not exactly the predicted labels."""
    model_version: str | None = None
    """The model and the number of the version that has predicted."""


class LabelStudioPredictResponse(ResponsePart):
    """The predictions."""

    results: list[TaskPrediction]
    """One for each task, in the same order."""
    model_version: str
    """The version that predicts."""


class WebhookReceipt(ResponsePart):
    """The outcome of an event."""

    status: Literal["recorded", "ignored"]
    """Whether feedback was recorded."""
    decision_ids: list[str] | None = None
    """The decisions that have the feedback."""
    reason: str | None = None
    """Why the event was ignored."""
