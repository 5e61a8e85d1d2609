"""The content of a decision: the JSON object that the API returns and the database stores.

It is built without the models of ``app.routing.schemas``, which document it: validating and serializing them
would take longer than the prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from app.db.tables import MAX_MESSAGE_ID
from app.ids import new_id
from app.routing.decision_rules import RankedLabel, RoutingOutcome
from app.serving.decision_writer import DecisionRow
from app.serving.explanations import explanation_content
from models.mail import MailDocument
from models.pipeline import Explanation

Content = dict[str, Any]
"""A JSON object as documented by ``app.routing.schemas.Decision``."""


def decision_content(
    router: str,
    model: str,
    version: int | None,
    outcome: RoutingOutcome,
    message: Content,
    *,
    ranking: Sequence[RankedLabel] = (),
    explanation: Sequence[Explanation] = (),
    fallback_reason: str | None = None,
) -> Content:
    """Return a new decision. Fields without a value are left out.

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
    content: Content = {
        "decision_id": new_id("dec"),
        "router": router,
        "model": model,
        "version": version,
        "disposition": outcome.disposition,
        "departments": [
            {"label": item.label, "destination": destination, "score": item.score}
            if item.probability is None
            else {
                "label": item.label,
                "destination": destination,
                "score": item.score,
                "probability": item.probability,
            }
            for item, destination in outcome.departments
        ],
        "destinations": outcome.destinations,
        "ranking": ranking_content(ranking),
    }
    if version is None:
        del content["version"]
    if outcome.set_probability is not None:
        content["set_probability"] = outcome.set_probability
    if outcome.review_reason is not None:
        content["review_reason"] = outcome.review_reason
    if explanation:
        content["explanation"] = explanation_content(explanation)
    if fallback_reason is not None:
        content["fallback_reason"] = fallback_reason
    content["message"] = message
    return content


def message_content(mail: MailDocument, *, keep_text: bool, unknown_words: float | None = None) -> Content:
    """Return the summary of a message.

    Args:
        mail: the message.
        keep_text: whether the summary contains text of the message.
        unknown_words: share of its words that the version does not know; None if unknown.
    """
    content: Content = {}
    if mail.message_id is not None:
        content["message_id"] = mail.message_id
    if keep_text:
        content["subject"] = mail.subject
    content["automated"] = mail.automated
    content["defects"] = mail.defects
    content["truncated"] = mail.truncated
    if unknown_words is not None:
        content["unknown_words"] = round(unknown_words, 4)
    return content


def ranking_content(ranking: Iterable[RankedLabel]) -> list[Content]:
    """Return a ranking, best first."""
    return [
        {"label": label, "score": score, "rank": rank}
        if probability is None
        else {"label": label, "score": score, "probability": probability, "rank": rank}
        for label, score, probability, rank in ranking
    ]


def decision_row(
    router_id: str,
    message_key: str,
    content: Content,
    response: str,
    kept_message: str | None = None,
    kept_until: datetime | None = None,
) -> DecisionRow:
    """Return the row of a decision.

    Args:
        router_id: id of the router.
        message_key: identifies the message.
        content: the decision.
        response: the part of the decision that is stored, a JSON text.
        kept_message: key of the file with the message; None if the message is not kept.
        kept_until: when the file is deleted; None if the message is not kept.
    """
    message_id = content["message"].get("message_id")
    return DecisionRow(
        content["decision_id"],
        router_id,
        content["router"],
        message_key,
        response,
        content["disposition"],
        content["sampled"],
        content.get("model"),
        content.get("version"),
        None if message_id is None else searchable_message_id(message_id),
        content.get("set_probability"),
        tuple(predicted_labels_of(content)),
        kept_message,
        kept_until,
        unknown_words=content["message"].get("unknown_words"),
    )


def predicted_labels_of(content: Content) -> list[str]:
    """Return the labels of the departments, best first, as texts that PostgreSQL can store."""
    return [department["label"].replace("\0", "") for department in content.get("departments", ())]


def searchable_message_id(message_id: str) -> str:
    """Return the part of a Message-ID by which its decision is found."""
    return message_id[:MAX_MESSAGE_ID].replace("\0", "")
