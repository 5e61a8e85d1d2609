"""The files in ``deploy`` and the pages in ``docs/operations`` name existing commands, settings and files."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import required
import settings_page
import sqlalchemy as sa
import yaml
from psycopg.pq import Conninfo
from typer.main import get_command

from app.cli.main import cli
from app.settings import Settings

ROOT = Path(__file__).parents[1]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
FILES_WITH_SETTINGS = [
    *UNITS,
    ROOT / "deploy/systemd/covey.env",
    ROOT / "deploy/compose.yaml",
    *(ROOT / "deploy/caddy").iterdir(),
    *(ROOT / "deploy/nginx").rglob("*.conf"),
    *sorted((ROOT / "docs/operations").glob("*.md")),
]
COMPOSE = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())


@pytest.mark.parametrize("path", FILES_WITH_SETTINGS, ids=lambda path: path.name)
def test_settings_in_the_files_exist(path: Path) -> None:
    known = {settings_page.variable(name) for name in Settings.model_fields}
    assert set(re.findall(r"\bCOVEY_[A-Z_]*[A-Z]\b", path.read_text())) <= known


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_start_commands_that_exist(path: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.+)$", path.read_text(), re.MULTILINE)
    program, command, *options = shlex.split(line)
    assert program == "/opt/covey/bin/covey"
    commands = getattr(get_command(cli), "commands")  # noqa: B009 - the return type does not declare that this is a group
    known = {name for parameter in commands[command].params for name in parameter.opts}
    assert {option for option in options if option.startswith("--")} <= known


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_of_the_compose_file_has_a_limit_and_refers_to_what_exists(name: str) -> None:
    service = COMPOSE["services"][name]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert set(service.get("depends_on", {})) <= set(COMPOSE["services"])
    for volume in service.get("volumes", []):
        source = volume.partition(":")[0]
        assert source in COMPOSE["volumes"] or (ROOT / "deploy" / source).is_file()
    if service["image"] == "covey":
        commands = getattr(get_command(cli), "commands")  # noqa: B009 - see above
        assert service.get("command", ["api"])[0] in commands
        assert (ROOT / "deploy" / service["build"] / "Dockerfile").is_file()


def test_only_the_proxy_of_the_compose_file_publishes_ports() -> None:
    assert [name for name, service in COMPOSE["services"].items() if "ports" in service] == ["proxy"]
    proxy = COMPOSE["services"]["proxy"]["environment"]
    caddy = (ROOT / "deploy/caddy/Caddyfile").read_text()
    assert set(re.findall(r"\{\$(\w+)", caddy)) == set(proxy)


def test_any_password_of_the_database_works_because_no_url_contains_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = COMPOSE["services"]["api"]["environment"]
    assert environment["PGPASSWORD"] == COMPOSE["services"]["db"]["environment"]["POSTGRES_PASSWORD"]
    url = Settings(database_url=environment["COVEY_DATABASE_URL"]).resolved_database_url()
    assert sa.make_url(url).password is None
    monkeypatch.setenv("PGPASSWORD", "p@ss/w:r d%$#")
    assert b"p@ss/w:r d%$#" in [option.val for option in Conninfo.get_defaults()]


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        required.missing("systemd-analyze is not installed (on Debian: the package systemd)")
    # The program, the users and the environment file do not exist on this machine.
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
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    lines = (result.stdout + result.stderr).splitlines()
    assert [line for line in lines if str(tmp_path) in line or "covey" in line] == []
    assert result.returncode == 0


def test_pages_and_units_agree_about_paths_and_ports() -> None:
    """Whoever follows several of them must not stop all mail by a difference."""
    files = [*UNITS, *(ROOT / "deploy").glob("covey*"), *(ROOT / "docs").rglob("*.md"), ROOT / "Dockerfile"]
    text = "\n".join(path.read_text() for path in files)
    assert {*re.findall(r"/opt/covey\S*/covey\b", text)} == {"/opt/covey/bin/covey"}
    assert {*re.findall(r"http://127\.0\.0\.1:(\d+)", text)} == {"8000"}
    operations = "".join(path.read_text() for path in (ROOT / "docs/operations").glob("*.md"))
    assert {*re.findall(r"covey-api@(\d+)", operations)} == {"8000"}
    filters = re.findall(r"--listen (\S+)(?: --lmtp)? --next-hop (\S+)", text)
    assert {listen for listen, _ in filters} == {"127.0.0.1:10025"}
    assert {hop for _, hop in filters} == {"127.0.0.1:10026", "lmtp:/run/dovecot/lmtp"}
    keys = re.findall(r"(?:--key-file |LoadCredential=key:)([^\s`]+)", text)
    assert {*keys} == {"/etc/covey/mail-key", "${CREDENTIALS_DIRECTORY}/key"}
    assert "root -g covey /dev/stdin /etc/covey/mail-key" in text


def test_every_recipe_for_mail_servers_names_the_key() -> None:
    page = "\n".join(path.read_text() for path in (ROOT / "docs/mail").glob("*.md"))
    commands = [*re.findall(r"/opt/covey/bin/covey route .*", page), *re.findall(r"^ExecStart=.*", page)]
    assert len(commands) > 3
    assert [command for command in commands if "--key-file /etc/covey/mail-key" not in command] == []


def test_an_upgrade_never_changes_the_environment_in_use() -> None:
    page = (ROOT / "docs/operations/run.md").read_text()
    assert "/opt/covey/bin/pip" not in page
    upgrade = page.partition("## Upgrade")[2].partition("\n## ")[0]
    assert [word for word in ("covey-smtp", "covey-imap", "postqueue", "mv -T") if word not in upgrade] == []


def test_systemd_and_a_shell_read_the_same_values_of_settings() -> None:
    assignments = re.findall(
        r"^#?([A-Z_]+)=(.*)$", (ROOT / "deploy/systemd/covey.env").read_text(), re.MULTILINE
    )
    assert len(assignments) > 4
    assert [name for name, value in assignments if not re.fullmatch(r"'[^'\\]*'", value)] == []


def test_the_script_for_operators_is_an_executable_shell_script() -> None:
    script = ROOT / "deploy/covey"
    assert script.stat().st_mode & 0o111 == 0o111
    subprocess.run(["sh", "-n", script], check=True)


def test_the_page_about_monitoring_documents_every_metric() -> None:
    page = (ROOT / "docs/operations/monitor.md").read_text()
    sources = [*(ROOT / "app").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
    names = {
        name
        for path in sources
        for name in re.findall(r'^ *"(covey_[a-z_]+)"', path.read_text(), re.MULTILINE)
    }
    assert {"covey_decisions", "covey_mail_healthy", "covey_worker_heartbeat_age_seconds"} <= names
    assert [name for name in names if f"`{name}" not in page] == []
