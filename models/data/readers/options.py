"""Base of what a user can say about a file's format."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class FormatOptions(BaseModel):
    """Base of the options of one format; subclasses add a literal ``format`` and their fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


Name = Annotated[str, Field(min_length=1, max_length=1000)]
"""A column, an attribute or a header, as it is called in the file."""


class EmailColumns(BaseModel):
    """The columns of a table that hold the parts of an e-mail."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    subject: Name | None = None
    """Column of the subject line."""
    from_: Annotated[Name | None, Field(alias="from")] = None
    """Column of the From line."""
    to: Name | None = None
    """Column of the To line."""
    text: Name | None = None
    """Column of the plain-text body."""
    html: Name | None = None
    """Column of the HTML body."""


class TableOptions(FormatOptions):
    """Which columns of a table are what.

    Without them a column ``text`` is the document where there is one (else all columns that are nothing
    else are numeric features), and ``labels``, ``id`` and ``split`` are what they are called.
    """

    text: Name | None = None
    """The column that holds the text."""
    features: Annotated[list[Name], Field(min_length=1)] | None = None
    """The columns that are numeric features."""
    email: EmailColumns | None = None
    """The columns that hold the parts of an e-mail."""
    labels: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    """Either the one column that holds all labels, or a list of columns that are each a label, 0 or 1."""
    label_separator: Annotated[str, Field(min_length=1, max_length=10)] = ","
    """What stands between two labels of a cell; white space around labels is dropped."""
    id: Name | None = None
    """The column that holds the id."""
    split: Name | None = None
    """The column that holds ``train`` or ``test``; an empty cell is neither."""
