"""Request and response schemas of data sets."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from typing_extensions import TypeAliasType

from app.api.errors import Problem
from app.api.schemas import (
    Description,
    MaxItems,
    Name,
    NextCursor,
    RequestModel,
    ResponseModel,
    Timestamp,
    Title,
    UtcDatetime,
)
from models.data.readers.registry import FormatOptions
from models.data.record import MAX_WEIGHT, MIN_WEIGHT
from models.data.values.scalars import MAX_FOLD
from models.mail.limits import MAX_PARTS

DatasetFormat = TypeAliasType(
    "DatasetFormat",
    Annotated[
        Literal["jsonl", "csv", "svmlight", "arff", "fasttext", "parquet", "mbox", "eml_zip"],
        Field(description="File format of the content of a data set."),
    ],
)
DatasetState = TypeAliasType(
    "DatasetState",
    Annotated[
        Literal["awaiting_content", "ingesting", "ready", "failed"],
        Field(description="`awaiting_content`, then `ingesting`, then `ready` or `failed`."),
    ],
)
ExampleKind = TypeAliasType(
    "ExampleKind",
    Annotated[Literal["text", "features", "email"], Field(description="Kind of all examples of a data set.")],
)
ExampleSplit = TypeAliasType(
    "ExampleSplit",
    Annotated[
        Literal["train", "validation", "test"], Field(description="The part that an example belongs to.")
    ],
)
Fold = TypeAliasType(
    "Fold", Annotated[int, Field(strict=True, ge=0, le=MAX_FOLD, description="The number of a fold.")]
)
ReviewSelection = TypeAliasType(
    "ReviewSelection",
    Annotated[
        Literal["sample", "doubt", "fallback", "volunteered"],
        Field(
            description="Why people labelled a message that a version had decided on: it belongs to the "
            "random sample of a router; the version was not sure; the message went to the fallback; or "
            "a person submitted the labels unasked, mostly because of a mistake."
        ),
    ],
)
Label: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=500)]

ExampleId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=500)]

MAX_EXAMPLES = 10_000
"""Examples in one request. The content of larger data sets is uploaded."""

MAX_SOURCES = 100
"""Data sets from which one data set is made."""

MAX_FILTER_NAMES = 10_000
"""Labels or ids in one condition of a filter."""

FeatureValues = TypeAliasType(
    "FeatureValues",
    Annotated[
        dict[str, float], Field(description="Numeric features by name. A missing feature has the value 0.")
    ],
)
LabelNames = TypeAliasType(
    "LabelNames", Annotated[dict[Label, Label], Field(description="New name by present label.")]
)
LabelTree = TypeAliasType(
    "LabelTree", Annotated[dict[Label, Label], Field(description="Parent by child label.")]
)


class AttachmentParts(RequestModel):
    """An attachment of an e-mail. Its content is not read."""

    name: str = ""
    """The file name, such as `invoice-2291.pdf`."""
    content_type: str = ""
    """The content type, such as `application/pdf`."""


class EmailParts(RequestModel):
    """The parts of an e-mail, for clients that parse messages themselves."""

    subject: str = ""
    """The decoded subject."""
    from_: str = Field(default="", alias="from")
    """The sender, as in the header field `From`."""
    to: str = ""
    """The recipients, as in the header field `To`."""
    text: str = ""
    """The body as plain text."""
    html: str = ""
    """The body as HTML. It is only read if there is no plain text."""
    list_id: str = ""
    """The mailing list, as in the header field `List-Id`."""
    attachments: list[AttachmentParts] = Field(default=[], max_length=MAX_PARTS)
    """The attachments."""


class Example(RequestModel):
    """A labelled example. Set exactly one of text, features, email and raw_email."""

    id: ExampleId | None = None
    """Id of the example, chosen by the client. By default its running number."""
    text: str | None = None
    """The document as plain text."""
    features: FeatureValues | None = None
    """The document as numeric features by name. Missing features are zero."""
    email: EmailParts | None = None
    """The document as the parts of an e-mail."""
    raw_email: str | None = None
    """The document as a raw e-mail message (RFC 5322) in base64."""
    labels: list[Label]
    """Labels of the example; may be empty."""
    unknown_labels: list[Label] | None = None
    """Labels of which it is not known whether they apply. By default all other labels do not apply."""
    split: ExampleSplit | None = None
    """Part of the example, for a data set with a given split. By default it belongs to no part."""
    weight: float | None = Field(default=None, ge=MIN_WEIGHT, le=MAX_WEIGHT)
    """How much the example counts in a training: 2 as much as two equal examples. The default is 1."""
    fold: Fold | None = None
    """Fold of the example, for cross-validation with the split `assigned`. By default it has none."""
    selected_by: ReviewSelection | None = None
    """Why the example was labelled, if its labels are feedback on a decision. Only examples without this
    field, and those of a random `sample`, decide between versions."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        documents = [
            name for name in ("text", "features", "email", "raw_email") if getattr(self, name) is not None
        ]
        if len(documents) != 1:
            raise ValueError("set exactly one of text, features, email and raw_email")
        return self


class ExampleFilter(RequestModel):
    """Conditions on an example. An example is kept if it meets all of them."""

    labels: Annotated[list[Label], Field(min_length=1, max_length=MAX_FILTER_NAMES)] | None = None
    """The example has at least one of these labels."""
    without_labels: Annotated[list[Label], Field(min_length=1, max_length=MAX_FILTER_NAMES)] | None = None
    """The example has none of these labels."""
    ids: Annotated[list[ExampleId], Field(min_length=1, max_length=MAX_FILTER_NAMES)] | None = None
    """The id of the example is one of these."""
    without_ids: Annotated[list[ExampleId], Field(min_length=1, max_length=MAX_FILTER_NAMES)] | None = None
    """The id of the example is none of these."""
    splits: (
        Annotated[list[Literal["train", "validation", "test", "none"]], Field(min_length=1, max_length=4)]
        | None
    ) = None
    """The example belongs to one of these parts; `none` stands for no part."""
    labelled: bool | None = None
    """True for examples that have a label, false for examples without labels."""
    with_text: bool | None = None
    """True for examples whose document has content, false for empty documents: no text, no subject and text
    of an e-mail, or only features that are 0."""

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise ValueError("set at least one condition, or omit the filter")
        return self


class Derivation(RequestModel):
    """The data sets from which a data set is made."""

    datasets: list[str] = Field(min_length=1, max_length=MAX_SOURCES)
    """Ids of ready data sets of one kind. Their examples are appended to each other in this order."""
    filter: ExampleFilter | None = None
    """The examples of these data sets to keep, by their labels before any change. By default all."""
    repeated_ids: Literal["error", "last", "renumber"] = "error"
    """What happens if two data sets, or a data set and `examples`, have an example with the same id. `error`:
    the new data set fails. `last`: the later example replaces the earlier one. `renumber`: both are kept, and
    the id of every example is its running number."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.datasets)) < len(self.datasets):
            raise ValueError("datasets contains an id twice; name each data set once")
        return self


class FeedbackSelection(RequestModel):
    """Decisions of a router with feedback."""

    router: Name
    """Name of the router."""
    from_: UtcDatetime | None = Field(default=None, alias="from")
    """Only feedback that was submitted at this time or later (RFC 3339). By default all."""
    to: UtcDatetime | None = None
    """Only feedback that was submitted before this time (RFC 3339). By default, the time of the request."""
    feedback: Literal["agreed", "corrected"] | None = None
    """Only decisions whose feedback has exactly the predicted labels (`agreed`), or other labels
    (`corrected`). By default both. Such decisions are no random sample."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.from_ is not None and self.to is not None and self.from_ >= self.to:
            raise ValueError("to must be later than from")
        return self


class DatasetCreate(RequestModel):
    """A new data set: from an upload, from ``examples``, from others, or from the upload of another one."""

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
                {
                    "name": "helpdesk-2026-q2",
                    "derive": {
                        "datasets": ["ds_01k5a2b3c4d5e6f7g8h9jkmnpq"],
                        "filter": {"without_labels": ["spam"]},
                    },
                    "rename_labels": {"Hilfe": "help desk"},
                },
                {
                    "name": "helpdesk-2026-q3",
                    "from_feedback": {"router": "frontdesk", "from": "2026-07-01T00:00:00Z"},
                    "and_dataset": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                },
                {
                    "name": "helpdesk-2026",
                    "from_upload": "ds_01k5a2b3c4d5e6f7g8h9jkmnpq",
                    "options": {"format": "csv", "label_separator": ";"},
                },
            ]
        }
    )
    large_fields: ClassVar[tuple[str, ...]] = ("examples", "label_tree", "rename_labels", "remove_labels")
    max_items: ClassVar[MaxItems] = {
        "label_tree": lambda settings: settings.max_labels,
        "rename_labels": lambda settings: settings.max_labels,
        "remove_labels": lambda settings: settings.max_labels,
        "examples": lambda _: MAX_EXAMPLES,
    }
    documents: ClassVar[frozenset[str]] = frozenset({"examples"})

    name: Title
    """Name of the data set for people. It need not be unique."""
    description: Description | None = None
    """Description of the data set for people."""
    format: DatasetFormat | None = None
    """Format of the content. By default it is detected from the content. Omit it if you set `examples`."""
    options: FormatOptions | None = None
    """Options of the format, such as the names of columns and the separator of labels."""
    label_tree: LabelTree | None = None
    """Parent of each label that has one. All ancestors of a label are added to the labels of an example. A
    data set that is derived has the label trees of its data sets by default, and none if this is `{}`."""
    merge_labels: Literal["similar"] | None = None
    """`similar` makes one label of all labels that differ only in spelling, such as case, spaces, invisible
    characters, or `1` and `1.0`. Its name is the one in `label_tree` or `rename_labels`, otherwise the most
    frequent spelling. A warning states which labels were merged."""
    rename_labels: LabelNames | None = None
    """New name of each label to rename. Several labels can get the same name. If a label keeps its name here,
    similar labels are merged into it."""
    remove_labels: list[Label] | None = None
    """Labels to remove from all examples, such as `nan`."""
    max_bad_records: int = Field(default=0, ge=0, le=2**31 - 1)
    """Maximum number of bad records that are skipped. If there are more, the data set fails."""
    examples: list[Example] | None = Field(default=None, min_length=1)
    """The examples of a small data set, instead of an upload; at most 10,000. With `derive`, they are
    appended to the examples of the other data sets; those without an id get a new one."""
    derive: Derivation | None = None
    """Makes the data set from other data sets, instead of an upload."""
    from_feedback: FeedbackSelection | None = None
    """Makes the data set from the messages of decisions with feedback, with the labels of the feedback. The
    messages are those that the router has kept, and those of `and_dataset`. If you also set `format` to
    `mbox`, `eml_zip` or `jsonl`, the data set awaits an upload of messages, of which it uses those with
    feedback."""
    from_upload: str | None = None
    """Id of a data set whose uploaded file is read again with the fields of this request. Only `label_tree`
    is inherited. The other data set does not change. Its file is kept as long as it has the field
    `uploaded_at`."""
    and_dataset: str | None = None
    """With `from_feedback`: a ready data set of e-mails or texts, whose examples come first. Messages
    with feedback get the labels of the feedback, and keep their split. If it has texts, messages are added as
    texts, as a version that was trained on texts reads e-mail. If it has a split, messages of the random
    sample (`review_sample` of the router) belong to `test`, as long as they are at most a fifth of the
    messages with feedback, and all others to `train`."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        origins = {
            "examples or derive": self.examples or self.derive,
            "from_feedback": self.from_feedback,
            "from_upload": self.from_upload,
        }
        given = [name for name, value in origins.items() if value]
        if len(given) > 1:
            raise ValueError(f"set only one of {' and '.join(given)}")
        if self.and_dataset is not None and self.from_feedback is None:
            raise ValueError("and_dataset needs from_feedback; to combine data sets, set derive")
        if self.derive is not None and (self.format or self.options or self.max_bad_records):
            raise ValueError(
                "a data set that is derived from others has no content to upload; omit format, options and "
                "max_bad_records"
            )
        return self

    @model_validator(mode="after")
    def _messages_of_the_feedback(self) -> Self:
        if self.from_feedback is not None:
            format_ = self.options.format if self.options is not None else self.format
            if format_ not in (None, "mbox", "eml_zip", "jsonl"):
                raise ValueError(
                    f"the format {format_} has no raw messages to join with feedback; set mbox, eml_zip or "
                    "jsonl, or omit format to use the messages that the router has kept"
                )
            if format_ is None and self.max_bad_records:
                raise ValueError("max_bad_records needs an upload; set format, or omit max_bad_records")
        return self

    @model_validator(mode="after")
    def _options_of_the_format(self) -> Self:
        if self.options is not None and self.format not in (None, self.options.format):
            raise ValueError(
                f"the options are for the format {self.options.format}, but the format is {self.format}"
            )
        if self.examples is not None and self.format not in (None, "jsonl"):
            raise ValueError("examples in the request always have the format jsonl; omit format")
        return self


class DatasetPatch(RequestModel):
    """Changes of a data set."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "helpdesk-2026-q1"},
            ]
        }
    )

    name: Title | None = None
    """The new name. If it is absent, the name does not change."""
    description: Description | None = None
    """The new description; null removes the description. If it is absent, the description does not change."""


class SplitCounts(ResponseModel):
    """Counts of the examples of a data set, by part."""

    train: int
    """Number of examples for training."""
    validation: int = 0
    """Number of examples for decisions during the training, such as when to stop."""
    test: int
    """Number of held-out examples."""
    none: int
    """Number of examples that belong to no part."""


class LineageDataset(ResponseModel):
    """A data set from which another one was made. It may have been deleted since."""

    dataset_id: str
    """Id of the data set."""
    name: str
    """Its name at that time."""
    sha256: str
    """SHA-256 of its content, in hexadecimal."""
    n_examples: int
    """Number of its examples."""
    n_filtered: int | None = None
    """Number of its examples that did not meet the conditions of the filter. Absent until the new data set is
    ready."""
    n_replaced: int | None = None
    """Number of its examples that a later example with the same id replaced. Absent until the new data set is
    ready."""
    n_used: int | None = None
    """Number of its examples in the new data set. Absent until the new data set is ready."""


class LineageFeedback(ResponseModel):
    """The decisions with feedback from which a data set was made. The counts are absent until it is ready."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    router: str
    """Name of the router."""
    from_: Timestamp | None = Field(default=None, alias="from")
    """Time of the first feedback. Absent if there was no limit."""
    to: Timestamp
    """Time before which the feedback was submitted."""
    feedback: str | None = None
    """`agreed` or `corrected` if only such decisions were used. Absent if both were."""
    n_decisions: int | None = None
    """Number of decisions with feedback."""
    n_sampled: int | None = None
    """Number of these decisions whose messages are a random sample: those of `review_sample`, if people have
    answered (nearly) all of them, and `feedback` does not select them by their feedback."""
    n_relabelled: int | None = None
    """Number of examples of `and_dataset` that got the labels of the feedback."""
    n_new: int | None = None
    """Number of messages that were added, from the messages that the router has kept or from the upload."""
    n_without_message: int | None = None
    """Number of decisions whose message was not available."""
    n_unlabelled: int | None = None
    """Number of uploaded messages without feedback, which were omitted."""
    n_repeated: int | None = None
    """Number of uploaded messages that occurred more than once, or are in `and_dataset`."""


class Lineage(ResponseModel):
    """What a data set was made from, and how."""

    datasets: list[LineageDataset]
    """The other data sets, in the order of the request."""
    feedback: LineageFeedback | None = None
    """The feedback. Absent if there was none."""
    n_appended: int | None = None
    """Number of examples of the request that were appended. Absent if there were none."""
    filter: ExampleFilter | None = None
    """The filter of the request. Absent if there was none."""
    repeated_ids: Literal["error", "last", "renumber"] | None = None
    """What was done with ids that occur twice."""
    merge_labels: str | None = None
    """How labels were merged. Absent if they were not."""
    rename_labels: LabelNames | None = None
    """New name by label before the change. Absent if no label was renamed."""
    remove_labels: list[str] | None = None
    """Labels that were removed. Absent if there were none."""


class Dataset(ResponseModel):
    """A data set. The fields that describe its content are absent until it is ready."""

    id: str
    """Id of the data set; starts with `ds_`."""
    name: str
    """Name of the data set for people."""
    description: str | None = None
    """Description of the data set for people. Absent if it has none."""
    format: DatasetFormat | None = None
    """Format of the content. Absent until it is detected from the content, or if there is no upload."""
    state: DatasetState
    """State of the data set. Only a `ready` data set can be used."""
    label_tree: LabelTree | None = None
    """Parent of each label that has one. Absent if there is no label tree."""
    created_at: Timestamp
    """Time when the data set was created."""
    ready_at: Timestamp | None = None
    """Time when the data set became ready. Absent until then."""
    from_upload: str | None = None
    """Id of the data set whose upload was read again. Absent if the data set has an upload of its own."""
    uploaded_at: Timestamp | None = None
    """Time of the upload. It is kept for `COVEY_KEEP_UPLOADS_DAYS`, so that another data set can be read from
    it with `from_upload`. Absent if there is no upload, or if it is not kept any more."""
    kind: ExampleKind | None = None
    """Kind of all examples."""
    sha256: str | None = None
    """SHA-256 of the uploaded content, in hexadecimal. If the data set has a `lineage`, it is the digest of
    its examples as JSON Lines, so that equal examples have an equal digest."""
    size_bytes: int | None = None
    """Size in bytes of the same content."""
    n_examples: int | None = None
    """Number of examples."""
    n_labels: int | None = None
    """Number of distinct labels."""
    label_cardinality: float | None = None
    """Mean number of labels of an example."""
    label_density: float | None = None
    """Label cardinality divided by the number of labels."""
    n_unlabelled: int | None = None
    """Number of examples without labels."""
    n_with_unknown: int | None = None
    """Number of examples with unknown labels."""
    n_empty: int | None = None
    """Number of documents without content."""
    n_duplicates: int | None = None
    """Number of documents that are equal to an earlier one."""
    n_conflicting: int | None = None
    """Number of these documents whose labels differ from the labels of the earlier one."""
    n_weighted: int | None = None
    """Number of examples with a weight other than 1."""
    splits: SplitCounts | None = None
    """Number of examples of each part."""
    folds: dict[str, int] | None = None
    """Number of examples of each fold. Absent if no example has a fold."""
    n_bad_records: int | None = None
    """Number of bad records that were skipped."""
    warnings: list[str] | None = None
    """Warnings for people, in full sentences."""
    error: Problem | None = None
    """Reason of the failure, with the first bad records. Absent unless the data set has failed."""
    lineage: Lineage | None = None
    """What the data set was made from. Absent in lists, and if it was made from an upload only."""


class DatasetPage(ResponseModel):
    """A page of data sets."""

    items: list[Dataset]
    """Data sets of this page."""
    next_cursor: NextCursor = None


class LabelItem(ResponseModel):
    """A label of a data set with its number of examples."""

    label: str
    """The label."""
    count: int
    """Number of examples with the label."""
    unknown: int | None = None
    """Number of examples of which the label is unknown. Absent if there are none."""
    parent: str | None = None
    """Parent in the label tree. Absent if the label has no parent."""


class LabelPage(ResponseModel):
    """A page of labels, in label order."""

    items: list[LabelItem]
    """Labels of this page."""
    next_cursor: NextCursor = None


class ExampleItem(ResponseModel):
    """An example of a data set. It has exactly one of text, features, email and raw_email."""

    id: str
    """Id of the example; its running number in the data set if it was uploaded without an id."""
    text: str | None = None
    """The document as plain text."""
    features: FeatureValues | None = None
    """The document as numeric features by name. Missing features are zero."""
    email: EmailParts | None = None
    """The document as the parts of an e-mail."""
    raw_email: str | None = None
    """The document as a raw e-mail message (RFC 5322) in base64."""
    labels: list[str]
    """Labels of the example, with all their ancestors if there is a label tree."""
    unknown_labels: list[str] | None = None
    """Labels of which it is not known whether they apply, with their ancestors. Absent if there are none."""
    split: ExampleSplit | None = None
    """Part of the example. Absent if it belongs to no part."""
    weight: float | None = None
    """How much the example counts in a training. Absent if it is 1."""
    fold: Fold | None = None
    """Fold of the example. Absent if it has none."""
    selected_by: ReviewSelection | None = None
    """Why the example was labelled, if its labels are feedback on a decision. Absent otherwise."""


class ExamplePage(ResponseModel):
    """A page of examples, in the order of the content."""

    items: list[ExampleItem]
    """Examples of this page."""
    next_cursor: NextCursor = None
