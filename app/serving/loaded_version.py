"""A model version in memory, with everything that its predictions need."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from app.api.structs import to_json
from app.serving.latency_estimate import CostEstimate
from app.serving.responses import predictions
from app.serving.snapshot import ServedRouter
from models import artifact
from models.data.examples import FeatureRows
from models.decisions import LabelSetRule
from models.errors import CoveyError
from models.mail import MailDocument, read_message
from models.pipeline import Pipeline

SAMPLE_FEATURES = 50
"""Number of features of the document that is predicted for when a version is loaded."""

SAMPLE_BYTES = 512
"""Approximate size of a request with this document."""


@dataclass(frozen=True, slots=True)
class RouterRule:
    """The rule by which a router turns the scores of a version into label sets.

    Attributes:
        rule: the rule.
        unmet: what the router needs and the version does not have, so that people must review its decisions;
            None if the version has everything.
    """

    rule: LabelSetRule
    unmet: str | None = None


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A version in memory. It is immutable except for what is computed from it, and all requests share it.

    Attributes:
        pipeline: the fitted pipeline. Its arrays are memory maps of the artifact.
        ranking_cost: estimates how long its rankings take.
        explanation_cost: estimates how long its predictions with explanations take.
        message_cost: estimates how long it takes to read and rank a message.
        rules: the rules of routers that have used the version; see ``app.routing.policies``.
    """

    pipeline: Pipeline
    ranking_cost: CostEstimate = field(default_factory=CostEstimate)
    explanation_cost: CostEstimate = field(default_factory=CostEstimate)
    message_cost: CostEstimate = field(default_factory=CostEstimate)
    rules: WeakKeyDictionary[ServedRouter, RouterRule] = field(default_factory=WeakKeyDictionary)


def load(path: Path) -> LoadedVersion:
    """Load a version, verify it, and predict for a document.

    The prediction builds what is built on first use, so that no request waits for it.

    Raises:
        ArtifactError: the file is damaged, or this release cannot use it.
    """
    pipeline = artifact.load(path)
    version = LoadedVersion(pipeline)
    warm_up(version)
    return version


def warm_up(version: LoadedVersion) -> None:
    """Predict for a document in each way that a request can ask for, and estimate how long that takes."""
    pipeline = version.pipeline
    documents = sample_documents(pipeline)

    def respond(top: int | None = None) -> bytes:
        return to_json(predictions(pipeline.labels_, pipeline.rank(documents, top=top)))

    ways: list[tuple[CostEstimate, Callable[[], object]]] = [
        (version.ranking_cost, lambda: respond(top=1)),
        (version.ranking_cost, respond),
        # The limit prevents explanations of thousands of labels, which no client needs.
        (
            version.explanation_cost,
            lambda: pipeline.predictions(documents, top=1, explain=True, max_labels=1000),
        ),
    ]
    for cost, predict in ways:
        # Not every learner supports explanations, and a version may refuse the document.
        with suppress(CoveyError):
            predict()  # builds what is built on first use
            started = time.thread_time()
            predict()
            cost.record(1, SAMPLE_BYTES, time.thread_time() - started)


def sample_documents(pipeline: Pipeline) -> list[str] | list[MailDocument] | FeatureRows:
    """Return a document of the kind that a pipeline was trained on, with some of its features."""
    names = pipeline.features_.names_
    names = names[:: max(1, len(names) // SAMPLE_FEATURES)]
    if pipeline.kind_ == "features":
        return FeatureRows(names, csr_array(np.ones((1, len(names)))))
    text = " ".join(names)
    if pipeline.kind_ == "email":
        return [read_message(f"Subject: {names[0] if names else ''}\r\n\r\n{text}\r\n".encode())]
    return [text]
