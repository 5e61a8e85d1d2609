"""What an experiment may ask for, what is refused at once, and what is filled in."""

from __future__ import annotations

from typing import Any

import in_process
import pytest
from pydantic import ValidationError
from stack import departments

from app.environment import Environment
from app.errors import Conflict, Invalid, NotFound, TooLarge
from app.experiments import service
from app.experiments.naming import names_of
from app.experiments.schemas import ExperimentCreate

BAYES = {"learner": {"algorithm": "naive_bayes"}}
MISSPELLED = {"kind": "groups", "groups": [{"labels": ["billing", "shiping"]}]}


@pytest.fixture
def dataset(env: Environment) -> str:
    return in_process.dataset(env, departments(20))


def asked(dataset_id: str, **fields: Any) -> ExperimentCreate:
    body = {"dataset_id": dataset_id, **fields}
    if "grid" not in fields:
        body.setdefault("configurations", [BAYES])
    return ExperimentCreate.model_validate(body)


def refusal(env: Environment, body: ExperimentCreate) -> Invalid:
    with pytest.raises(Invalid) as refused:
        service.create(env, body, in_process.ONCE)
    assert in_process.queued(env) == []
    return refused.value


def test_defaults_are_filled_in(env: Environment, dataset: str) -> None:
    made = service.create(env, asked(dataset), in_process.ONCE)
    assert made.request["split"] == {"kind": "given"}
    (configuration,) = made.request["configurations"]
    assert configuration["name"] == "naive_bayes"
    assert configuration["features"]["kind"] == "text"
    assert configuration["decision"] == {"kind": "sign"}
    assert made.request["measures"][0] == "f1_micro"


def test_without_a_split_of_their_own_examples_make_five_folds(env: Environment) -> None:
    plain = [{k: v for k, v in example.items() if k != "split"} for example in departments(20)]
    made = service.create(env, asked(in_process.dataset(env, plain)), in_process.ONCE)
    assert made.request["split"] == {"kind": "folds", "folds": 5}
    assert made.counts.total == 5


def test_a_grid_is_every_combination(env: Environment, dataset: str) -> None:
    grid = {
        "learner": [{"algorithm": "svm"}, {"algorithm": "mp_boost", "rounds": 3}],
        "features": [{"kind": "text", "weighting": weighting} for weighting in ("tf", "binary")],
        "decision": [{"kind": "sign"}, {"kind": "tuned_threshold"}],
    }
    made = service.create(env, asked(dataset, grid=grid), in_process.ONCE)
    assert "grid" not in made.request
    names = [configuration["name"] for configuration in made.request["configurations"]]
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
def test_what_cannot_be_is_refused_with_its_place(
    env: Environment, dataset: str, fields: dict[str, Any], pointer: str
) -> None:
    assert [place for place, _ in refusal(env, asked(dataset, **fields)).errors] == [pointer]


def test_a_given_split_needs_both_parts(env: Environment) -> None:
    training = [{**example, "split": "train"} for example in departments(20)]
    body = asked(in_process.dataset(env, training), split={"kind": "given"})
    assert [place for place, _ in refusal(env, body).errors] == ["/split/kind"]


def test_cells_are_limited(env: Environment, dataset: str) -> None:
    configurations = [{**BAYES, "name": str(i)} for i in range(env.settings.max_experiment_cells + 1)]
    with pytest.raises(TooLarge, match="1001"):
        service.create(env, asked(dataset, configurations=configurations), in_process.ONCE)


def test_the_data_set_must_be_there_and_ready(env: Environment) -> None:
    from app.datasets import service as datasets
    from app.datasets.schemas import DatasetCreate

    with pytest.raises(NotFound):
        service.create(env, asked("ds_none"), in_process.ONCE)
    empty = datasets.create(env, DatasetCreate(name="empty"), in_process.ONCE)
    with pytest.raises(Conflict):
        service.create(env, asked(empty.id), in_process.ONCE)


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
def test_what_makes_no_sense_is_no_request(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        asked("ds_1", **fields)


def test_names_tell_configurations_apart() -> None:
    def configuration(name: str | None = None, **learner: Any) -> dict[str, Any]:
        return {"learner": learner, **({"name": name} if name else {})}

    assert names_of([configuration(algorithm="svm", C=1.0)]) == ["svm"]
    same = configuration(algorithm="svm", C=1.0)
    assert names_of([same, same]) == ["svm (1)", "svm (2)"]
    smooth = configuration(algorithm="mp_boost", smoothing=0.1)
    assert names_of([smooth, configuration(algorithm="mp_boost")]) == ["mp_boost smoothing=0.1", "mp_boost"]
    named = configuration("mine", algorithm="svm", C=1.0)
    assert names_of([named, configuration(algorithm="svm", C=0.5)]) == ["mine", "svm C=0.5"]
