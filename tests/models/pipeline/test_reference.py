"""A fitted pipeline keeps what it predicts for documents like those of its training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models import catalog
from models.artifact import load, save
from models.data.examples import Examples
from models.pipeline import Pipeline
from models.pipeline.reference import SHARE_BINS, Reference, bins_of, histogram
from tests.models.pipeline.test_pipeline_thresholds import random_texts

ALGORITHM = {"algorithm": "naive_bayes"}


def pipeline(decision: dict[str, object] | None = None) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python(ALGORITHM),
        None if decision is None else catalog.DECISION_PARAMETERS.validate_python(decision),
    )


def reference_of(fitted: Pipeline) -> Reference:
    assert fitted.reference_ is not None
    return fitted.reference_


def test_the_reference_counts_the_predictions_for_held_out_folds() -> None:
    source = random_texts(seed=3)
    fitted = pipeline().fit(source)
    reference = reference_of(fitted)
    assert (reference.source, reference.examples) == ("folds", source.n_examples)
    assert reference.set_probabilities is not None
    assert sum(reference.set_probabilities) == source.n_examples
    assert reference.unknown_terms is not None
    assert sum(reference.unknown_terms) == source.n_examples
    assert reference.mean_unknown_terms is not None
    # The learner makes errors on documents that it did not see, and the reference has them.
    seen = fitted.rank(source.documents).label_sets
    counts = np.bincount([label for labels in seen for label in labels], minlength=len(fitted.labels_))
    assert reference.label_counts != counts.tolist()


def test_the_reference_counts_the_predictions_for_validation_examples() -> None:
    source, validation = random_texts(seed=3), random_texts(seed=4)
    fitted = pipeline().fit(source, validation=validation)
    reference = reference_of(fitted)
    ranking = fitted.rank(validation.documents)
    assert (reference.source, reference.examples) == ("validation", validation.n_examples)
    assert reference.without_label == sum(not labels for labels in ranking.label_sets)
    counts = np.bincount(
        [label for labels in ranking.label_sets for label in labels], minlength=len(fitted.labels_)
    )
    assert reference.label_counts == counts.tolist()
    assert ranking.set_probabilities is not None
    assert reference.set_probabilities == histogram(ranking.set_probabilities)


def test_without_held_out_examples_the_reference_counts_the_true_labels() -> None:
    sets = [("a",), ("a", "b"), (), ("b",), ("a",)]
    fitted = pipeline({"kind": "sign"}).fit(Examples("text", [f"word{i} same" for i in range(5)], sets))
    reference = reference_of(fitted)
    assert (reference.source, reference.examples) == ("training", 5)
    assert (reference.label_counts, reference.without_label) == ([3, 2], 1)
    assert reference.set_probabilities is None
    assert reference.mean_unknown_terms == 0.5


def test_the_reference_is_saved(tmp_path: Path) -> None:
    fitted = pipeline().fit(random_texts(seed=3))
    save(fitted, tmp_path / "model")
    assert load(tmp_path / "model").reference_ == fitted.reference_


def test_bounds_of_bins_belong_to_the_bin_above() -> None:
    assert bins_of(np.arange(SHARE_BINS + 1) / SHARE_BINS).tolist() == [*range(SHARE_BINS), SHARE_BINS - 1]


def test_one_document_has_its_share_of_unknown_terms() -> None:
    fitted = pipeline({"kind": "sign"}).fit(Examples("text", ["red rose", "blue sky"], [("a",), ("b",)]))
    assert fitted.rank(["red sky balloon balloon"]).unknown_terms == 0.5
    assert fitted.rank([""]).unknown_terms is None
    assert fitted.rank(["red", "balloon"]).unknown_terms is None, "only one document has a share"
