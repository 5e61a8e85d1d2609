"""Build the decision on a message: the JSON that the client gets and the database stores.

``app.routing.schemas.Decision`` defines its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.api.structs import unvalidated
from app.ids import new_id
from app.routing.decision_rules import RoutingOutcome
from app.routing.schemas import Decision, MessageSummary
from app.serving.explanations import label_explanations
from app.serving.schemas import RankedLabel
from models.mail import MailDocument
from models.pipeline import Explanation

_new_decision = unvalidated(Decision)
_new_summary = unvalidated(MessageSummary)


def new_decision(
    router: str,
    model: str,
    version: int | None,
    outcome: RoutingOutcome,
    message: MessageSummary,
    *,
    ranking: Sequence[RankedLabel] = (),
    explanation: Sequence[Explanation] = (),
    fallback_reason: str | None = None,
) -> Decision:
    """Return a new decision.

    Args:
        router: name of the router.
        model: name of the model that decided.
        version: number of the version that decided, or could not decide; None if it does not exist.
        outcome: the result of the router's rules.
        message: the summary of the message.
        ranking: the labels with the highest scores.
        explanation: explanations of predicted labels.
        fallback_reason: why the version could not decide; None if it decided.
    """
    return _new_decision(
        decision_id=new_id("dec"),
        router=router,
        model=model,
        version=version,
        disposition=outcome.disposition,
        departments=outcome.departments,
        destinations=outcome.destinations,
        ranking=list(ranking),
        set_probability=outcome.set_probability,
        review_reason=outcome.review_reason,
        explanation=label_explanations(explanation) or None,
        fallback_reason=fallback_reason,
        message=message,
    )


def message_summary(
    mail: MailDocument, *, keep_text: bool, unknown_words: float | None = None
) -> MessageSummary:
    """Return the summary of a message.

    Args:
        mail: the message.
        keep_text: whether the summary contains text of the message.
        unknown_words: share of its words that the version does not know; None if unknown.
    """
    return _new_summary(
        message_id=mail.message_id,
        subject=mail.subject if keep_text else None,
        sender=mail.sender if keep_text else None,
        automated=mail.automated,
        defects=mail.defects,
        truncated=mail.truncated,
        unknown_words=None if unknown_words is None else round(unknown_words, 4),
    )


def predicted_labels_of(content: dict[str, Any]) -> list[str]:
    """Return the labels of the departments of a stored decision, best first."""
    return [searchable_label(department["label"]) for department in content.get("departments", ())]


def searchable_label(label: str) -> str:
    """Return a label as a text that PostgreSQL can store."""
    return label.replace("\0", "")
