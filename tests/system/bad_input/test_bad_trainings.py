"""An invalid training request is rejected, or its job fails with the reason."""

from __future__ import annotations

import pytest
from bad_requests import (
    INVALID,
    JOBS,
    NOT_FOUND,
    Case,
    Known,
    expect_rejected,
    training,
    training_with_covering,
)
from contract import problem_of

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("stack")]

CASES: list[Case] = [
    # -- trainings
    (
        "an unknown learner",
        "POST",
        JOBS,
        training(learner={"algorithm": "magic"}),
        422,
        INVALID,
        "/learner/algorithm",
    ),
    (
        "a learner without its name",
        "POST",
        JOBS,
        training(learner={"rounds": 3}),
        422,
        INVALID,
        "/learner/algorithm",
    ),
    (
        "a parameter of a wrong type",
        "POST",
        JOBS,
        training(learner={"algorithm": "mp_boost", "rounds": "many"}),
        422,
        INVALID,
        "/learner/rounds",
    ),
    (
        "a parameter out of range",
        "POST",
        JOBS,
        training(learner={"algorithm": "mp_boost", "rounds": 0}),
        422,
        INVALID,
        "/learner/rounds",
    ),
    (
        "a wrong stemmer",
        "POST",
        JOBS,
        training(features={"kind": "text", "analyzer": {"stemmer": "klingon"}}),
        422,
        INVALID,
        "/features/analyzer/stemmer",
    ),
    (
        "numeric features for texts",
        "POST",
        JOBS,
        training(features={"kind": "numeric"}),
        422,
        "invalid_parameters",
        "/features/kind",
    ),
    (
        "text features for numeric data",
        "POST",
        JOBS,
        training(dataset_id="NUMBERS", features={"kind": "text"}),
        422,
        "invalid_parameters",
        "/features/kind",
    ),
    (
        "a decision that the learner does not support",
        "POST",
        JOBS,
        training(decision={"kind": "calibrated_label"}),
        422,
        "invalid_parameters",
        "/decision/kind",
    ),
    (
        "a selection without its count",
        "POST",
        JOBS,
        training(features={"kind": "text", "selection": {"kind": "information_gain", "policy": "max"}}),
        422,
        INVALID,
        "/features/selection",
    ),
    (
        "a given split of a data set without splits",
        "POST",
        JOBS,
        training(dataset_id="NUMBERS", split={"kind": "given"}),
        422,
        INVALID,
        "/split/kind",
    ),
    (
        "a test set of all examples",
        "POST",
        JOBS,
        training(split={"kind": "random", "test_fraction": 1}),
        422,
        INVALID,
        "/split/test_fraction",
    ),
    ("an unknown data set", "POST", JOBS, training(dataset_id="ds_nope"), 404, NOT_FOUND, "/dataset_id"),
    (
        "a data set that is not ready",
        "POST",
        JOBS,
        training(dataset_id="WAITING"),
        409,
        "dataset_not_ready",
        "/dataset_id",
    ),
    ("an invalid model name", "POST", JOBS, training(model="no spaces"), 422, INVALID, "/model"),
    ("a model name with a line break", "POST", JOBS, training(model="x\n"), 422, INVALID, "/model"),
    (
        "rules whose last rule has a condition",
        "POST",
        JOBS,
        training_with_covering(
            {"kind": "rules", "rules": [{"when": {"has": "billing"}, "cover": [{"positives": "all"}]}]}
        ),
        422,
        INVALID,
        "/learner/covering/rules",
    ),
    (
        "an unknown condition",
        "POST",
        JOBS,
        training_with_covering(
            {"kind": "rules", "rules": [{"when": {"hat": "x"}, "cover": [{"positives": "all"}]}]}
        ),
        422,
        INVALID,
        "/learner/covering/rules/0/when",
    ),
    (
        "a covering that omits labels",
        "POST",
        JOBS,
        training_with_covering({"kind": "groups", "groups": [{"labels": ["billing", "sales"]}]}),
        422,
        "invalid_parameters",
        "/learner/covering/groups",
    ),
    (
        "a covering of unknown labels",
        "POST",
        JOBS,
        training_with_covering({"kind": "groups", "groups": [{"labels": ["nope"]}]}),
        422,
        "invalid_parameters",
        "/learner/covering/groups/0/labels/0",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "pointer"),
    [pytest.param(*case[1:], id=case[0]) for case in CASES],
)
def test_a_bad_request_is_rejected_with_its_pointer_and_changes_nothing(
    unchanged: Known, method: str, path: str, body: str | None, status: int, code: str, pointer: str | None
) -> None:
    expect_rejected(unchanged, method, path, body, status, code, pointer)


def test_negative_numbers_fail_naive_bayes_with_the_reason(known: Known) -> None:
    stack = known.stack
    job = stack.finished(
        stack.train(known.numbers, model="refused", learner={"algorithm": "naive_bayes"})["id"]
    )
    assert job["state"] == "failed"
    assert job["error"]["code"] == "unsuitable_data"
    assert "negative" in job["error"]["detail"]
    assert "result" not in job
    problem_of(stack.http.get("/v1/models/refused"), 404, NOT_FOUND)


def test_an_error_found_during_training_fails_the_job_with_its_pointer(known: Known) -> None:
    stack = known.stack
    learner = {"algorithm": "adaboost_lc", "template": [["nope"]]}
    job = stack.finished(stack.train(known.text, model="refused", learner=learner)["id"])
    assert job["state"] == "failed", job
    assert job["error"]["code"] == "invalid_parameters"
    assert "'nope'" in job["error"]["detail"]
    assert [error["pointer"] for error in job["error"]["errors"]] == ["/learner/template/0/0"]
    problem_of(stack.http.get("/v1/models/refused"), 404, NOT_FOUND)
