"""The query of a search for decisions."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from fastapi import Depends, Query
from pydantic import StringConstraints

from app.api.schemas import TimeParameter, VersionNumber
from app.errors import Invalid
from app.routing.decision_search import DecisionFilter, ReviewReason
from app.routing.schemas import Disposition, FeedbackState

MAX_MESSAGE_ID_LENGTH = 1000

Words: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _filter(
    disposition: Annotated[
        Disposition | None, Query(description="Only decisions with this disposition.")
    ] = None,
    label: Annotated[
        str | None, Query(min_length=1, max_length=500, description="Only decisions that predict this label.")
    ] = None,
    version: Annotated[
        VersionNumber | None, Query(description="Only decisions of the version with this number.")
    ] = None,
    from_: Annotated[
        TimeParameter | None,
        Query(alias="from", description="Only decisions of this time or later (RFC 3339)."),
    ] = None,
    to: Annotated[
        TimeParameter | None, Query(description="Only decisions before this time (RFC 3339).")
    ] = None,
    message_id: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_MESSAGE_ID_LENGTH,
            description="Only decisions on messages with this Message-ID, with or without angle brackets.",
        ),
    ] = None,
    subject: Annotated[
        Words | None,
        Query(description="Only decisions on messages whose subject contains this, in any case."),
    ] = None,
    sender: Annotated[
        Words | None,
        Query(description="Only decisions on messages whose author's address contains this text."),
    ] = None,
    text: Annotated[
        Words | None,
        Query(
            description="Only decisions on kept messages whose subject or body contains this text. It needs "
            "the scope `train`, as reading the messages does."
        ),
    ] = None,
    feedback: Annotated[
        FeedbackState | None,
        Query(
            description="Only decisions without feedback (`none`), with feedback that has exactly the "
            "predicted labels (`agreed`), or with feedback that has other labels (`corrected`)."
        ),
    ] = None,
    review: Annotated[
        ReviewReason | None,
        Query(
            description="Only decisions whose message a person should review (`any`): because it belongs to "
            "the random sample (`sample`), because the version is not sure (`doubt`, the disposition "
            "`review`), or because it went to the fallback (`fallback`)."
        ),
    ] = None,
    order: Annotated[
        Literal["newest_first", "oldest_first"], Query(description="Order of the decisions.")
    ] = "newest_first",
) -> DecisionFilter:
    if from_ is not None and to is not None and from_ >= to:
        message = "must be later than from"
        raise Invalid(f"to {message}", errors=[("/query/to", message)])
    if message_id is not None and message_id.startswith("<") and message_id.endswith(">"):
        message_id = message_id[1:-1]
    return DecisionFilter(
        disposition=disposition,
        label=label,
        version=version,
        from_=from_,
        to=to,
        message_id=message_id,
        subject=subject,
        sender=sender,
        text=text,
        feedback=feedback,
        review=review,
        oldest_first=order == "oldest_first",
    )


DecisionQuery: TypeAlias = Annotated[DecisionFilter, Depends(_filter)]
