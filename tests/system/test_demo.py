"""``covey demo --once``: the whole main job as a newcomer sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from waiting import LIMIT_SECONDS

from app.parent_death import end_with_parent

pytestmark = pytest.mark.system


def test_the_demonstration_shows_the_main_job_and_stops() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--once"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        preexec_fn=end_with_parent(),
        check=False,
        env={"COLUMNS": "200", "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    shown = run.stdout
    assert "451 messages" in shown
    assert "micro-averaged F1" in shown
    routed = {line.split()[0]: line.split("→")[1].strip() for line in shown.splitlines() if "→" in line}
    assert routed == {
        "single.eml": "technical_support@example.org",
        "several.eml": "shipping@example.org, billing@example.org",
        "fallback.eml": "frontdesk@example.org",
    }
    assert "/docs" in shown
