"""Each line that a service writes to its log is JSON, whoever writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stack import Stack, departments

pytestmark = pytest.mark.system


def test_no_banner_or_warning_stands_between_the_lines_of_the_log(tmp_path: Path) -> None:
    # Python warns about every file that is not closed, and about much more.
    stack = Stack(tmp_path, {"PYTHONWARNINGS": "always", "COVEY_LOG_LEVEL": "debug"})
    stack.start()
    try:
        dataset = stack.dataset(departments(20))
        stack.train(dataset["id"], model="m", learner={"algorithm": "naive_bayes"}, decision={"kind": "sign"})
    finally:
        stack.stop()
    lines = stack.log.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert "child.started" in events
    assert "request" in events
