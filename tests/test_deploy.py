"""What is deployed by speaks of commands, settings and files that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import settings_page
from typer.main import get_command

from app.cli.main import cli
from app.settings import Settings

ROOT = Path(__file__).parents[1]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
SPOKEN = [
    *UNITS,
    ROOT / "deploy/systemd/covey.env",
    ROOT / "deploy/compose.yaml",
    ROOT / "docs/operations.md",
]
CHOSEN = {"COVEY_DB_PASSWORD"}
"""Variables of the compose file itself."""


@pytest.mark.parametrize("path", SPOKEN, ids=lambda path: path.name)
def test_settings_that_are_spoken_of_exist(path: Path) -> None:
    known = {settings_page.variable(name) for name in Settings.model_fields} | CHOSEN
    assert set(re.findall(r"\bCOVEY_[A-Z_]*[A-Z]\b", path.read_text())) <= known


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_start_commands_that_exist(path: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.+)$", path.read_text(), re.MULTILINE)
    program, command, *options = shlex.split(line)
    assert program == "/opt/covey/bin/covey"
    commands = getattr(get_command(cli), "commands")  # noqa: B009 - of a group, which the type does not say
    known = {name for parameter in commands[command].params for name in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known


def test_units_are_understood(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    # Programs and users are those of the machine that the units are for.
    program = tmp_path / "covey"
    program.touch(mode=0o755)
    for unit in UNITS:
        changed = re.sub(r"/opt/covey/bin/covey", str(program), unit.read_text())
        changed = re.sub(r"^(User|Group|EnvironmentFile)=.*\n", "", changed, flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(changed)
    names = [str(tmp_path / unit.name.replace("@", "@8001")) for unit in UNITS]
    for unit in UNITS:
        if "@" in unit.name:
            shutil.copyfile(tmp_path / unit.name, tmp_path / unit.name.replace("@", "@8001"))
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    told = [
        line for line in (ran.stdout + ran.stderr).splitlines() if str(tmp_path) in line or "covey" in line
    ]
    assert told == []
    assert ran.returncode == 0


def test_the_settings_mean_the_same_to_systemd_and_to_a_shell() -> None:
    assignments = re.findall(
        r"^#?([A-Z_]+)=(.*)$", (ROOT / "deploy/systemd/covey.env").read_text(), re.MULTILINE
    )
    assert len(assignments) > 4
    assert [name for name, value in assignments if not re.fullmatch(r"'[^'\\]*'", value)] == []


def test_the_script_for_operators_is_a_shell_script_that_can_be_run() -> None:
    script = ROOT / "deploy/covey"
    assert script.stat().st_mode & 0o111 == 0o111
    subprocess.run(["sh", "-n", script], check=True)


def test_the_page_names_every_metric() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    source = (ROOT / "app/health/metrics.py").read_text()
    names = set(re.findall(r'"(covey_[a-z_]+)"', source))
    assert names
    assert [name for name in names if f"`{name}" not in page] == []


def test_links_of_the_page_lead_somewhere() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", page)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
