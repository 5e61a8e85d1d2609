"""The decisions ``auto`` and ``target`` in the pipeline: what they use, report and guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models import catalog
from models.calibration import fit_label_calibration
from models.data.examples import Examples
from models.decisions import AutoDecision, HeldOut, TargetDecision
from models.decisions.apply import NEVER
from models.decisions.auto import LabelSetSizes, tune_auto
from models.decisions.report import DecisionReport
from models.decisions.tune import tune_target
from models.labels import LabelTree
from models.labels.indicator_matrix import indicator_matrix
from models.pipeline import Pipeline, TrainingSet
from models.splits import stratified_folds
from tests.models.pipeline.test_pipeline_thresholds import WORDS, held_out, random_texts

TREE = LabelTree({"ash": "wood", "birch": "wood", "cedar": "wood"})


def pipeline(learner: str, decision: dict[str, Any], seed: int = 2, **options: Any) -> Pipeline:
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner, **options}),
        catalog.DECISION_PARAMETERS.validate_python(decision),
        seed=seed,
    )


@pytest.mark.parametrize("learner", ["svm", "mmp", "mlpp"])
def test_auto_chooses_on_the_scores_of_the_folds(learner: str) -> None:
    source = random_texts(seed=3)
    fitted = pipeline(learner, {"kind": "auto"}).fit(source)
    choice = tune_auto(
        AutoDecision(kind="auto"),
        held_out(fitted, source),
        labels=fitted.labels_,
        sizes=LabelSetSizes(most=5, exactly_one=False),
        default=0.0 if learner == "svm" else None,
        parents=None,
    )
    np.testing.assert_allclose(fitted.rule_.thresholds, choice.rule.thresholds)
    assert (fitted.rule_.at_least, fitted.rule_.at_most) == (choice.rule.at_least, choice.rule.at_most)
    report = fitted.decision_report_
    assert report is not None
    assert (report.source, report.examples, report.tunable_labels) == ("folds", 40, 4)
    assert report.chosen in report.alternatives
    assert report.chosen is not None
    assert report.chosen.thresholds == choice.candidate.thresholds
    assert report.chosen.values.model_dump(exclude_none=True) == choice.values[choice.candidate]
    assert len(report.alternatives) == (7 if learner == "svm" else 5)  # votes have no zero


def test_the_thresholds_of_a_target_are_those_of_the_scores_of_the_folds() -> None:
    source = random_texts(seed=3)
    decision = {"kind": "target", "measure": "recall", "value": 0.9, "scope": "per_label"}
    fitted = pipeline("svm", decision).fit(source)
    target = tune_target(
        TargetDecision.model_validate(decision),
        held_out(fitted, source),
        default=0.0,
        parents=None,
        calibrate=fit_label_calibration,
    )
    np.testing.assert_allclose(fitted.thresholds_, target.rule.thresholds)
    assert fitted.decision_report_ is not None
    assert fitted.decision_report_.chosen is not None
    assert fitted.decision_report_.chosen.values.model_dump(exclude_none=True) == target.values


def test_a_label_that_cannot_reach_the_precision_is_never_predicted_and_named() -> None:
    source = random_texts(seed=3)
    decision = {"kind": "target", "measure": "precision", "value": 0.7, "scope": "per_label"}
    fitted = pipeline("svm", decision).fit(source)
    rare = fitted.labels_.index("rare")
    assert not fitted.rule_.predicted(np.full((1, 5), 1e300))[0, rare]
    named = [text for text in fitted.summary_.warnings if text.startswith("decision: labels that are never")]
    assert any(text.endswith("judge their precision: rare") for text in named)
    assert fitted.decision_report_ is not None
    assert fitted.decision_report_.unreachable_labels == (fitted.thresholds_ == NEVER).sum()


@pytest.mark.parametrize(
    ("learner", "own", "threshold"), [("svm", "sign", 0.0), ("mlpp", "tuned_threshold", 0.5)]
)
@pytest.mark.parametrize("kind", ["auto", "target"])
def test_if_nothing_can_be_held_out_the_decision_is_the_learners_own(
    learner: str, own: str, threshold: float, kind: str
) -> None:
    phases = set()
    more = {"measure": "recall", "value": 0.9} if kind == "target" else {}
    source = Examples("text", ["ash", "oak", "fir"], [("a",), ("a", "b"), ()])
    fitted = pipeline(learner, {"kind": kind, "at_most": 1, **more})
    fitted.fit_training(TrainingSet(source), monitor=lambda progress: phases.add(progress.phase))
    assert fitted.thresholds_.tolist() == [threshold] * 2
    assert (fitted.rule_.at_least, fitted.rule_.at_most) == (0, 1)
    assert fitted.decision_report_ == DecisionReport.model_validate({"fallback": own})
    assert phases == {"features", "training"}


def test_validation_examples_take_the_place_of_folds() -> None:
    training, validation = random_texts(seed=3), random_texts(seed=4)
    phases = set()
    fitted = pipeline("svm", {"kind": "auto"})
    fitted.fit_training(
        TrainingSet(training, validation), monitor=lambda progress: phases.add(progress.phase)
    )
    assert phases == {"features", "training"}
    Y = indicator_matrix(validation.labels, fitted.labels_)
    choice = tune_auto(
        AutoDecision(kind="auto"),
        HeldOut(
            scores=fitted.scores(validation),
            Y=Y,
            unknown=None,
            folds=stratified_folds(Y, 3, seed=2),
            tunable=np.array([label != "rare" for label in fitted.labels_]),
        ),
        labels=fitted.labels_,
        sizes=LabelSetSizes(most=5, exactly_one=False),
        default=0.0,
        parents=None,
    )
    np.testing.assert_array_equal(fitted.thresholds_, choice.rule.thresholds)
    assert fitted.decision_report_ is not None
    assert fitted.decision_report_.source == "validation"


@pytest.mark.parametrize("learner", ["h_svm", "h_rls", "h_m3", "svm"])
def test_label_sets_are_closed_if_those_of_the_sign_rule_are(learner: str) -> None:
    source = random_texts(seed=5)
    options = {"passes": 3} if learner == "h_m3" else {}
    fitted = pipeline(learner, {"kind": "auto"}, **options).fit(source, tree=TREE)
    sign = pipeline(learner, {"kind": "sign"}, **options).fit(source, tree=TREE)
    assert (
        fitted.closed_under_ancestors_ == sign.closed_under_ancestors_ == learner.startswith(("h_s", "h_r"))
    )
    if fitted.closed_under_ancestors_:
        noise = np.random.default_rng(0).normal(size=(50, len(fitted.labels_)))
        for labels in fitted.rule_.predicted(noise):
            chosen = {fitted.labels_[j] for j in np.flatnonzero(labels)}
            assert set(TREE.closure(chosen)) == chosen


def one_label_each(n: int) -> Examples:
    names = ["ash", "birch", "cedar"]
    texts = [f"{names[i % 3]} {WORDS[i % 5]} tree" for i in range(n)]
    return Examples("text", texts, [(names[i % 3],) for i in range(n)])


@pytest.mark.parametrize("learner", sorted(catalog.ENTRIES))
def test_data_with_exactly_one_label_gives_exactly_one_with_probabilities(learner: str) -> None:
    fitted = pipeline(learner, {"kind": "auto"}).fit(one_label_each(30))
    unseen = fitted.rank(["oak", "", "ash birch", "cedar cedar tree"])
    assert [len(labels) for labels in unseen.label_sets] == [0, 0, 1, 1], "no term of the first two is known"
    assert unseen.set_probabilities is not None
    assert fitted.decision_report_ is not None
    assert [candidate.thresholds for candidate in fitted.decision_report_.alternatives] == ["none"]


@pytest.mark.parametrize("learner", sorted(catalog.ENTRIES))
def test_exactly_one_label_is_predicted_even_if_nothing_can_be_held_out(learner: str) -> None:
    fitted = pipeline(learner, {"kind": "auto"}).fit(one_label_each(5))
    assert fitted.decision_report_ == DecisionReport(fallback="single_label")
    assert fitted.rule_.predicted(np.array([[-1e9] * 3, [1e9] * 3])).sum(axis=1).tolist() == [1, 1]
    assert fitted.calibration_ is None


def test_without_a_label_tree_no_ancestors_are_added() -> None:
    fitted = pipeline("h_svm", {"kind": "auto"}).fit(random_texts(seed=5))
    assert fitted.rule_.parents is None
    assert not fitted.closed_under_ancestors_
