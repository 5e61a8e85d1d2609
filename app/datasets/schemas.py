"""What a client may say and will hear about data sets."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from app.errors import Problem
from app.schemas import Answer, Description, JsonObject, Request, Timestamp, Title
from models.data.formats import OptionsUnion

DatasetFormat: TypeAlias = Literal["jsonl", "csv", "svmlight", "arff", "parquet", "mbox", "eml_zip"]
DatasetState: TypeAlias = Literal["awaiting_content", "ingesting", "ready", "failed"]
ExampleKind: TypeAlias = Literal["text", "features", "email"]
Label: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class EmailParts(Request):
    """An e-mail that the client has taken apart."""

    subject: str = ""
    from_: str = Field(default="", alias="from")
    to: str = ""
    text: str = ""
    html: str = ""


class Example(Request):
    """One labelled example; exactly one of text, features, email and raw_email."""

    id: str | None = None
    text: str | None = None
    features: dict[str, float] | None = None
    email: EmailParts | None = None
    raw_email: str | None = None
    """A raw message, base64."""
    labels: list[Label]
    split: Literal["train", "test"] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [
            name for name in ("text", "features", "email", "raw_email") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError("give exactly one of text, features, email and raw_email")
        return self


class DatasetCreate(Request):
    """A new data set; its content follows, or stands here as ``examples``."""

    name: Title
    description: Description | None = None
    format: DatasetFormat | None = None
    """By default the format is told from the content; examples given inline need none."""
    options: OptionsUnion | None = None
    """What the file itself does not say: which column is what, how labels are separated."""
    label_tree: dict[Label, Label] | None = None
    """Child to parent. Every document's labels are closed under ancestors."""
    max_bad_records: int = Field(default=0, ge=0)
    """Go on without up to so many records that cannot be read."""
    examples: list[Example] | None = Field(default=None, min_length=1)
    """A small set inline instead of an upload."""

    @model_validator(mode="after")
    def _options_of_the_format(self) -> Self:
        if self.options is not None and self.format not in (None, self.options.format):
            raise ValueError(f"the options are those of {self.options.format}, the format is {self.format}")
        if self.examples is not None and self.format not in (None, "jsonl"):
            raise ValueError("examples in the request have no other format than jsonl; leave format out")
        return self


class DatasetPatch(Request):
    """What may change of a data set."""

    name: Title | None = None
    description: Description | None = None


class SplitCounts(Answer):
    """How many examples bear which split."""

    train: int
    test: int
    none: int


class Dataset(Answer):
    """A data set."""

    id: str
    name: str
    description: str | None = None
    format: DatasetFormat | None = None
    """Left out where it is to be told from the content."""
    state: DatasetState
    label_tree: dict[str, str] | None = None
    created_at: Timestamp
    ready_at: Timestamp | None = None
    kind: ExampleKind | None = None
    sha256: str | None = None
    """Digest of the content as uploaded."""
    size_bytes: int | None = None
    n_examples: int | None = None
    n_labels: int | None = None
    label_cardinality: float | None = None
    """Mean number of labels of an example."""
    label_density: float | None = None
    """Label cardinality by number of labels."""
    n_unlabelled: int | None = None
    splits: SplitCounts | None = None
    n_bad_records: int | None = None
    warnings: list[str] | None = None
    error: Problem | None = None


class DatasetPage(Answer):
    """A page of data sets."""

    items: list[Dataset]
    next_cursor: str | None = None


class LabelItem(Answer):
    """A label of a data set and how many examples bear it."""

    label: str
    count: int
    parent: str | None = None


class LabelPage(Answer):
    """A page of labels, in label order."""

    items: list[LabelItem]
    next_cursor: str | None = None


class ExampleItem(Answer):
    """One example of a data set."""

    id: str
    text: str | None = None
    features: dict[str, float] | None = None
    email: JsonObject | None = None
    raw_email: str | None = None
    labels: list[str]
    split: Literal["train", "test"] | None = None


class ExamplePage(Answer):
    """A page of examples, in the order of the file."""

    items: list[ExampleItem]
    next_cursor: str | None = None
