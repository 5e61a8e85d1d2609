"""Which fields of a message a learner reads, with which weight, and whether as terms of their own."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

Weight: TypeAlias = Annotated[float, Field(ge=0, le=100)]

_WEIGHT_PARTS: Final = 1024
"""Weights are multiples of the inverse of this number, so that sums of them are exact and do not depend on
the order of the words."""

QUOTE_MARK: Final = ">"
"""Begins the terms of quoted text, if these are terms of their own. No word contains it."""


class Part(NamedTuple):
    """A text of a document that a learner reads.

    Attributes:
        text: the text.
        weight: what each occurrence of a term in it counts; a positive multiple of 1/1024, so that sums are
            exact.
        field: the name of the field that it comes from.
        prefix: begins its terms, so that they differ from the same terms in other fields; usually empty.
    """

    text: str
    weight: float = 1.0
    field: str = "text"
    prefix: str = ""


class FieldUse(NamedTuple):
    """How a field is read: its name, the weight of its words, and what begins its terms."""

    field: str
    weight: float
    prefix: str


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class TextFieldParameters(_Model):
    """How the words of a field with text are used."""

    weight: Weight = 1.0
    """What an occurrence of a word counts, rounded to multiples of 1/1024. 0 leaves the field out. With the
    weighting `binary`, only 0 matters."""

    own_terms: bool = False
    """Whether the words of the field are terms of their own, which begin with the name of the field and a
    colon, for example `subject:invoice`. Otherwise a word is the same term in all such fields."""


class QuotedTextParameters(_Model):
    """How the words of quoted text are used."""

    weight: Weight = 0.5
    """What an occurrence of a word counts, rounded to multiples of 1/1024. 0 leaves quoted text out. If the
    new text has fewer than 20 characters, quoted text is used like new text."""

    own_terms: bool | None = None
    """Whether the words are terms of their own, which begin with `>`. By default, they are with the weighting
    `binary`, which cannot express that a word counts less, and are not with other weightings."""


class HeaderFieldParameters(_Model):
    """How the words of a header field are used. By default, they are not used."""

    weight: Weight = 0.0
    """What an occurrence of a word counts, rounded to multiples of 1/1024. 0 leaves the field out. With the
    weighting `binary`, only 0 matters."""

    own_terms: bool = True
    """Whether the words are terms of their own, which begin with the name of the field and a colon, for
    example `recipients:billing`. Otherwise a word is the same term as in the text."""


class MailFieldsParameters(_Model):
    """Which fields of an e-mail are read.

    The default reads what people write, and no addresses and domains: with them, a model learns who writes
    about what, stores names of people and organizations, and fails on new senders.
    """

    subject: TextFieldParameters = TextFieldParameters()
    """The subject."""

    new_text: TextFieldParameters = TextFieldParameters()
    """The text that the author wrote."""

    attachment_names: TextFieldParameters = TextFieldParameters()
    """The file names of attachments."""

    quoted_text: QuotedTextParameters = QuotedTextParameters()
    """Quoted and forwarded text, and signatures."""

    sender_domain: HeaderFieldParameters = HeaderFieldParameters()
    """The domain of the author. Its labels are the words: `mail.example.org` has the words *mail*, *example*
    and *org*."""

    recipients: HeaderFieldParameters = HeaderFieldParameters()
    """The addresses in `To` and `Cc`. `billing@example.org` has the words *billing*, *example* and *org*."""

    list_id: HeaderFieldParameters = HeaderFieldParameters()
    """The mailing list in `List-Id`."""

    attachment_types: HeaderFieldParameters = HeaderFieldParameters()
    """The content types of attachments, such as `application/pdf`."""

    @model_validator(mode="after")
    def _check_some_field(self) -> Self:
        if not any(getattr(self, name).weight for name in _ORDER):
            raise ValueError("all fields have the weight 0; at least one field needs a positive weight")
        return self


FieldName: TypeAlias = Literal[
    "subject",
    "sender_domain",
    "recipients",
    "list_id",
    "attachment_types",
    "new_text",
    "attachment_names",
    "quoted_text",
]

_ORDER: Final[tuple[FieldName, ...]] = FieldName.__args__  # type: ignore[attr-defined]  # of a Literal
"""The order in which fields are read: the longest last, because a limit can cut them."""

PREFIXES: Final = (QUOTE_MARK, *(f"{name}:" for name in _ORDER if name != "quoted_text"))
"""All that terms of their own can begin with."""


class MailFields:
    """How the fields of messages are read, in the order of reading.

    Args:
        parameters: parameters of the fields.
        binary: whether the weights of features are binary.

    Attributes:
        usual: the fields that are read.
        short: the same for messages with little new text, whose quoted text is used like new text.
    """

    def __init__(self, parameters: MailFieldsParameters, *, binary: bool = False) -> None:
        own_new = parameters.new_text
        new = _use("new_text", own_new.weight, own_terms=own_new.own_terms)
        usual: list[FieldUse] = []
        short: list[FieldUse] = []
        for name in _ORDER:
            field = getattr(parameters, name)
            own_terms = binary if field.own_terms is None else field.own_terms
            if field.weight > 0:
                use = _use(name, field.weight, own_terms=own_terms)
                usual.append(use)
                like_new = name == "quoted_text" and own_new.weight > 0
                short.append(FieldUse(name, new.weight, new.prefix) if like_new else use)
        self.usual = tuple(usual)
        self.short = tuple(short)


def _use(name: str, weight: float, *, own_terms: bool) -> FieldUse:
    prefix = QUOTE_MARK if name == "quoted_text" else f"{name}:"
    exact = max(1, round(weight * _WEIGHT_PARTS)) / _WEIGHT_PARTS
    return FieldUse(name, exact, prefix if own_terms else "")


DEFAULT_FIELDS: Final = MailFields(MailFieldsParameters())
"""The fields that are read by default, with weights that are not binary."""
