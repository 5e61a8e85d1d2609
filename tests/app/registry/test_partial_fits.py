"""A version learns from a batch of examples in one request, and becomes the next version."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process_api import InProcessApi, api
from waiting import LIMIT_SECONDS

from models import artifact
from models.catalog import INCREMENTAL_LEARNERS
from models.errors import ParameterError
from models.pipeline import partial_fit as learning

CORRECTIONS = [
    {"text": "the parcel of my invoice", "labels": ["billing", "shipping"]},
    {"text": "zzz", "labels": []},
]
"""Two examples; the second has no known word."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    """A service with a version of each incremental learner, of `svm`, with probabilities, and of numbers."""
    with (
        pytest.MonkeyPatch.context() as patch,
        api(tmp_path_factory.mktemp("data"), migrated_sqlite, patch) as service,
    ):
        dataset = service.dataset()
        for algorithm in (*INCREMENTAL_LEARNERS, "svm"):
            decision = {"kind": "single_label"}
            service.train(dataset, algorithm, learner={"algorithm": algorithm}, decision=decision)
        target = {"kind": "target", "measure": "recall", "value": 0.9}
        service.train(dataset, "calibrated", decision=target)
        numbers = [{"features": {"a": i, "b": 1.0}, "labels": ["odd"][: i % 2]} for i in range(12)]
        service.train(service.dataset(numbers), "numbers")
        yield service


def partial_fit(
    service: InProcessApi, model: str, status: int = 201, examples: Any = CORRECTIONS, **options: Any
) -> Any:
    path = f"/v1/models/{model}/versions/1/partial-fit"
    headers = options.pop("headers", {})
    response = service.send("POST", path, json={"examples": examples, **options}, headers=headers)
    assert response.status_code == status, response.text
    return response.json()


def predict(service: InProcessApi, model: str, version: int, text: str) -> Any:
    body = {"instances": [{"text": text}], "version": version}
    return service.call("POST", f"/v1/models/{model}/predict", 200, json=body)["predictions"][0]


@pytest.mark.parametrize("algorithm", [*INCREMENTAL_LEARNERS, "calibrated"])
def test_each_incremental_learner_makes_the_next_version(service: InProcessApi, algorithm: str) -> None:
    text = "invoice payment charged refund"  # the version predicts billing
    before = predict(service, algorithm, 1, text)
    version = partial_fit(service, algorithm, examples=[{"text": text, "labels": ["sales"]}] * 20)
    number = version["version"]
    assert version["lineage"] == {"parent_version": 1, "examples": 20}
    assert "metrics" not in version
    assert "dataset_id" not in version
    parent = service.call("GET", f"/v1/models/{algorithm}/versions/1", 200)
    for same in ("labels", "features", "learner", "decision", "calibrated"):
        assert version.get(same) == parent.get(same), same
    if algorithm == "calibrated":
        assert version["thresholds"] != parent["thresholds"]
        report, reference = version["decision_report"], version["reference"]
        assert (report["source"], report["partial_fit_examples"]) == ("test_then_train", 20)
        assert report["examples"] == reference["examples"] == parent["decision_report"]["examples"] + 20
        assert reference["unknown_terms"] == parent["reference"]["unknown_terms"]
    else:  # its decision does not depend on held-out scores
        assert version["thresholds"] == parent["thresholds"]
        assert version["reference"] == parent["reference"]
    after = predict(service, algorithm, number, text)
    assert (before["ranking"][0]["label"], after["ranking"][0]["label"]) == ("billing", "sales")
    assert predict(service, algorithm, 1, text) == before, "the first version does not change"
    assert service.call("GET", f"/v1/models/{algorithm}/aliases/live", 200)["version"] == 1


def test_the_version_is_that_of_the_learner_itself(service: InProcessApi, tmp_path: Path) -> None:
    """The saved version can learn further, and equals a partial fit of the learner on the same features."""
    number = partial_fit(service, "naive_bayes")["version"]
    saved = []
    for version in (1, number):
        path = tmp_path / f"{version}.covey"
        path.write_bytes(service.send("GET", f"/v1/models/naive_bayes/versions/{version}/artifact").content)
        saved.append(artifact.load(path))
    parent, child = saved
    texts = [str(example["text"]) for example in CORRECTIONS]
    columns = [parent.labels_.index(label) for label in ("billing", "shipping")]
    Y = [[int(j in columns) for j in range(len(parent.labels_))], [0] * len(parent.labels_)]
    learner: Any = parent.learner_
    learner.partial_fit(parent.feature_matrix(texts), Y)
    assert parent.scores(texts).tobytes() == child.scores(texts).tobytes()
    grandchild = service.call(
        "POST",
        f"/v1/models/naive_bayes/versions/{number}/partial-fit",
        201,
        json={"examples": CORRECTIONS, "promote": "always"},
    )
    assert grandchild["lineage"]["parent_version"] == number
    assert grandchild["aliases"] == ["live"]
    (change, *_) = service.call("GET", "/v1/models/naive_bayes/aliases/live/history", 200)["items"]
    assert change["reason"] == "partial_fit"
    service.call("POST", "/v1/models/naive_bayes/aliases/live/rollback", 200)


@pytest.mark.parametrize(
    ("model", "examples", "pointer", "words"),
    [
        ("svm", CORRECTIONS, "/path/version", "the learners that can are binary_relevance_perceptron, mlpp"),
        ("mmp", [*CORRECTIONS, {"text": "a", "labels": ["billing", "new"]}], "/examples/2/labels/1", "'new'"),
        ("mmp", [{"features": {"a": 1}, "labels": []}], "/examples/0/features", "trained on text"),
        ("numbers", [{"text": "a", "labels": []}], "/examples/0", "numeric features"),
        ("numbers", [{"features": {"a": -1}, "labels": ["odd"]}], "", "Negative values"),
        ("mmp", [{"text": "a", "labels": [], "weight": 2}], "/examples/0/weight", "does not accept weights"),
        ("mmp", [{"text": "a"}], "/examples/0/labels", ""),
        ("mmp", [], "/examples", ""),
    ],
)
def test_what_cannot_be_learned_is_rejected_with_its_place(
    service: InProcessApi, model: str, examples: Any, pointer: str, words: str
) -> None:
    problem = partial_fit(service, model, 422, examples)
    if pointer:
        assert problem["errors"][0]["pointer"] == pointer
    assert words in problem["detail"] + str(problem.get("errors"))


def test_weights_count_for_learners_that_accept_them(service: InProcessApi) -> None:
    text = "the parcel of my invoice"
    twice = partial_fit(service, "naive_bayes", examples=CORRECTIONS[:1] * 2)["version"]
    weighted = [{**CORRECTIONS[0], "weight": 2}]
    heavy = partial_fit(service, "naive_bayes", examples=weighted)["version"]
    first, second = (predict(service, "naive_bayes", number, text)["ranking"] for number in (twice, heavy))
    for one, other in zip(first, second, strict=True):
        assert (one["label"], one["score"]) == (other["label"], pytest.approx(other["score"]))


def test_more_examples_than_the_limit_are_rejected(service: InProcessApi) -> None:
    partial_fit(service, "mmp", 413, CORRECTIONS[1:] * (service.ctx.settings.max_instances + 1))


def test_a_repeated_request_makes_one_version_and_leaves_one_file(service: InProcessApi) -> None:
    first = partial_fit(service, "mmp", headers={"Idempotency-Key": "once"})
    files = {info.key for info in service.storage.files("artifacts")}
    assert partial_fit(service, "mmp", headers={"Idempotency-Key": "once"}) == first
    assert {info.key for info in service.storage.files("artifacts")} == files
    assert partial_fit(service, "mmp")["version"] == first["version"] + 1


def test_a_model_that_is_deleted_meanwhile_is_not_created_again(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = service.call("GET", "/v1/models/mmp/versions/1", 200)["dataset_id"]
    service.train(dataset, "gone")
    files = {info.key for info in service.storage.files("artifacts")}

    def delete_first(*arguments: Any, **options: Any) -> Any:
        service.start("DELETE", "/v1/models/gone").result()
        return learning.partial_fit(*arguments, **options)

    monkeypatch.setattr("app.registry.partial_fits.partial_fit", delete_first)
    partial_fit(service, "gone", 404)
    service.call("GET", "/v1/models/gone", 404)
    assert {info.key for info in service.storage.files("artifacts")} < files


def test_predictions_continue_while_partial_fits_wait(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, release = threading.Event(), threading.Event()

    def wait(*_: Any, **__: Any) -> Any:
        started.set()
        assert release.wait(LIMIT_SECONDS)
        raise ParameterError("enough")

    monkeypatch.setattr("app.registry.partial_fits.partial_fit", wait)
    path, body = "/v1/models/mlpp/versions/1/partial-fit", {"examples": CORRECTIONS}
    waiting = [service.start("POST", path, json=body) for _ in range(60)]
    try:
        assert started.wait(LIMIT_SECONDS)
        assert predict(service, "mlpp", 1, "an invoice")["ranking"]
        service.call("GET", "/v1/models/mlpp", 200)
    finally:
        release.set()
    assert {future.result().status_code for future in waiting} == {422}
