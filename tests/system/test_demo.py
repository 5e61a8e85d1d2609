"""``covey demo --once`` trains a model, routes messages and exits."""

from __future__ import annotations

import subprocess
import sys

import pytest
from waiting import LIMIT_SECONDS

from app.server.parent_death import end_with_parent

pytestmark = pytest.mark.system


def test_the_demo_trains_a_model_routes_messages_and_exits() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--once"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        preexec_fn=end_with_parent(),
        check=False,
        env={"COLUMNS": "200", "PATH": "/usr/bin:/bin"},
    )
    assert completed.returncode == 0, completed.stderr[-3000:]
    output = completed.stdout
    assert "451 messages" in output
    assert "Overall quality (F1)" in output
    destinations = {
        line.split()[0]: line.split("→")[1].strip() for line in output.splitlines() if "→" in line
    }
    assert destinations == {
        "single.eml": "technical_support@example.org",
        "several.eml": "billing@example.org, shipping@example.org",
        "fallback.eml": "frontdesk@example.org",
    }
    assert "/docs" in output
