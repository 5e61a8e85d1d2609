"""Fill in the defaults of an experiment request, and reject requests whose parts do not fit together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from app.db import tables
from app.errors import Invalid, ServiceError, from_library_error
from app.experiments.configuration_names import configuration_names
from app.experiments.measures import fill_in_measures
from app.experiments.schemas import (
    AssignedSplit,
    ExperimentConfiguration,
    ExperimentCreate,
    ExperimentSplit,
    FoldsSplit,
)
from app.training.learner_checks import check_trainable
from app.training.schemas import GivenSplit
from models import catalog
from models.catalog import FeaturesRequest
from models.decisions import DecisionRule
from models.errors import ParameterError

MAX_LISTED_FOLDS = 20
"""Largest number of folds that an error lists."""


def fill_in_defaults(body: ExperimentCreate, dataset: tables.Dataset) -> ExperimentCreate:
    """Return the request with its defaults filled in for a data set, and a grid expanded.

    Raises:
        Invalid: the data set, a configuration, the split and the measures do not fit together.
    """
    report = dataset.report or {}
    split = _fill_in_split(body.split, report)
    configurations = [
        _fill_in_configuration(configuration, pointer, report, given_split=isinstance(split, GivenSplit))
        for pointer, configuration in expand_grid(body)
    ]
    measures = fill_in_measures(body, configurations, dataset)
    if body.coverings and report["n_with_unknown"]:
        message = "labels of some examples are unknown, so covering errors are not defined; omit coverings"
        raise Invalid(message, errors=[("/coverings", message)])
    requested_names: set[str] = set()
    for i, configuration in enumerate(configurations):
        if configuration.name in requested_names:
            message = f"two configurations have the name {configuration.name!r}"
            raise Invalid(message, errors=[(f"/configurations/{i}/name", message)])
        if configuration.name is not None:
            requested_names.add(configuration.name)
    names = configuration_names([c.model_dump(mode="json", exclude_none=True) for c in configurations])
    return body.model_copy(
        update={
            "split": split,
            "grid": None,
            "configurations": [
                configuration.model_copy(update={"name": name})
                for configuration, name in zip(configurations, names, strict=True)
            ],
            "measures": measures,
        }
    )


def _fill_in_split(split: ExperimentSplit | None, report: Mapping[str, Any]) -> ExperimentSplit:
    """Return the split with its defaults filled in.

    Args:
        split: the split of the request; None selects the default.
        report: the report on the data set.

    Raises:
        Invalid: the data set does not have the split.
    """
    splits = report.get("splits", {})
    has_split = splits.get("train", 0) > 0 and splits.get("test", 0) > 0
    folds = {int(fold): count for fold, count in report["folds"].items()}
    n_without_fold = report["n_examples"] - sum(folds.values())
    if split is None and has_split:
        return GivenSplit(kind="given")
    if split is None and len(folds) > 1 and not n_without_fold:
        split = AssignedSplit(kind="assigned")
    split = split or FoldsSplit(kind="folds")
    if isinstance(split, GivenSplit) and not has_split:
        raise _invalid("/split/kind", "the data set has no split with a training and a test part; use folds")
    if isinstance(split, FoldsSplit) and split.folds > report["n_examples"]:
        raise _invalid("/split/folds", f"the data set has {report['n_examples']} examples; use fewer folds")
    if isinstance(split, AssignedSplit):
        if n_without_fold:
            message = f"examples without a fold: {n_without_fold:,}; set the field fold of every example"
            raise _invalid("/split/kind", message)
        if len(folds) == 1:
            message = f"all examples are in fold {min(folds)}; at least two folds are needed"
            raise _invalid("/split/kind", message)
        for i, fold in enumerate(split.folds or ()):
            if fold not in folds:
                message = f"the data set has no fold {fold}; its folds are {_abbreviated(sorted(folds))}"
                raise _invalid(f"/split/folds/{i}", message)
        return split.model_copy(update={"folds": sorted(set(split.folds or folds))})
    return split


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(message, errors=[(pointer, message)])


def _abbreviated(folds: Sequence[int]) -> str:
    more = ", ..." if len(folds) > MAX_LISTED_FOLDS else ""
    return ", ".join(map(str, folds[:MAX_LISTED_FOLDS])) + more


def n_configurations(body: ExperimentCreate) -> int:
    """Return the number of configurations, without expanding a grid."""
    if body.grid is None:
        return len(body.configurations or [])
    grid = body.grid
    return len(grid.learner) * len(grid.features or [None]) * len(grid.decision or [None])


def expand_grid(body: ExperimentCreate) -> list[tuple[str, ExperimentConfiguration]]:
    """Return every configuration with the JSON pointer of the part of the request that it comes from."""
    if body.grid is None:
        return [(f"/configurations/{i}", c) for i, c in enumerate(body.configurations or [])]
    grid = body.grid
    features: Sequence[FeaturesRequest | None] = grid.features or [None]
    decisions: Sequence[DecisionRule | None] = grid.decision or [None]
    return [
        ("/grid", ExperimentConfiguration(features=f, learner=learner, decision=decision))
        for learner, f, decision in itertools.product(grid.learner, features, decisions)
    ]


def _fill_in_configuration(
    configuration: ExperimentConfiguration, pointer: str, report: Mapping[str, Any], *, given_split: bool
) -> ExperimentConfiguration:
    try:
        features = catalog.requested_features(configuration.learner, configuration.features, report["kind"])
        check_trainable(configuration.learner, report, given_split=given_split)
        decision = catalog.resolve_decision(configuration.learner, configuration.decision)
    except ParameterError as error:
        raise _with_pointer(error, pointer) from error
    return configuration.model_copy(update={"features": features, "decision": decision})


def _with_pointer(error: ParameterError, prefix: str) -> ServiceError:
    """Return the error for a client; the prefix is the JSON pointer of the configuration."""
    return from_library_error(ParameterError(str(error), prefix + error.pointer))
