"""Request and response schemas of predictions.

``Prediction`` is the one definition of a prediction: its fields, their order in the JSON, and the OpenAPI
schema. To add a field, add it here, and pass its value in ``app/serving/responses.py``.
"""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from app.api.schemas import Count, MaxItems, RequestModel, ResponseModel, VersionRef
from app.datasets.schemas import EmailParts, FeatureValues, Label


class Instance(RequestModel):
    """A document to predict for. Set exactly one of text, features, email and raw_email."""

    text: str | None = None
    """The document as plain text."""
    features: FeatureValues | None = None
    """The document as numeric features by name. Missing features are zero. Features that are unknown to the
    model are ignored, and the response names them in `unknown_features`."""
    email: EmailParts | None = None
    """The document as the parts of an e-mail."""
    raw_email: str | None = None
    """The document as a raw e-mail message (RFC 5322) in base64."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        missing = (self.text is None) + (self.features is None) + (self.email is None)
        if missing + (self.raw_email is None) != 3:
            raise ValueError("set exactly one of text, features, email and raw_email")
        return self


class PredictRequest(RequestModel):
    """Documents to predict label sets and rankings of."""

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

    large_fields: ClassVar[tuple[str, ...]] = ("instances", "thresholds")
    max_items: ClassVar[MaxItems] = {
        "instances": lambda settings: settings.max_instances,
        "thresholds": lambda settings: settings.max_labels,
    }
    documents: ClassVar[frozenset[str]] = frozenset({"instances"})

    instances: list[Instance] = Field(min_length=1)
    """The documents. The predictions have the same order."""
    version: VersionRef = "live"
    """The number or an alias of the version that predicts."""
    top: Count | None = None
    """Maximum number of labels in each ranking. By default every label is ranked. Required if the rankings of
    all instances would otherwise have more than 100,000 labels."""
    explain: bool = False
    """Whether to return the terms that contribute most to each predicted label."""
    thresholds: dict[Label, float] = Field(default_factory=dict)
    """Thresholds of labels that replace those of the version: a label is predicted if its score is above its
    threshold. Labels that are not listed keep their thresholds, which the version lists."""


class RankedLabel(ResponseModel):
    """A label in a ranking."""

    label: str
    """The label."""
    score: float
    """Score of the label, comparable between labels. The decision rule of the version turns scores into a
    label set."""
    probability: float | None = None
    """Calibrated probability that the label applies. Absent if the version is not calibrated."""
    rank: int
    """Position in the ranking, from 1 for the highest score."""


class TermOccurrence(ResponseModel):
    """A place of a document where a term occurs."""

    field: str
    """The field: `text` in a text; in an e-mail `subject`, `new_text`, `quoted_text`, `attachment_names`,
    `sender_domain`, `recipients`, `list_id` or `attachment_types`."""
    start: int
    """The first character, in Unicode code points from the beginning of the field."""
    end: int
    """The character after the last one."""


class Term(ResponseModel):
    """A term of a document and its contribution to the score of a label."""

    term: str
    """Name of the feature: the term as the analyzer returns it, for example stemmed. Terms of their own begin
    with their field, such as `subject:` or, for quoted text, `>`. The words of an n-gram are separated by
    spaces. Parts of words (`character_ngrams` of the analyzer) count for the words of the document that
    contain them."""
    weight: float
    """Contribution to the score. It is negative if the term is evidence against the label."""
    words: list[str] | None = None
    """The words of the document that the term stands for, in the forms at its `occurrences`. For a character
    n-gram, the words that contain it. Absent if the term occurs nowhere in the text that was searched."""
    fields: list[str] | None = None
    """The fields in which the term occurs."""
    occurrences: list[TermOccurrence] | None = None
    """The first 10 places where the term occurs. An n-gram extends from its first word to its last."""
    factors: list[str] | None = None
    """The two features that this feature is the product of. Only for `interactions` of numeric features."""


class LabelExplanation(ResponseModel):
    """An explanation of a predicted label."""

    label: str
    """The label."""
    terms: list[Term]
    """Terms that contribute most to the score, largest absolute contribution first."""


class Prediction(ResponseModel):
    """The prediction for one instance."""

    labels: list[str]
    """The predicted label set, in label order."""
    ranking: list[RankedLabel]
    """Labels in descending order of their scores. Labels with equal scores are in label order."""
    set_probability: float | None = None
    """Calibrated probability that `labels` is exactly the right label set. Absent if the version is not
    calibrated."""
    explanation: list[LabelExplanation] | None = None
    """An explanation of each predicted label. Absent unless `explain` is true."""
    texts: dict[str, str] | None = None
    """The texts by field to which the `occurrences` of the explanation refer. Absent without explanation, and
    if the instance is the text itself."""


class UnknownFeatures(ResponseModel):
    """Features that the model ignored because they were not in its training data."""

    count: int
    """Number of distinct names."""
    names: list[str]
    """The first ten names."""


class PredictResponse(ResponseModel):
    """Predictions, and the version that predicted."""

    model: str
    """Name of the model."""
    version: int
    """Number of the version that predicted."""
    predictions: list[Prediction]
    """One prediction for each instance, in the same order."""
    unknown_features: UnknownFeatures | None = None
    """Features of the instances that the model does not know. Absent if it knows all of them."""
