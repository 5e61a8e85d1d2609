"""From reviewed messages to the next version, as the pages lead from one step to the next."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import in_process
import pytest
from console_visitors import Visitor, visitor
from in_process_api import InProcessApi
from stack import departments

from app.console.versions.promotion import sentences
from app.db import tables
from app.registry.schemas import PromotionOutcome


def text_of(html: str) -> str:
    """Return what a reader sees, with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", unescape(html)))


@pytest.fixture(scope="module")
def dataset(api: InProcessApi) -> str:
    """Texts, as in a CSV file, with which version 1 of ``desk`` was trained."""
    texts = [{name: item[name] for name in ("text", "labels", "split")} for item in departments(160)]
    created = api.dataset(texts)
    api.train(created, "desk", learner={"algorithm": "svm", "C": 0.5}, seed=7)
    router = {"model": "desk", "fallback": "front@example.org", "keep_messages": "all"}
    api.call("PUT", "/v1/routers/desk", 200, json=router)
    return created


@pytest.fixture(scope="module")
def trainer(api: InProcessApi, dataset: str) -> Visitor:
    return visitor(api, "read", "predict", "train")


def test_reviewed_messages_become_a_data_set_and_the_next_version(
    api: InProcessApi, dataset: str, trainer: Visitor
) -> None:
    link = "Make a data set from"
    assert link not in trainer.see("/console/routers/desk/review")
    for number in (1, 2):
        raw = f"Message-ID: <{number}@example.org>\r\nSubject: Refund\r\n\r\nMy invoice is wrong.\r\n"
        headers = {"Content-Type": "message/rfc822"}
        routed = api.call("POST", "/v1/routers/desk/messages", 200, content=raw.encode(), headers=headers)
        path = f"/v1/decisions/{routed['decision_id']}/feedback"
        api.call("POST", path, 200, json={"labels": ["sales"]})
    for page in ("review", "report"):
        assert f"{link} 2 reviewed messages" in text_of(trainer.see(f"/console/routers/desk/{page}"))
        assert link not in visitor(api, "read", "predict").see(f"/console/routers/desk/{page}")
    form = trainer.see("/console/routers/desk/dataset")
    assert re.search(rf'<option value="{dataset}" selected>', form)
    assert 'name="from_feedback/router" value="desk"' in form

    body = {"name": "next", "from_feedback": {"router": "desk"}, "and_dataset": dataset}
    made = api.call("POST", "/v1/datasets", 201, json=body)["id"]
    in_process.work(api.ctx)
    shown = trainer.see(f"/console/datasets/{made}")
    button = re.search(r'data-body="([^"]+)"[^>]*>Train, and put it live if it is better', shown)
    assert button is not None
    assert "put it live if it is better" not in trainer.see(f"/console/datasets/{dataset}")
    assert "put it live if it is better" not in visitor(api, "read").see(f"/console/datasets/{made}")
    request = json.loads(unescape(button[1]))
    assert (request["learner"]["C"], request["seed"], request["split"]) == (0.5, 7, {"kind": "given"})

    job = api.call("POST", "/v1/training-jobs", 202, json=request)["id"]
    in_process.work(api.ctx)
    promotion = api.call("GET", f"/v1/training-jobs/{job}", 200)["result"]["promotion"]
    compared = promotion["comparison"]
    text = text_of(trainer.see(f"/console/training/{job}"))
    assert (
        f"Of {compared['examples']} test messages, the new version gets {compared['new_right']} fully right, "
        f"and version 1, which was live, {compared['live_right']}."
    ) in text
    assert "The new version was not put live, because it is not better" in text


def test_without_the_training_of_the_version_its_settings_are_those_of_the_version(
    api: InProcessApi, dataset: str, trainer: Visitor
) -> None:
    made = api.call("POST", "/v1/datasets", 201, json={"name": "alone", "from_feedback": {"router": "desk"}})[
        "id"
    ]
    in_process.work(api.ctx)
    job = api.call("GET", "/v1/models/desk/versions/1", 200)["training_job_id"]
    with api.ctx.db.write() as tx:
        tx.session.delete(tx.session.get_one(tables.Job, job))
    shown = trainer.see(f"/console/datasets/{made}")
    button = re.search(r'data-body="([^"]+)"[^>]*>Train, and put it live', shown)
    assert button is not None
    request = json.loads(unescape(button[1]))
    assert (request["learner"]["algorithm"], request["split"]["kind"]) == ("svm", "random")
    api.call("POST", "/v1/training-jobs", 202, json=request)


def outcome(promoted: bool, **fields: Any) -> PromotionOutcome:
    comparison = {
        "metric": "f1_micro",
        "live_version": 3,
        "examples": 400,
        "left_out": 0,
        "live_training_examples": "known",
        "alpha": 0.05,
        "at_least": 0.0,
        "attempt": 1,
        "level": 0.025,
        "new_right": 361,
        "live_right": 340,
        "new_value": 0.935,
        "live_value": 0.86,
        "p_value": 0.001,
        **fields,
    }
    return PromotionOutcome.model_validate({"promoted": promoted, "reason": "", "comparison": comparison})


@pytest.mark.parametrize(
    ("promoted", "fields", "words"),
    [
        (True, {}, "The new version was put live, because it is better (f1 micro 0.935 and 0.860)"),
        (False, {"p_value": 0.2}, "not put live, because the difference (f1 micro 0.935 and 0.860) can be"),
        (False, {"new_value": 0.8}, "not put live, because it is not better (f1 micro 0.800 and 0.860)."),
        (False, {"at_least": 0.1}, "not put live, because it is better by less than 0.1"),
        (False, {"left_out": 7}, "7 other messages do not count, because version 3 has learned from them."),
        (False, {"left_out_selected": 9}, "9 other messages do not count: they were reviewed because"),
    ],
)
def test_the_comparison_is_said_in_words(promoted: bool, fields: dict[str, Any], words: str) -> None:
    said = sentences(outcome(promoted, **fields))
    assert said[0] == (
        "Of 400 test messages, the new version gets 361 fully right, and version 3, which was live, 340."
    )
    assert words in " ".join(said)
