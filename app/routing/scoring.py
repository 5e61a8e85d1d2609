"""Score messages with a loaded version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.serving.loaded_version import LoadedVersion
from models.base.abilities import can_explain
from models.decisions import LabelSetRule
from models.mail import MailDocument
from models.pipeline import Explanation, Pipeline, Ranking


@dataclass(frozen=True, slots=True)
class ScoredMessage:
    """The answer of a version for one message.

    Attributes:
        ranking: ranks all labels for the message.
        explanation: explanations of the predicted labels; empty if not requested.
    """

    ranking: Ranking
    explanation: Sequence[Explanation] = ()


def reads_mail(pipeline: Pipeline) -> bool:
    """Whether a pipeline can predict for messages: it was not trained on numeric features."""
    return pipeline.kind_ != "features"


def to_documents(pipeline: Pipeline, mails: Sequence[MailDocument]) -> Sequence[MailDocument] | list[str]:
    """Convert messages to documents of the kind that a pipeline was trained on, which reads mail."""
    return mails if pipeline.kind_ == "email" else [mail.learning_text() for mail in mails]


def score(version: LoadedVersion, mail: MailDocument, rule: LabelSetRule, *, explain: bool) -> ScoredMessage:
    """Predict for a message with a version that reads mail.

    Args:
        version: the version.
        mail: the message.
        rule: how scores become the label set.
        explain: whether to explain the predicted labels, if the learner can.

    Raises:
        UnsuitableDataError: a score is not finite.
    """
    pipeline = version.pipeline
    documents = to_documents(pipeline, (mail,))
    ranking = pipeline.rank(documents, rule=rule)
    if not (explain and can_explain(pipeline.learner_)):  # a message is routed even without an explanation
        return ScoredMessage(ranking)
    (prediction,) = pipeline.predictions(documents, top=1, explain=True, rule=rule)
    return ScoredMessage(ranking, prediction.explanation)
