"""Convert the documents of JSON requests to the documents that pipelines predict for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from app.datasets.schemas import EmailParts
from app.errors import Invalid, TooLarge
from app.serving.schemas import Instance, UnknownFeatures
from app.settings import Settings
from models.data.examples import FeatureRows
from models.features.numeric import NumericFeatures
from models.mail import MailDocument, read_email
from models.mail.email import Email
from models.pipeline import Pipeline

MAX_PRODUCTS: Final = 5_000_000
"""Maximum number of products of two features (``interactions: 2``) in one prediction request, and of one
document of a batch prediction."""

_MAX_LISTED_NAMES: Final = 10


def to_documents(
    pipeline: Pipeline, instances: Sequence[Instance], settings: Settings, *, field: str = "instances"
) -> list[str] | list[MailDocument] | FeatureRows:
    """Convert instances to documents of the kind that a pipeline was trained on.

    A pipeline trained on e-mail accepts text, as the text of a message. A pipeline trained on text accepts
    e-mail, as one text.

    Args:
        pipeline: the pipeline.
        instances: the documents.
        settings: the limits.
        field: the field of the request that contains the instances, for the pointers of errors.

    Raises:
        TooLarge: an instance exceeds a limit; the error has its pointer.
        Invalid: an instance cannot be converted; the error has its pointer.
    """
    for i, instance in enumerate(instances):
        if instance.text is not None and len(instance.text) > settings.max_text_chars:
            message = (
                f"the text has {len(instance.text):,} characters; the limit is {settings.max_text_chars:,}; "
                "send a part of the text"
            )
            raise TooLarge(message, errors=[(f"/{field}/{i}/text", message)])
    if pipeline.kind_ == "features":
        rows = _to_feature_rows(instances, field)
        check_products(pipeline, rows, field=field)
        return rows
    if pipeline.kind_ == "email":
        return [_to_mail(instance, f"/{field}/{i}") for i, instance in enumerate(instances)]
    return [
        instance.text if instance.text is not None else _to_mail(instance, f"/{field}/{i}").learning_text()
        for i, instance in enumerate(instances)
    ]


def check_products(pipeline: Pipeline, rows: FeatureRows, *, field: str = "instances") -> None:
    """Check how many products of two features a pipeline would compute for rows.

    Raises:
        TooLarge: there are too many.
    """
    if not isinstance(pipeline.features_, NumericFeatures):
        return
    n_products, limit = pipeline.features_.n_products(rows), MAX_PRODUCTS
    if n_products > limit:
        message = (
            f"this model multiplies each two features of an instance, which gives {n_products:,} products; "
            f"the limit is {limit:,}; send fewer {field} or features"
        )
        raise TooLarge(message, errors=[(f"/{field}", message)])


def find_unknown_features(pipeline: Pipeline, names: Sequence[str]) -> UnknownFeatures | None:
    """Return the feature names that a pipeline does not know; None if it knows all of them.

    Args:
        pipeline: a pipeline that was trained on numeric features.
        names: distinct names of features.
    """
    if not isinstance(pipeline.features_, NumericFeatures):
        return None
    unknown = pipeline.features_.unknown_names(names)
    return UnknownFeatures(count=len(unknown), names=unknown[:_MAX_LISTED_NAMES]) if unknown else None


def read_json_email(email: EmailParts | None, raw_email: str | None, *, pointer: str = "") -> MailDocument:
    """Read an e-mail of a JSON request.

    Args:
        email: the parts of the message; None if the request has the raw message.
        raw_email: the raw message in base64; ignored if there are parts.
        pointer: JSON pointer of the object that has the two fields.

    Raises:
        Invalid: ``raw_email`` is not base64. Defects inside a message are no errors, see
            :class:`models.mail.MailDocument`.

    >>> read_json_email(None, "U3ViamVjdDogSGkKCkhlbGxv").new_text
    'Hello'
    """
    return read_email(json_email(email, raw_email, pointer=pointer))


def json_email(email: EmailParts | None, raw_email: str | None, *, pointer: str = "") -> Email:
    """Return the e-mail of a JSON request without reading its content; see ``read_json_email``."""
    if email is not None:
        return Email(
            subject=email.subject,
            from_=email.from_,
            to=email.to,
            text=email.text,
            html=email.html,
            list_id=email.list_id,
            attachments=tuple((part.name, part.content_type) for part in email.attachments),
        )
    try:
        return Email(raw=base64.b64decode(raw_email or "", validate=True))
    except (binascii.Error, ValueError) as error:
        message = "raw_email is not valid base64"
        raise Invalid(message, errors=[(f"{pointer}/raw_email", message)]) from error


def _to_mail(instance: Instance, pointer: str) -> MailDocument:
    if instance.text is not None:
        return read_email(Email(text=instance.text))
    if instance.features is not None:
        message = "this model was trained on text or e-mail; send text, email or raw_email"
        raise Invalid(message, errors=[(f"{pointer}/features", message)])
    return read_json_email(instance.email, instance.raw_email, pointer=pointer)


def _to_feature_rows(instances: Sequence[Instance], field: str) -> FeatureRows:
    names: dict[str, int] = {}
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for i, instance in enumerate(instances):
        if instance.features is None:
            message = "this model was trained on numeric features; send features"
            raise Invalid(message, errors=[(f"/{field}/{i}", message)])
        for name, value in instance.features.items():
            columns.append(names.setdefault(name, len(names)))
            values.append(value)
        ends.append(len(columns))
    matrix = csr_array(
        (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int64), ends),
        shape=(len(instances), len(names)),
    )
    return FeatureRows(list(names), matrix)
