"""Requests for experiments: defaults, grids, and requests that are rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import in_process
import pytest
from growth import check_linear
from pydantic import ValidationError
from stack import departments

from app.context import AppContext
from app.datasets import creation
from app.datasets import service as datasets
from app.db.session import Database
from app.errors import Conflict, Invalid, NotFound, TooLarge
from app.experiments import service
from app.experiments.configuration_names import configuration_names
from app.experiments.schemas import ExperimentCreate

BAYES = {"learner": {"algorithm": "naive_bayes"}}
MISSPELLED = {"kind": "groups", "groups": [{"labels": ["billing", "shiping"]}]}


@pytest.fixture
def dataset(ctx: AppContext) -> str:
    return in_process.dataset(ctx, departments(20))


def request_of(dataset_id: str, **fields: Any) -> ExperimentCreate:
    body = {"dataset_id": dataset_id, **fields}
    if "grid" not in fields:
        body.setdefault("configurations", [BAYES])
    return ExperimentCreate.model_validate(body)


def rejection(ctx: AppContext, body: ExperimentCreate) -> Invalid:
    """Submits a request that is invalid; returns the error."""
    with pytest.raises(Invalid) as rejected:
        service.create(ctx, body, in_process.WITHOUT_KEY)
    assert in_process.queued(ctx) == []
    return rejected.value


def test_defaults_are_filled_in(ctx: AppContext, dataset: str) -> None:
    experiment = service.create(ctx, request_of(dataset), in_process.WITHOUT_KEY)
    assert experiment.request["split"] == {"kind": "given"}
    (configuration,) = experiment.request["configurations"]
    assert configuration["name"] == "naive_bayes"
    assert configuration["features"]["kind"] == "text"
    assert configuration["decision"] == {"kind": "auto", "optimize": "f1_micro"}
    assert experiment.request["measures"][0] == "f1_micro"


def test_five_folds_are_the_default_for_data_without_a_split(ctx: AppContext) -> None:
    without_split = [{k: v for k, v in example.items() if k != "split"} for example in departments(20)]
    experiment = service.create(
        ctx, request_of(in_process.dataset(ctx, without_split)), in_process.WITHOUT_KEY
    )
    assert experiment.request["split"] == {"kind": "folds", "folds": 5}
    assert experiment.counts.total == 5


def test_a_grid_is_every_combination(ctx: AppContext, dataset: str) -> None:
    grid = {
        "learner": [{"algorithm": "svm"}, {"algorithm": "mp_boost", "rounds": 3}],
        "features": [{"kind": "text", "weighting": weighting} for weighting in ("tf", "binary")],
        "decision": [{"kind": "sign"}, {"kind": "tuned_threshold"}],
    }
    experiment = service.create(ctx, request_of(dataset, grid=grid), in_process.WITHOUT_KEY)
    assert "grid" not in experiment.request
    names = [configuration["name"] for configuration in experiment.request["configurations"]]
    assert len(set(names)) == 8
    assert names[0] == "svm weighting=tf decision=sign"
    assert names[-1] == "mp_boost weighting=binary decision=tuned_threshold"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"measures": ["f1_micro", "fun"]}, "/measures/1"),
        ({"measures": ["hierarchical"]}, "/measures/0"),
        ({"split": {"kind": "folds", "folds": 21}}, "/split/folds"),
        (
            {"configurations": [BAYES, {**BAYES, "features": {"kind": "numeric"}}]},
            "/configurations/1/features/kind",
        ),
        (
            {"configurations": [{**BAYES, "decision": {"kind": "calibrated_label"}}]},
            "/configurations/0/decision/kind",
        ),
        (
            {"configurations": [BAYES, {"learner": {"algorithm": "adaboost_lc", "covering": MISSPELLED}}]},
            "/configurations/1/learner/covering/groups/0/labels/1",
        ),
        ({"configurations": [{**BAYES, "name": "a"}, {**BAYES, "name": "a"}]}, "/configurations/1/name"),
        (
            {"grid": {"learner": [{"algorithm": "mlpp"}], "decision": [{"kind": "sign"}]}},
            "/grid/decision/kind",
        ),
    ],
)
def test_an_invalid_request_is_rejected_with_its_pointer(
    ctx: AppContext, dataset: str, fields: dict[str, Any], pointer: str
) -> None:
    assert [actual for actual, _ in rejection(ctx, request_of(dataset, **fields)).errors] == [pointer]


def test_a_given_split_needs_both_parts(ctx: AppContext) -> None:
    training = [{**example, "split": "train"} for example in departments(20)]
    body = request_of(in_process.dataset(ctx, training), split={"kind": "given"})
    assert [pointer for pointer, _ in rejection(ctx, body).errors] == ["/split/kind"]


def test_the_number_of_cells_is_limited(ctx: AppContext, dataset: str) -> None:
    configurations = [{**BAYES, "name": str(i)} for i in range(service.MAX_CELLS + 1)]
    with pytest.raises(TooLarge, match="1001"):
        service.create(ctx, request_of(dataset, configurations=configurations), in_process.WITHOUT_KEY)


def test_the_data_set_must_exist_and_be_ready(ctx: AppContext) -> None:
    from app.datasets.schemas import DatasetCreate

    with pytest.raises(NotFound):
        service.create(ctx, request_of("ds_none"), in_process.WITHOUT_KEY)
    empty = creation.create(ctx, DatasetCreate(name="empty"), in_process.WITHOUT_KEY)
    with pytest.raises(Conflict):
        service.create(ctx, request_of(empty.id), in_process.WITHOUT_KEY)


@pytest.mark.parametrize(
    "fields",
    [
        {"grid": {"learner": [{"algorithm": "svm"}]}, "configurations": [BAYES]},
        {"configurations": None},
        {"configurations": []},
        {"split": {"kind": "folds", "folds": 1}},
        {"split": {"kind": "none"}},
        {"coverings": {"a b": {"kind": "hamming"}}},
        {"measures": []},
        {"unknown": 1},
    ],
)
def test_a_malformed_request_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        request_of("ds_1", **fields)


def test_names_of_configurations_are_unique() -> None:
    def configuration(name: str | None = None, **learner: Any) -> dict[str, Any]:
        return {"learner": learner, **({"name": name} if name else {})}

    assert configuration_names([configuration(algorithm="svm", C=1.0)]) == ["svm"]
    same = configuration(algorithm="svm", C=1.0)
    assert configuration_names([same, same]) == ["svm (1)", "svm (2)"]
    smooth = configuration(algorithm="mp_boost", smoothing=0.1)
    assert configuration_names([smooth, configuration(algorithm="mp_boost")]) == [
        "mp_boost smoothing=0.1",
        "mp_boost",
    ]
    named = configuration("mine", algorithm="svm", C=1.0)
    assert configuration_names([named, configuration(algorithm="svm", C=0.5)]) == ["mine", "svm C=0.5"]


def test_a_grid_that_is_too_large_is_rejected_before_it_is_expanded(ctx: AppContext, dataset: str) -> None:
    svms = [{"algorithm": "svm", "C": 1.0 + i} for i in range(3_000)]
    grid = {
        "learner": svms,
        "features": [{"kind": "text"}] * 3_000,
        "decision": [{"kind": "sign"}] * 3_000,
    }
    with pytest.raises(TooLarge, match="27000000000 cells") as error:
        service.create(ctx, request_of(dataset, grid=grid), in_process.WITHOUT_KEY)
    assert error.value.errors[0][0] == "/grid"


def test_a_generated_name_is_a_valid_title(ctx: AppContext, dataset: str) -> None:
    def grouped(first: str) -> dict[str, Any]:
        return {
            "learner": {"algorithm": "adaboost_lc", "template": [[first, *(f"t{i}" for i in range(999))]]}
        }

    experiment = service.create(
        ctx, request_of(dataset, configurations=[grouped("a"), grouped("b")]), in_process.WITHOUT_KEY
    )
    assert service.get(ctx.db, experiment.id) == experiment
    first, second = (c["name"] for c in experiment.request["configurations"])
    assert first != second
    assert first.startswith("adaboost_lc template=")


def _names(n: int) -> Callable[[], object]:
    learners = [{"algorithm": "svm", "C": 1.0 + i % (n // 2), "random": {"a": i}} for i in range(n)]
    return lambda: configuration_names([{"learner": learner} for learner in learners])


def test_naming_configurations_costs_time_linear_in_their_number() -> None:
    check_linear(_names, 2_000)


def test_names_show_parameters_that_differ_within_a_kind() -> None:
    kernels = [
        {"kind": "rbf", "gamma": 1.0},
        {"kind": "rbf", "gamma": 2.0},
        {"kind": "polynomial", "degree": 2},
    ]
    learners = [*({"algorithm": "h_m3", "kernel": kernel} for kernel in kernels), {"algorithm": "h_m3"}]
    assert configuration_names([{"learner": learner} for learner in learners]) == [
        "h_m3 kernel.kind=rbf kernel.gamma=1",
        "h_m3 kernel.kind=rbf kernel.gamma=2",
        "h_m3 kernel.kind=polynomial",
        "h_m3",
    ]


def test_the_labels_of_a_data_set_are_read_once_for_all_coverings(
    ctx: AppContext, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def label_counts(db: Database, dataset_id: str) -> dict[str, int]:
        calls.append(dataset_id)
        return original(db, dataset_id)

    original = datasets.label_counts
    monkeypatch.setattr(datasets, "label_counts", label_counts)
    groups = {"kind": "groups", "groups": [{"labels": ["billing", "shipping"]}]}
    configurations = [
        {"learner": {"algorithm": "adaboost_lc", "covering": groups, "rounds": rounds}}
        for rounds in (1, 2, 3)
    ]
    service.create(ctx, request_of(dataset, configurations=configurations), in_process.WITHOUT_KEY)
    assert calls == [dataset]
