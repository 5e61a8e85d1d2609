"""The roles of fields: what a field states about an example, in files of every format with named fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from models.data.examples import Split
from models.data.limits import IngestLimits
from models.data.options import TableOptions
from models.data.values.scalars import (
    DecimalMark,
    parse_fold,
    parse_id,
    parse_selected_by,
    parse_split,
    parse_weight,
)
from models.errors import BadDataError

Parser: TypeAlias = Callable[[Any, str], Any]
"""Returns the value of an attribute from the value of a field, and from the place that an error names."""


class ValueRules(NamedTuple):
    """What the values of a file mean, beyond their type.

    Attributes:
        limits: limits on names.
        split_words: words of the user for the splits.
        decimal: the decimal mark of numbers in texts; None if a text is no number.
    """

    limits: IngestLimits
    split_words: Mapping[str, Split]
    decimal: DecimalMark | None


@dataclass(frozen=True)
class Role:
    """What one field can state about an example, in addition to its labels and its document.

    Attributes:
        name: the attribute of ``Record``, the option that names the field, and the name of the field.
        parser: returns the function that returns the value of the attribute from the value of the field, and
            from the place that an error names.
        by_name: whether a field of this name has the role although it is not among fields of examples only:
            in a table, or among fields that the user names.
        is_weak: whether a field that the user does not name loses the role if it has another one.
    """

    name: str
    parser: Callable[[ValueRules], Parser]
    by_name: bool = True
    is_weak: bool = False


ROLES: Final = (
    Role("id", lambda rules: partial(parse_id, limits=rules.limits)),
    Role("split", lambda rules: partial(parse_split, words=rules.split_words)),
    Role("weight", lambda rules: partial(parse_weight, decimal=rules.decimal), by_name=False),
    Role("fold", lambda _: parse_fold, is_weak=True),
    Role("selected_by", lambda _: parse_selected_by, by_name=False),
)
"""The roles of single fields. A new one also needs an attribute of ``Record``, and an option if users may
name its field."""

DocumentKind: TypeAlias = Literal["text", "features", "email", "raw_email"]

DOCUMENT_KINDS: Final[tuple[DocumentKind, ...]] = ("text", "features", "email", "raw_email")
"""The options, and the names of fields, that contain the document of an example."""

EXAMPLE_FIELDS: Final = (
    *("id", *DOCUMENT_KINDS, "labels", "unknown_labels"),
    *(role.name for role in ROLES if role.name != "id"),
)
"""The fields of an example as the service writes it."""


class Field(NamedTuple):
    """A field of a row.

    Attributes:
        key: the key of its value in a row: a name, or the position of a column.
        name: its name, which is also that of its label or feature.
        place: the place that an error names: a column, or a JSON pointer.
    """

    key: Any
    name: str
    place: str


class Absence(NamedTuple):
    """Why a row has no document.

    Attributes:
        reason: the text of the error.
        place: the field that the error names.
    """

    reason: str
    place: str


@dataclass(frozen=True)
class Assignment:
    """The fields with a role, for rows with the same fields.

    Attributes:
        attributes: the fields of single roles.
        labels: the fields that contain all labels of an example. Those of a table are joined; of the fields
            of an object, only one may have content.
        flags: the fields that are each a label; rows may lack some.
        unknown_labels: the field that contains the unknown labels, or None.
        texts: the fields of the text.
        joins_texts: whether the text can have several fields.
        email: the fields of the parts of an e-mail, by attribute of ``Email``.
        features: the fields of numeric features; rows may lack some.
        documents: the fields that each contain a whole document. Only one may have content.
        absence: why there is no document, if a field that the user names is missing.
    """

    attributes: Sequence[tuple[Role, Field]] = ()
    labels: Sequence[Field] = ()
    flags: Sequence[Field] = ()
    unknown_labels: Field | None = None
    texts: Sequence[Field] = ()
    joins_texts: bool = False
    email: Mapping[str, Field] = field(default_factory=dict)
    features: Sequence[Field] = ()
    documents: Sequence[tuple[DocumentKind, Field]] = ()
    absence: Absence | None = None


def named_document(options: TableOptions) -> DocumentKind | None:
    """Return the kind of document whose fields the user names, if any.

    Raises:
        BadDataError: the user names the fields of several kinds.
    """
    kinds = [kind for kind in DOCUMENT_KINDS if getattr(options, kind, None) is not None]
    if len(kinds) > 1:
        raise BadDataError(f"the options set {' and '.join(kinds)}; set only one of them")
    return kinds[0] if kinds else None
