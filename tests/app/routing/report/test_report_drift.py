"""Routed messages that are like the training do not drift, and others do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from app.routing.report.drift import DriftSums
from app.routing.report.facts import LabelCount, VersionKey, VersionReference
from app.routing.report.schemas import Drift
from models import catalog
from models.data.examples import Examples
from models.pipeline import Pipeline
from models.pipeline.reference import bins_of

VERSION: VersionKey = ("m", 1)
WORDS = {label: [f"{label}{i}" for i in range(30)] for label in ("billing", "legal", "sales")}


def texts_of(
    seed: int, n: int, shares: Sequence[float], unseen: float = 0.0
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return texts whose words hint at their label, with new words, and their labels."""
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    sets: list[tuple[str, ...]] = []
    for _ in range(n):
        label = str(rng.choice(list(WORDS), p=shares))
        other = str(rng.choice(list(WORDS)))
        words = [*rng.choice(WORDS[label], 4), *rng.choice(WORDS[other], 3)]
        words += [f"rare{rng.integers(10**6)}" for _ in range(rng.binomial(6, 0.2 + unseen))]
        texts.append(" ".join(words))
        sets.append((label,))
    return texts, sets


@pytest.fixture(scope="module")
def version() -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "naive_bayes"}),
    ).fit(Examples("text", *texts_of(0, 600, [0.5, 0.3, 0.2])))


def drift_of(version: Pipeline, shares: Sequence[float], unseen: float = 0.0) -> Drift:
    sums = DriftSums()
    for text in texts_of(1, 400, shares, unseen)[0]:
        ranking = version.rank([text])
        labels = [version.labels_[number] for number in ranking.label_sets[0]]
        assert ranking.set_probabilities is not None
        assert ranking.unknown_terms is not None
        (probability,) = bins_of(ranking.set_probabilities).tolist()
        sums.add(VERSION, "routed" if labels else "fallback", probability, 1)
        for label in labels:
            sums.add_label(LabelCount(label, 0, VERSION, "routed", None, None, None, 1))
        (bin_,) = bins_of(np.array([ranking.unknown_terms])).tolist()
        sums.add_unknown_words(VERSION, bin_, ranking.unknown_terms, 1)
    found = sums.drift({VERSION: VersionReference(version.labels_, version.reference_)}, with_bins=True)
    assert found is not None
    return found


def test_messages_like_the_training_drift_hardly_more_than_by_chance(version: Pipeline) -> None:
    drift = drift_of(version, [0.5, 0.3, 0.2])
    for value in (drift.labels, drift.set_probability, drift.unknown_words):
        assert value is not None
        assert value.population_stability_index < max(0.1, 2 * value.chance)
    assert drift.unknown_words is not None
    assert drift.unknown_words.mean == pytest.approx(drift.unknown_words.expected_mean, abs=0.03)


def test_other_shares_of_departments_are_drift(version: Pipeline) -> None:
    drift = drift_of(version, [0.1, 0.2, 0.7])
    assert drift.labels is not None
    assert drift.labels.population_stability_index > max(0.25, 2 * drift.labels.chance)


def test_new_words_are_drift(version: Pipeline) -> None:
    drift = drift_of(version, [0.5, 0.3, 0.2], unseen=0.5)
    assert drift.unknown_words is not None
    assert drift.unknown_words.population_stability_index > 0.25
    assert drift.unknown_words.expected_mean is not None
    assert drift.unknown_words.mean > drift.unknown_words.expected_mean + 0.1


def test_a_mixture_of_versions_is_compared_with_the_mixture_of_their_references(version: Pipeline) -> None:
    reference = version.reference_
    assert reference is not None
    moved = reference.model_copy(
        update={"label_counts": [0, 0, reference.examples], "without_label": 0, "source": "validation"}
    )
    references: dict[VersionKey, VersionReference] = {
        VERSION: VersionReference(version.labels_, reference),
        ("m", 2): VersionReference(version.labels_, moved),
    }
    sums = DriftSums()
    for number, labels in ((1, ["billing"] * 50 + ["legal"] * 30 + ["sales"] * 20), (2, ["sales"] * 100)):
        for label in labels:
            sums.add(("m", number), "routed", 90, 1)
            sums.add_label(LabelCount(label, 0, ("m", number), "routed", None, None, None, 1))
    drift = sums.drift(references, with_bins=False)
    assert drift is not None
    assert drift.labels is not None
    assert drift.labels.population_stability_index < 0.1
    expected, n = sums.expected_labels(references)
    assert n == 200
    assert expected["sales"] == pytest.approx(100 + 100 * reference.label_counts[2] / reference.examples)
