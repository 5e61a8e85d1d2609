"""Base classes of the options of a file format."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class FormatOptionsBase(BaseModel):
    """Base of the options of one format. Subclasses add a literal ``format`` and their own fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


Name = Annotated[str, Field(min_length=1, max_length=1000)]
"""The name of a column, an attribute or a header in the file."""


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


class TableOptions(FormatOptionsBase):
    """The roles of the columns of a table.

    By default, the columns ``text``, ``labels``, ``id`` and ``split`` have the roles that their names state.
    If there is no column ``text``, all columns without another role are numeric features.
    """

    text: Name | None = None
    """The column of the text."""
    features: Annotated[list[Name], Field(min_length=1)] | None = None
    """The columns of the numeric features."""
    email: EmailColumns | None = None
    """The columns of the parts of an e-mail."""
    labels: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    """Either one column that contains all labels, or a list of label columns, each with 0 or 1."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """The separator between the labels in a cell. White space around labels is removed."""
    id: Name | None = None
    """The column of the id."""
    split: Name | None = None
    """The column with ``train`` or ``test``. An empty cell means neither."""
