"""The manifest of a saved model: its description, and the list of its arrays with their checksums."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from models.base.targets import SETS, Target
from models.catalog import FeaturesConfig, LearnerConfig
from models.data.examples import Kind
from models.data.record import RecordError, check_name
from models.decisions import DecisionRule
from models.decisions.report import DecisionReport
from models.errors import ParameterError
from models.pipeline.reference import Reference

FORMAT_VERSION = 1

DTypeName: TypeAlias = Literal["F64", "F32", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"]

DTYPES: Mapping[DTypeName, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
"""Data types by their names in safetensors files."""


MAX_NAME_LENGTH = 512
"""Maximum number of characters of a label."""

MAX_NOTES_BYTES = 2**20
"""Maximum size of the warnings and facts together, as JSON."""


def _check_label(label: str) -> str:
    try:
        return check_name(label, "a label", "", MAX_NAME_LENGTH)
    except RecordError as error:
        raise ValueError(error.reason) from error


Label: TypeAlias = Annotated[str, AfterValidator(_check_label)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class ArrayEntry(_Part):
    """An array of the file."""

    name: str = Field(min_length=1, max_length=200)
    dtype: DTypeName
    shape: tuple[Annotated[int, Field(ge=0)], ...] = Field(max_length=8)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @property
    def size_bytes(self) -> int:
        """Size of the array in the file."""
        return math.prod(self.shape, start=DTYPES[self.dtype].itemsize)


class TargetEntry(_Part):
    """The form of the labels that the pipeline was fitted on, which its predictions have, too."""

    form: Literal["sets", "matrix", "classes"]
    classes: list[bool | int | float | str]
    """The columns or classes in their order; empty for ``sets``."""
    dtype: str = Field(pattern=r"^(object|str|bool|u?int(8|16|32|64)|float(16|32|64))$")
    """The type of the columns or classes in an array."""

    @classmethod
    def of(cls, target: Target) -> Self:
        """Describe a target.

        Raises:
            ParameterError: its classes are neither texts, numbers nor booleans.
        """
        kind, values = target.classes.dtype, target.classes.tolist()
        if not all(isinstance(value, bool | int | float | str) for value in values):
            raise ParameterError("the classes cannot be saved; use texts, numbers or booleans")
        return cls(form=target.form, classes=values, dtype="str" if kind.kind == "U" else kind.name)

    def target(self, labels: Sequence[str]) -> Target:
        """Return the target of a pipeline with these labels.

        Raises:
            ValueError: its columns or classes are not among the labels.
        """
        if self.form == "sets":
            return SETS
        target = Target.of_columns(self.form, np.array(self.classes, dtype=self.dtype))
        if not set(target.names) <= set(labels) or len(target.names) < 1 + (self.form == "classes"):
            raise ValueError("the columns or classes are not among the labels")
        return target


class RuleEntry(_Part):
    """How the fitted decision of a model turns scores into label sets, besides its thresholds."""

    at_least: int = Field(ge=0)
    at_most: int | None = Field(ge=1)
    adds_ancestors: bool
    """Whether the ancestors of predicted labels in the label tree are predicted, too."""


class Manifest(_Part):
    """The description of a saved model."""

    format: Literal["covey-model"] = "covey-model"
    format_version: Literal[1] = 1
    software: dict[str, str]
    """Versions of the software that wrote the file."""
    kind: Kind
    mail_version: int | None
    labels: list[Label] = Field(min_length=1)
    target: TargetEntry
    label_tree: dict[Label, Label] | None
    features: FeaturesConfig
    learner: LearnerConfig
    decision: DecisionRule
    rule: RuleEntry
    decision_report: DecisionReport | None = None
    """How the decision was tuned. None if its kind gives no choice."""
    reference: Reference
    """What the model predicts for documents like those of its training."""
    seed: int = Field(ge=0, lt=2**32)
    warnings: list[str]
    facts: dict[str, Any]
    extra: dict[str, Any]
    """JSON values that the caller of ``save`` stored with the model."""
    arrays: list[ArrayEntry]

    @model_validator(mode="after")
    def _check_reference(self) -> Self:
        if len(self.reference.label_counts) != len(self.labels):
            raise ValueError("the reference does not have one count for each label")
        return self

    @model_validator(mode="after")
    def _check_notes(self) -> Self:
        size = len(json.dumps([self.warnings, self.facts], ensure_ascii=False).encode())
        if size > MAX_NOTES_BYTES:
            raise ValueError(
                f"the warnings and facts have {size:,} bytes together; the limit is {MAX_NOTES_BYTES:,}"
            )
        return self
