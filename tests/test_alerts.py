"""The alert rules for Prometheus are valid, fire, and name pages that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import required
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy/prometheus"
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "arguments", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]]
)
def test_prometheus_accepts_the_rules_and_each_fires_if_it_must(arguments: list[str]) -> None:
    if shutil.which("promtool") is None:
        required.missing("promtool is not installed (on Debian: the package prometheus)")
    result = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_test_and_a_page_that_says_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    assert re.search(rf"\b{rule['alert']}\b", (FOLDER / "alerts_test.yaml").read_text())
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor in anchors(ROOT / page)
    assert rule["labels"]["severity"] in ("critical", "warning")
