"""Base of what a user can say about a file's format."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FormatOptions(BaseModel):
    """Base of the options of one format; subclasses add a literal ``format`` and their fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)
