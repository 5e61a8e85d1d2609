"""The catalog: its learners, its descriptions, and the requests that it rejects."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, get_args

import pytest

import models
from models import catalog
from models.base import Learner, LearnerParameters
from models.data.examples import Kind
from models.decisions import DecisionKind, DecisionRule
from models.errors import ParameterError


def parameters(algorithm: str, **options: Any) -> Any:
    return catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **options})


def create_features(kind: str, **options: Any) -> Any:
    return catalog.FEATURES_PARAMETERS.validate_python({"kind": kind, **options})


def decision(kind: str) -> Any:
    more: dict[str, dict[str, Any]] = {"top_k": {"k": 2}, "target": {"measure": "recall", "value": 0.9}}
    return catalog.DECISION_PARAMETERS.validate_python({"kind": kind, **more.get(kind, {})})


def test_the_union_and_the_entries_have_the_same_learners() -> None:
    members = get_args(get_args(catalog.LearnerConfig.__value__)[0])
    assert {entry.learner.parameters for entry in catalog.ENTRIES.values()} == set(members)


def _all_subclasses(base: Any) -> set[Any]:
    below = set(base.__subclasses__())
    return below.union(*(_all_subclasses(cls) for cls in below))


def test_every_learner_of_the_package_is_in_the_catalog() -> None:
    for module in pkgutil.walk_packages(models.__path__, "models."):
        importlib.import_module(module.name)
    written = {
        cls
        for cls in _all_subclasses(Learner)
        if cls.__module__.startswith("models.") and "algorithm" in vars(cls)
    }
    assert {entry.learner for entry in catalog.ENTRIES.values()} == written


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_a_learner_is_created_from_its_parameters(algorithm: str) -> None:
    learner = catalog.create_learner(parameters(algorithm), seed=7)
    assert type(learner) is catalog.ENTRIES[algorithm].learner
    assert learner.validated_parameters() == parameters(algorithm)
    assert learner.get_params().get("random_state", 7) == 7


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_a_learner_and_its_parameters_have_the_same_default_decision(algorithm: str) -> None:
    learner = catalog.create_learner(parameters(algorithm))
    assert catalog.resolve_decision(learner, None) == catalog.resolve_decision(parameters(algorithm), None)


@pytest.mark.parametrize(
    ("algorithm", "options", "default"),
    [
        ("mmp", {}, "auto"),
        ("mlpp", {}, "auto"),
        ("mlpp", {"calibrated": True}, "auto"),
        ("naive_bayes", {}, "auto"),
        ("naive_bayes", {"label_mode": "single_label"}, "single_label"),
        ("adaboost_lc", {}, "auto"),
        ("svm", {}, "auto"),
        ("h_svm", {}, "auto"),
        ("h_m3", {}, "auto"),
        ("adaboost_mh", {}, "auto"),
        ("mp_boost", {}, "auto"),
    ],
)
def test_default_decisions(algorithm: str, options: dict[str, Any], default: str) -> None:
    assert catalog.resolve_decision(parameters(algorithm, **options), None).kind == default


@pytest.mark.parametrize(
    ("algorithm", "options", "own"),
    [
        ("mmp", {}, "tuned_threshold"),
        ("mlpp", {}, "tuned_threshold"),
        ("mlpp", {"calibrated": True}, "sign"),
        ("naive_bayes", {}, "sign"),
        ("naive_bayes", {"label_mode": "single_label"}, "single_label"),
        ("svm", {}, "sign"),
        ("h_m3", {}, "sign"),
    ],
)
def test_the_decision_if_nothing_can_be_held_out(algorithm: str, options: dict[str, Any], own: str) -> None:
    assert catalog.own_decision(parameters(algorithm, **options)).kind == own


@pytest.mark.parametrize(
    ("algorithm", "options", "kind"),
    [
        ("naive_bayes", {"label_mode": "single_label"}, "auto"),
        ("naive_bayes", {"label_mode": "single_label"}, "target"),
        ("svm", {}, "calibrated_label"),
        ("mmp", {}, "calibrated_label"),
        ("mlpp", {}, "calibrated_label"),
        ("mlpp", {}, "sign"),
        ("mlpp", {}, "at_least_one"),
        ("naive_bayes", {"label_mode": "single_label"}, "sign"),
        ("naive_bayes", {"label_mode": "single_label"}, "tuned_threshold"),
        ("h_svm", {}, "single_label"),
        ("h_rls", {}, "single_label"),
        ("h_m3", {}, "single_label"),
    ],
)
def test_invalid_decisions_are_rejected(algorithm: str, options: dict[str, Any], kind: str) -> None:
    with pytest.raises(ParameterError, match=f"{kind} is not valid for {algorithm}") as error_info:
        catalog.resolve_decision(parameters(algorithm, **options), decision(kind))
    assert error_info.value.pointer == "/decision/kind"


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
@pytest.mark.parametrize("kind", get_args(get_args(DecisionKind.__value__)[0]))
def test_every_decision_is_either_listed_or_rejected(algorithm: str, kind: str) -> None:
    described = next(item for item in catalog.describe() if item.algorithm == algorithm)
    listed = next(
        rule.kinds
        for rule in described.decisions
        if all(described.defaults[name] == value for name, value in rule.when.items())
    )
    if kind in listed:
        assert catalog.resolve_decision(parameters(algorithm), decision(kind)).kind == kind
    else:
        with pytest.raises(ParameterError):
            catalog.resolve_decision(parameters(algorithm), decision(kind))


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_default_features_suit_the_learner_and_the_documents(algorithm: str) -> None:
    described = next(item for item in catalog.describe() if item.algorithm == algorithm).default_features
    kinds: tuple[Kind, ...] = get_args(Kind)
    defaults: dict[str, Any] = {
        kind: catalog.resolve_features(parameters(algorithm), None, kind) for kind in kinds
    }
    assert defaults == dict(described)
    assert defaults["email"].analyzer.stop_words == "auto"
    if catalog.ENTRIES[algorithm].learner.needs_scaled_features:
        assert (defaults["text"].scaling, defaults["features"].scaling) == ("unit", "max_abs")
    else:
        assert defaults["text"].scaling == "none"


def test_requested_features_replace_the_default_ones_and_are_checked() -> None:
    requested = create_features("text", weighting="tf")
    assert catalog.resolve_features(parameters("svm"), requested, "text") is requested
    with pytest.raises(ParameterError, match="use numeric"):
        catalog.resolve_features(parameters("svm"), requested, "features")


@pytest.mark.parametrize(
    ("features", "kind"), [("numeric", "text"), ("numeric", "email"), ("text", "features")]
)
def test_features_of_the_wrong_kind_are_rejected(features: str, kind: Kind) -> None:
    with pytest.raises(ParameterError, match="use") as error_info:
        catalog.check_features(create_features(features), parameters("svm"), kind)
    assert error_info.value.pointer == "/features/kind"


def test_local_selection_is_rejected_if_the_learner_ignores_it() -> None:
    local = create_features("text", selection={"kind": "information_gain", "policy": "local"})
    with pytest.raises(ParameterError, match="round_robin") as error_info:
        catalog.check_features(local, parameters("svm"), "text")
    assert error_info.value.pointer == "/features/selection/policy"


def test_default_thresholds() -> None:
    assert catalog.default_threshold(parameters("svm"), 5) == 0.0
    assert catalog.default_threshold(parameters("mlpp"), 5) == 2.0
    assert catalog.default_threshold(parameters("mlpp", calibrated=True), 5) == 0.0
    assert [name for name in sorted(catalog.ENTRIES) if not catalog.has_zero_threshold(parameters(name))] == [
        "mlpp",
        "mmp",
    ]
    assert catalog.has_zero_threshold(parameters("mlpp", calibrated=True))


def test_the_catalog_describes_every_learner() -> None:
    described = catalog.describe()
    assert [item.algorithm for item in described] == sorted(catalog.ENTRIES)
    for item in described:
        entry = catalog.ENTRIES[item.algorithm]
        properties = item.parameters["properties"]
        assert set(properties) == {"algorithm", *item.defaults}
        assert properties["algorithm"]["const"] == item.algorithm
        assert all(properties[name].get("description") for name in item.defaults), item.algorithm
        assert item.summary.endswith(".")
        assert entry.source == item.source
        assert item.parameters["description"]
        assert catalog.LearnerDescription.model_validate_json(item.model_dump_json()) == item


@pytest.mark.parametrize("algorithm", sorted(catalog.ENTRIES))
def test_parameter_classes_have_consistent_names_and_reject_unknown_fields(algorithm: str) -> None:
    cls: type[LearnerParameters] = catalog.ENTRIES[algorithm].learner.parameters
    assert cls.__name__ == f"{catalog.ENTRIES[algorithm].learner.__name__}Parameters"
    with pytest.raises(ValueError, match="no_such_parameter"):
        parameters(algorithm, no_such_parameter=1)


@pytest.mark.parametrize("union", [catalog.LearnerConfig, catalog.FeaturesConfig, DecisionRule])
def test_unions_have_a_required_discriminator(union: Any) -> None:
    members, field = get_args(union.__value__)
    for member in get_args(members):
        tag = member.model_fields[field.discriminator]
        assert tag.is_required(), member
        assert len(get_args(tag.annotation)) == 1
        assert member.model_config["extra"] == "forbid"
