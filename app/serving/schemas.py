"""Request and response schemas of predictions."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from app.datasets.schemas import EmailParts
from app.http.schemas import Count, MaxItems, RequestModel, ResponseModel
from app.registry.schemas import VersionRef


class Instance(RequestModel):
    """One document to predict for; exactly one of text, features, email and raw_email."""

    text: str | None = None
    """A plain text."""
    features: dict[str, float] | None = None
    """Named numbers; those left out are zero, names that the model does not know are passed over."""
    email: EmailParts | None = None
    """An e-mail in parts."""
    raw_email: str | None = None
    """A raw message, base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of text, features, email and raw_email")
        return self


class PredictRequest(RequestModel):
    """Documents to predict label sets and rankings for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "instances": [{"text": "my invoice is wrong"}],
                    "version": "live",
                    "top": 5,
                    "explain": True,
                },
            ]
        }
    )

    longest: ClassVar[MaxItems] = {"instances": lambda settings: settings.max_instances}

    instances: list[Instance] = Field(min_length=1)
    """The documents; answered in this order."""
    version: VersionRef = "live"
    """A number or an alias."""
    top: Count | None = None
    """Length of the rankings; every label by default."""
    explain: bool = False
    """Name the terms that decided for each predicted label."""
    quick: bool = False
    """For `mlpp`: find the `top` labels, which must be given, by quick voting. They are those that full
    voting ranks first, for fewer inner products; the label set is that of these labels alone."""


class RankedLabel(ResponseModel):
    """A label in a ranking."""

    label: str
    """The label."""
    score: float
    """Comparable between labels; the decision rule says what it takes to be predicted."""
    rank: int
    """1 for the highest score."""


class Term(ResponseModel):
    """A term of a document and what it adds to a label's score."""

    term: str
    """The term, as the analyzer made it."""
    weight: float
    """What it adds to the score; negative where it speaks against the label."""


class LabelExplanation(ResponseModel):
    """Why a label was predicted."""

    label: str
    """The label."""
    terms: list[Term]
    """The terms that decided, the weightiest first."""


class Prediction(ResponseModel):
    """What is predicted for one instance."""

    labels: list[str]
    """The predicted label set, in label order."""
    ranking: list[RankedLabel]
    """Labels by falling score; ties go to the label that sorts first."""
    explanation: list[LabelExplanation] | None = None
    """Why, for each predicted label; where it was asked for."""
    dot_products: int | None = None
    """How many inner products quick voting took; left out elsewhere."""


class PredictResponse(ResponseModel):
    """Predictions, and the version that made them."""

    model: str
    """The model's name."""
    version: int
    """The version that predicted."""
    predictions: list[Prediction]
    """One for each instance, in their order."""
