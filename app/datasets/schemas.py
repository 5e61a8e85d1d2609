"""What a client may say and will hear about data sets."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from app.http.errors import Problem
from app.http.schemas import (
    Description,
    MaxItems,
    NextCursor,
    RequestModel,
    ResponseModel,
    Timestamp,
    Title,
    WithoutNul,
)
from models.data.readers.registry import OptionsUnion

DatasetFormat: TypeAlias = Literal["jsonl", "csv", "svmlight", "arff", "parquet", "mbox", "eml_zip"]
DatasetState: TypeAlias = Literal["awaiting_content", "ingesting", "ready", "failed"]
ExampleKind: TypeAlias = Literal["text", "features", "email"]
ExampleSplit: TypeAlias = Literal["train", "test"]
Label: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=500), WithoutNul]

ExampleId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=500), WithoutNul]


class EmailParts(RequestModel):
    """An e-mail that the client has taken apart."""

    subject: str = ""
    """The subject line."""
    from_: str = Field(default="", alias="from")
    """The sender, as in the `From` field."""
    to: str = ""
    """The recipients, as in the `To` field."""
    text: str = ""
    """The body as plain text."""
    html: str = ""
    """The body as HTML; read where there is no plain text."""


class Example(RequestModel):
    """One labelled example; exactly one of text, features, email and raw_email."""

    id: ExampleId | None = None
    """The client's own name for it; by default its place in the data set."""
    text: str | None = None
    """A plain text."""
    features: dict[str, float] | None = None
    """Named numbers; those left out are zero."""
    email: EmailParts | None = None
    """An e-mail in parts."""
    raw_email: str | None = None
    """A raw message, base64."""
    labels: list[Label]
    """Its labels; none at all is allowed."""
    split: ExampleSplit | None = None
    """The part it belongs to, where the data set has its own split."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [
            name for name in ("text", "features", "email", "raw_email") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError("give exactly one of text, features, email and raw_email")
        return self


class DatasetCreate(RequestModel):
    """A new data set; its content follows, or stands here as ``examples``."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "helpdesk-2026", "format": "jsonl"},
                {
                    "name": "a few",
                    "examples": [
                        {"text": "my invoice is wrong", "labels": ["billing"]},
                        {"text": "the parcel is late", "labels": ["shipping"]},
                    ],
                },
            ]
        }
    )
    longest: ClassVar[MaxItems] = {"label_tree": lambda settings: settings.max_labels}

    name: Title
    """What people call it; need not be unique."""
    description: Description | None = None
    """What it is, for people."""
    format: DatasetFormat | None = None
    """By default the format is told from the content; examples given inline need none."""
    options: OptionsUnion | None = None
    """What the file itself does not say: which column is what, how labels are separated."""
    label_tree: dict[Label, Label] | None = None
    """Child to parent. Every document's labels are closed under ancestors."""
    max_bad_records: int = Field(default=0, ge=0, le=2**31 - 1)
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


class DatasetPatch(RequestModel):
    """What may change of a data set."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "helpdesk-2026-q1"},
            ]
        }
    )

    name: Title | None = None
    """Its new name; left out, the name stays."""
    description: Description | None = None
    """Its new description; null removes it, left out it stays."""


class SplitCounts(ResponseModel):
    """How many examples bear which split."""

    train: int
    """Examples for training."""
    test: int
    """Examples held out for measuring."""
    none: int
    """Examples that bear no split."""


class Dataset(ResponseModel):
    """A data set."""

    id: str
    """Begins with `ds_`."""
    name: str
    """What people call it."""
    description: str | None = None
    """What it is, for people."""
    format: DatasetFormat | None = None
    """Left out where it is to be told from the content."""
    state: DatasetState
    """Only a `ready` one can be trained from."""
    label_tree: dict[str, str] | None = None
    """Child to parent."""
    created_at: Timestamp
    """When it was created."""
    ready_at: Timestamp | None = None
    """When its content had been read."""
    kind: ExampleKind | None = None
    """What all its examples are."""
    sha256: str | None = None
    """Digest of the content as uploaded."""
    size_bytes: int | None = None
    """Size of the content as uploaded."""
    n_examples: int | None = None
    """Number of examples."""
    n_labels: int | None = None
    """Number of distinct labels."""
    label_cardinality: float | None = None
    """Mean number of labels of an example."""
    label_density: float | None = None
    """Label cardinality by number of labels."""
    n_unlabelled: int | None = None
    """Examples without any label."""
    splits: SplitCounts | None = None
    """How many examples bear which split."""
    n_bad_records: int | None = None
    """Records that could not be read and were left out, as allowed."""
    warnings: list[str] | None = None
    """What a person should know of it, in sentences."""
    error: Problem | None = None
    """Why it failed, with the first records at fault."""


class DatasetPage(ResponseModel):
    """A page of data sets."""

    items: list[Dataset]
    """The page."""
    next_cursor: NextCursor = None


class LabelItem(ResponseModel):
    """A label of a data set and how many examples bear it."""

    label: str
    """The label."""
    count: int
    """How many examples bear it."""
    parent: str | None = None
    """Its parent in the label tree."""


class LabelPage(ResponseModel):
    """A page of labels, in label order."""

    items: list[LabelItem]
    """The page."""
    next_cursor: NextCursor = None


class ExampleItem(ResponseModel):
    """One example of a data set."""

    id: str
    """Its own id, or its place in the data set."""
    text: str | None = None
    """Its text."""
    features: dict[str, float] | None = None
    """Its named numbers; those left out are zero."""
    email: EmailParts | None = None
    """Its e-mail in parts."""
    raw_email: str | None = None
    """Its raw message, base64."""
    labels: list[str]
    """Its labels; closed under ancestors where there is a label tree."""
    split: ExampleSplit | None = None
    """The part it belongs to."""


class ExamplePage(ResponseModel):
    """A page of examples, in the order of the file."""

    items: list[ExampleItem]
    """The page."""
    next_cursor: NextCursor = None
