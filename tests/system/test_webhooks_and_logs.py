"""A real service: each line of its log is JSON, whoever writes it, and its worker sends webhooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stack import Stack, departments
from standardwebhooks import Webhook
from waiting import wait_for
from webhook_receiver import receiver

pytestmark = pytest.mark.system


def test_events_are_sent_and_no_banner_or_warning_stands_between_the_lines_of_the_log(tmp_path: Path) -> None:
    settings = {
        # Python warns about every file that is not closed, and about much more.
        "PYTHONWARNINGS": "always",
        "COVEY_LOG_LEVEL": "debug",
        "COVEY_WEBHOOKS_ALLOW_PRIVATE": "true",
    }
    stack = Stack(tmp_path, settings)
    stack.start()
    try:
        with receiver() as target:
            body = {"url": target.url, "events": ["job.ended"], "model": "m"}
            webhook = stack.call("POST", "/v1/webhooks", 201, json=body)
            dataset = stack.dataset(departments(20))
            job = stack.train(
                dataset["id"], model="m", learner={"algorithm": "naive_bayes"}, decision={"kind": "sign"}
            )
            (request,) = wait_for(lambda: target.requests or None, what="the event")
            event = Webhook(webhook["secret"]).verify(request.body, request.headers)
            assert (event["data"]["job_id"], event["data"]["state"]) == (job["id"], "succeeded")
    finally:
        stack.stop()
    lines = stack.log.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert {"child.started", "request", "webhook.attempt"} <= set(events)
