"""Request schema of partial fits."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict, Field

from app.api.schemas import MaxItems, RequestModel
from app.datasets.schemas import Label
from app.registry.schemas import PromotionRule
from app.serving.schemas import Instance
from models.data.record import MAX_WEIGHT, MIN_WEIGHT


class LabelledInstance(Instance):
    """A document with its labels. Set exactly one of text, features, email and raw_email."""

    labels: list[Label]
    """Labels of the document that the version knows; may be empty. All other labels do not apply."""
    weight: float | None = Field(default=None, ge=MIN_WEIGHT, le=MAX_WEIGHT)
    """How much the document counts: 2 as much as two equal ones. The default is 1. Only for learners that
    accept weights."""


class PartialFit(RequestModel):
    """Examples from which a version learns further."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"examples": [{"text": "my invoice is wrong", "labels": ["billing"]}]}],
        }
    )

    large_fields: ClassVar[tuple[str, ...]] = ("examples",)
    max_items: ClassVar[MaxItems] = {"examples": lambda settings: settings.max_instances}
    documents: ClassVar[frozenset[str]] = frozenset({"examples"})

    examples: list[LabelledInstance] = Field(min_length=1)
    """The examples, such as corrections. The learner sees them once, in this order unless it shuffles."""
    promote: PromotionRule = "never"
    """When to move the alias `live` to the new version."""
