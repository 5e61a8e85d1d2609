"""A training promotes its version by its rule, and its result says what was compared and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_process
import pytest
from in_process_api import InProcessApi, api

from app.db import tables
from app.training import comparison
from app.training import work as training

WORDS = {"billing": "invoice payment", "shipping": "parcel courier", "support": "error crash"}
IF_BETTER = {"if_better": {"metric": "f1_micro"}}


def examples(
    start: int,
    n: int,
    split: str,
    *,
    wrong: bool = False,
    labels: tuple[str, ...] = tuple(WORDS),
    **fields: str,
) -> list[dict[str, Any]]:
    """Messages ``start`` to ``start + n``; each number has one text. Wrong ones have the label of another."""
    return [
        {
            "text": f"{WORDS[list(WORDS)[i % 3]]} m{i} n{i * 7}",
            "labels": [label for label in (list(WORDS)[(i + wrong) % 3],) if label in labels],
            "split": split,
            **fields,
        }
        for i in range(start, start + n)
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    with (
        pytest.MonkeyPatch.context() as patch,
        api(tmp_path_factory.mktemp("data"), migrated_sqlite, patch) as service,
    ):
        yield service


@pytest.fixture(scope="module")
def bad(shared: InProcessApi) -> str:
    """A data set with wrong labels."""
    return shared.dataset(examples(0, 60, "train", wrong=True) + examples(60, 30, "test"))


@pytest.fixture(scope="module")
def good(shared: InProcessApi) -> str:
    """A data set with right labels, and other messages."""
    return shared.dataset(examples(1000, 60, "train") + examples(2000, 60, "test"))


def train(service: InProcessApi, dataset: str, model: str, promote: Any = "if_first", **fields: Any) -> Any:
    """Train a version, and return its result."""
    job = service.train(dataset, model, promote=promote, **fields)["id"]
    done = service.call("GET", f"/v1/training-jobs/{job}", 200)
    assert (done["state"], done["progress"]["fraction"]) == ("succeeded", 1.0), done
    return done["result"]


def live(service: InProcessApi, model: str) -> int:
    version: int = service.call("GET", f"/v1/models/{model}/aliases/live", 200)["version"]
    return version


def test_a_clearly_better_version_is_promoted_with_the_figures(
    shared: InProcessApi, bad: str, good: str
) -> None:
    first = train(shared, bad, "better", IF_BETTER)["promotion"]
    assert first == {"promoted": True, "reason": "the model had no live version to compare with"}
    result = train(shared, good, "better", IF_BETTER)
    promotion = result["promotion"]
    assert promotion["promoted"]
    assert promotion["reason"].startswith("f1_micro is 1.0000, and ")
    assert promotion["live_before"] == 1
    compared = promotion["comparison"]
    assert (compared["metric"], compared["live_version"], compared["examples"]) == ("f1_micro", 1, 60)
    assert (compared["left_out"], compared["live_training_examples"]) == (0, "known")
    assert (compared["alpha"], compared["at_least"]) == (0.05, 0.0)
    assert (compared["attempt"], compared["level"], compared["left_out_selected"]) == (1, 0.025, 0)
    assert compared["new_value"] == result["metrics"]["test"]["f1_micro"] == 1.0
    assert compared["difference"] == compared["new_value"] - compared["live_value"]
    assert compared["interval"][0] <= compared["difference"] <= compared["interval"][1]
    assert compared["p_value"] < 0.001
    assert live(shared, "better") == 2
    (change, _) = shared.call("GET", "/v1/models/better/aliases/live/history", 200)["items"]
    assert change["reason"] == "training"


def test_versions_that_predict_the_same_are_not_promoted(shared: InProcessApi, good: str) -> None:
    train(shared, good, "same")
    promotion = train(shared, good, "same", IF_BETTER)["promotion"]
    assert not promotion["promoted"]
    assert promotion["reason"].endswith("not better")
    assert promotion["comparison"]["p_value"] == 1.0
    assert live(shared, "same") == 1


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"at_least": 1.5}, "better by less than at_least, 1.5"),
        ({"alpha": 1e-6}, "on the same examples (alpha is 1e-06)"),
    ],
)
def test_a_difference_must_be_large_and_significant(
    shared: InProcessApi, bad: str, good: str, rule: dict[str, float], reason: str
) -> None:
    model = f"needs-{'-'.join(rule)}"
    train(shared, bad, model)
    promotion = train(shared, good, model, {"if_better": {"metric": "hamming_loss", **rule}})["promotion"]
    assert not promotion["promoted"]
    assert promotion["reason"].endswith(reason)
    assert promotion["comparison"]["difference"] < 0, "a lower loss is better"


def test_examples_that_the_live_version_was_trained_on_are_left_out(shared: InProcessApi, good: str) -> None:
    train(shared, good, "leak")
    new = shared.dataset(examples(3000, 30, "train") + examples(1040, 50, "test"))
    compared = train(shared, new, "leak", IF_BETTER)["promotion"]["comparison"]
    assert (compared["left_out"], compared["examples"]) == (20, 30)


def test_each_comparison_on_the_same_examples_has_a_lower_level(shared: InProcessApi, bad: str) -> None:
    test = examples(2000, 40, "test")
    train(shared, bad, "attempts")

    def attempt(*, first: int, part: list[dict[str, Any]] = test, **fields: Any) -> dict[str, Any]:
        new = shared.dataset(examples(first, 60, "train", wrong=True) + part)
        compared: dict[str, Any] = train(shared, new, "attempts", IF_BETTER, **fields)["promotion"][
            "comparison"
        ]
        return compared

    def levels(compared: dict[str, Any]) -> tuple[int, float]:
        return compared["attempt"], compared["level"]

    assert levels(attempt(first=3000)) == (1, 0.05 / 2)
    assert levels(attempt(first=4000, seed=1)) == (2, 0.05 / 6)
    shared.call("DELETE", "/v1/models/attempts/versions/3", 204)
    other = examples(5000, 40, "test")
    assert levels(attempt(first=4000, part=[*test[:1], *other])) == (3, 0.05 / 12), "one common example"
    assert levels(attempt(first=6000, part=examples(7000, 40, "test"))) == (1, 0.05 / 2), "fresh examples"
    new = shared.dataset(examples(1000, 60, "train") + test)
    promotion = train(shared, new, "attempts", IF_BETTER)["promotion"]
    assert promotion["promoted"]
    assert "is not above the level 0.0025 of comparison 4 on the same examples" in promotion["reason"]
    assert levels(attempt(first=8000)) == (5, 0.05 / 30), "also against another live version"


def test_what_a_version_doubted_cannot_promote(shared: InProcessApi, bad: str) -> None:
    """The versions differ clearly, but most of the test part was reviewed because a version doubted it."""
    train(shared, bad, "doubt")
    training = examples(1000, 60, "train")
    doubted = examples(2000, 40, "test", selected_by="doubt") + examples(
        2040, 9, "test", selected_by="fallback"
    )
    sample = examples(3000, 15, "test", selected_by="sample")
    new = shared.dataset([*training, *doubted, *sample])
    result = train(shared, new, "doubt", IF_BETTER)
    promotion = result["promotion"]
    assert not promotion["promoted"]
    assert promotion["reason"] == (
        "15 held-out examples are too few for a comparison, which needs 20; 49 were left out because the "
        "doubt or a mistake of a version selected them: set review_sample of the router, review its sample, "
        "and make a data set from it"
    )
    assert promotion["comparison"]["left_out_selected"] == 49
    assert result["metrics"]["test"]["n_examples"] == 64, "the split of the data set is what it says"
    more = examples(4000, 10, "test")
    compared = train(shared, shared.dataset([*training, *doubted, *sample, *more]), "doubt", IF_BETTER)
    compared = compared["promotion"]["comparison"]
    assert (compared["examples"], compared["attempt"]) == (25, 1), "nothing was tested before"


def test_too_few_examples_cannot_promote(shared: InProcessApi, good: str) -> None:
    train(shared, good, "few")
    new = shared.dataset(examples(3000, 30, "train") + examples(1020, 50, "test"))
    promotion = train(shared, new, "few", IF_BETTER)["promotion"]
    assert not promotion["promoted"]
    assert promotion["reason"] == (
        "10 held-out examples are too few for a comparison, which needs 20; 40 were left out because "
        "version 1 was trained on them"
    )
    warnings = shared.call("GET", "/v1/models/few/versions/2", 200)["warnings"]
    assert f"not promoted: {promotion['reason']}" not in warnings, "the result has the figures"


def test_without_held_out_examples_nothing_is_promoted(shared: InProcessApi, good: str) -> None:
    train(shared, good, "none")
    promotion = train(shared, good, "none", IF_BETTER, split={"kind": "none"})["promotion"]
    assert not promotion["promoted"]
    assert "comparison" not in promotion
    reason = "no examples were held out, so the versions could not be compared"
    assert promotion["reason"] == reason
    assert f"not promoted: {reason}" in shared.call("GET", "/v1/models/none/versions/2", 200)["warnings"]


def test_a_label_that_the_live_version_lacks_counts_against_it(shared: InProcessApi) -> None:
    two = examples(0, 60, "train", labels=("billing", "shipping")) + examples(60, 30, "test")
    train(shared, shared.dataset(two), "labels")
    three = shared.dataset(examples(1000, 60, "train") + examples(2000, 60, "test"))
    promotion = train(shared, three, "labels", IF_BETTER)["promotion"]
    assert promotion["promoted"]
    compared = promotion["comparison"]
    assert (compared["labels_only_in_new"], compared["labels_only_in_live"]) == (1, 0)
    assert compared["live_value"] < compared["new_value"] == 1.0


def test_what_is_unknown_about_the_live_version_is_said(shared: InProcessApi, good: str) -> None:
    copy = shared.dataset(examples(1000, 60, "train") + examples(2000, 60, "test"))
    train(shared, copy, "unknown")
    shared.call("DELETE", f"/v1/datasets/{copy}", 204)
    compared = train(shared, good, "unknown", IF_BETTER)["promotion"]["comparison"]
    assert (compared["live_training_examples"], compared["left_out"]) == ("unknown", 0)


def test_the_examples_of_partial_fits_are_said_to_be_unknown(shared: InProcessApi, good: str) -> None:
    train(shared, good, "partly")
    corrections = {"examples": [{"text": "invoice", "labels": ["billing"]}], "promote": "always"}
    shared.call("POST", "/v1/models/partly/versions/1/partial-fit", 201, json=corrections)
    new = shared.dataset(examples(3000, 30, "train") + examples(1040, 50, "test"))
    compared = train(shared, new, "partly", IF_BETTER)["promotion"]["comparison"]
    assert (compared["live_version"], compared["left_out"]) == (2, 20)
    assert compared["live_training_examples"] == "partly_known"


def test_random_splits_of_earlier_releases_are_unknown(shared: InProcessApi, good: str) -> None:
    split = {"kind": "random", "test_fraction": 0.4}
    train(shared, good, "drawn", split=split)
    again = train(shared, good, "drawn", IF_BETTER, split=split)["promotion"]["comparison"]
    assert (again["live_training_examples"], again["left_out"]) == ("known", 0)
    other = train(shared, good, "drawn", IF_BETTER, split=split, seed=1)["promotion"]["comparison"]
    assert other["left_out"] > 10, "another seed draws other examples"
    with shared.ctx.db.write() as tx:
        row = tx.session.get_one(tables.ModelVersion, ("drawn", 1))
        row.description = {key: value for key, value in row.description.items() if key != "split_revision"}
    old = train(shared, good, "drawn", IF_BETTER, split=split, seed=1)["promotion"]["comparison"]
    assert (old["live_training_examples"], old["left_out"]) == ("unknown", 0)


def test_a_missing_artifact_of_the_live_version_stops_the_promotion(shared: InProcessApi, good: str) -> None:
    train(shared, good, "missing")
    job = shared.call("GET", "/v1/models/missing/versions/1", 200)["training_job_id"]
    shared.storage.local(f"artifacts/{job}.1.covey").unlink()
    promotion = train(shared, good, "missing", IF_BETTER)["promotion"]
    assert not promotion["promoted"]
    assert promotion["reason"].startswith("version 1 could not be loaded for the comparison")


def test_the_comparison_is_repeated_if_another_version_goes_live_meanwhile(
    shared: InProcessApi, bad: str, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(shared, bad, "race")
    train(shared, good, "race")
    compare = comparison.compare_with_live
    compared: list[int | None] = []

    def compare_and_move(*arguments: Any) -> Any:
        verdict = compare(*arguments)
        if not compared:
            shared.call("PUT", "/v1/models/race/aliases/live", 200, json={"version": 2})
        compared.append(verdict.live_version)
        return verdict

    monkeypatch.setattr(training, "compare_with_live", compare_and_move)
    promotion = train(shared, good, "race", IF_BETTER)["promotion"]
    assert compared == [1, 2]
    assert not promotion["promoted"]
    assert promotion["live_before"] == promotion["comparison"]["live_version"] == 2


@pytest.mark.parametrize(
    ("promote", "promoted", "reason"),
    [
        ("if_first", False, "the rule if_first keeps version 1, which is live"),
        ("always", True, "the rule always promotes every version"),
        ("never", False, "the rule never promotes no version"),
    ],
)
def test_the_other_rules_say_why_too(
    shared: InProcessApi, good: str, promote: str, promoted: bool, reason: str
) -> None:
    model = f"rule-{promote}"
    train(shared, good, model)
    outcome = train(shared, good, model, promote)["promotion"]
    assert outcome == {"promoted": promoted, "reason": reason, "live_before": 1}


@pytest.mark.parametrize("rule", [{"metric": "set_brier_score"}, {"metric": "nonsense"}])
def test_a_measure_that_cannot_be_compared_is_rejected_with_the_list(
    shared: InProcessApi, good: str, rule: dict[str, Any]
) -> None:
    body = {
        "model": "m",
        "dataset_id": good,
        "learner": {"algorithm": "svm"},
        "promote": {"if_better": rule},
    }
    problem = shared.send("POST", "/v1/training-jobs", json=body).json()
    assert problem["errors"][0]["pointer"] == "/promote/if_better/metric"
    assert "accuracy, average_precision, " in problem["errors"][0]["message"]
    in_process.work(shared.ctx)
