"""Base classes of the options of a file format."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from models.data.examples import Split
from models.data.values.scalars import split_words as index_split_words


class FormatOptionsBase(BaseModel):
    """Base of the options of one format. Subclasses add a literal ``format`` and their own fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


Name = Annotated[str, Field(min_length=1, max_length=1000)]
"""The name of a column, an attribute or a header in the file."""

Names = Annotated[list[Name], Field(min_length=1)]

_NAME = {"type": "string", "minLength": 1, "maxLength": 1000}
LabelsOption = Annotated[
    Name | Names,
    WithJsonSchema({**_NAME, "x-also-accepted": [{"type": "array", "items": _NAME, "minItems": 1}]}),
]
"""The column of the labels. A list of label columns has an option of its own, and is accepted here, too."""


def _check_split_words(words: dict[Split, list[str]]) -> dict[Split, list[str]]:
    index_split_words(words)
    return words


_WORDS = {"type": "array", "items": _NAME}
SplitWords = Annotated[
    dict[Split, list[Name]],
    AfterValidator(_check_split_words),
    WithJsonSchema(
        {
            "type": "object",
            "properties": dict.fromkeys(get_args(Split), _WORDS),
            "additionalProperties": False,
        }
    ),
]
"""Further words for each split; no word stands for two splits."""


class EmailColumns(BaseModel):
    """The columns of a table that contain the parts of an e-mail."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    subject: Name | None = None
    """The column of the subject line."""
    from_: Annotated[Name | None, Field(alias="from")] = None
    """The column of the From line."""
    to: Name | None = None
    """The column of the To line."""
    text: Name | None = None
    """The column of the plain-text body."""
    html: Name | None = None
    """The column of the HTML body."""
    list_id: Name | None = None
    """The column of the List-Id line."""


class TableOptions(FormatOptionsBase):
    """The roles of the columns of a table.

    By default, the columns ``text``, ``labels``, ``id``, ``split`` and ``fold`` have the roles that their
    names state. If there is no column ``text``, all columns without another role are numeric features.
    """

    text: Name | Names | None = None
    """The columns of the text, or the only column. Several texts are joined by a blank line in this order."""
    features: Names | None = None
    """The columns of the numeric features."""
    email: EmailColumns | None = None
    """The columns of the parts of an e-mail."""
    labels: LabelsOption | None = None
    """The column that contains all labels. By default, the column ``labels``, or else ``label``."""
    label_columns: Names | None = None
    """The label columns, if each label has a column of its own, with 1 for yes, 0 for no, or -1 if it is not
    known. Set either ``labels`` or ``label_columns``."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """The separator between the labels in a cell. White space around labels is removed."""
    label_names: Names | None = None
    """The names of the labels, if the column of the labels contains their numbers, in the order of the
    numbers."""
    first_label: Literal[0, 1] = 0
    """The number of the first name in ``label_names``."""
    id: Name | None = None
    """The column of the id."""
    split: Name | None = None
    """The column with ``train``, ``validation`` or ``test``. An empty cell means none of them."""
    split_words: SplitWords | None = None
    """Further words for the splits in the column of the split, for example ``{"train": ["Lernen"]}``."""
    weight: Name | None = None
    """The column with the weight of an example in a training. An empty cell means 1. There is no default,
    because a column of this name is often a feature."""
    fold: Name | None = None
    """The column with the fold of a cross-validation, a whole number. An empty cell means no fold."""
    ignore: Names | None = None
    """Columns to omit, such as row numbers."""

    @model_validator(mode="after")
    def _labels_once(self) -> Self:
        if self.labels is not None and self.label_columns is not None:
            raise ValueError("set either labels or label_columns")
        return self

    @property
    def texts(self) -> list[str]:
        """The columns of the text."""
        return [self.text] if isinstance(self.text, str) else self.text or []

    @property
    def email_parts(self) -> dict[str, str]:
        """The columns of the parts of an e-mail, by attribute of ``Email``."""
        columns = self.email or EmailColumns()
        return {
            part: name for part in EmailColumns.model_fields if (name := getattr(columns, part)) is not None
        }

    @property
    def flags_option(self) -> str:
        """The name of the option that lists the label columns."""
        return "labels" if isinstance(self.labels, list) else "label_columns"

    @property
    def own_columns(self) -> list[str] | None:
        """The label columns; None if one column contains all labels."""
        return self.labels if isinstance(self.labels, list) else self.label_columns

    @property
    def common_column(self) -> str | None:
        """The column that contains all labels; None for the default."""
        return self.labels if isinstance(self.labels, str) else None

    @property
    def several_columns(self) -> list[str]:
        """The columns that each contain labels; empty if there is only one."""
        return getattr(self, "labels_in", None) or []
