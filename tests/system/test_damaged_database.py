"""A damaged database file: commands end with the reason, and a running service reports it."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest
from commands import covey
from stack import Stack, departments
from waiting import wait_for

pytestmark = [pytest.mark.faults, pytest.mark.system]


def damage(path: Path) -> None:
    """Overwrite everything after the first page of a database file, whose write-ahead log is empty."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


@pytest.mark.parametrize("damaged_part", ["everything", "all but the first page"])
def test_commands_on_a_damaged_file_end_with_the_reason_and_what_to_do(
    tmp_path: Path, damaged_part: str
) -> None:
    data = tmp_path / "data"
    if damaged_part == "everything":
        data.mkdir()
        (data / "covey.db").write_bytes(b"\xa5" * 8192)
        commands = [("serve", "--port", "0"), ("worker",), ("backup", str(tmp_path / "backup"))]
    else:
        covey("migrate", "--data", str(data), check=True)
        damage(data / "covey.db")
        commands = [("serve", "--port", "0"), ("api", "--port", "0"), ("migrate",)]
    for command in commands:
        result = covey(*command, environment={"COVEY_DATA_DIR": str(data)})
        assert result.returncode == 1, result.stderr
        assert "Traceback" not in result.stderr
        last = result.stderr.splitlines()[-1]
        assert last.startswith("covey: the database"), last
        assert " is damaged (" in last
        assert last.endswith("stop the service, move the database away and restore a backup")
    assert not (tmp_path / "backup").exists()


def test_a_service_whose_file_is_damaged_reports_it_and_runs_again_from_a_backup(
    killable_stack: Stack, tmp_path: Path
) -> None:
    stack = killable_stack
    dataset = stack.dataset(departments(40))
    file = tmp_path / "covey.tar.zst"
    covey("backup", str(file), "--data", str(stack.data), check=True)
    stack.stop()
    # The processes of the service keep nothing of the file in memory that they have not read.
    stack.start()
    damage(stack.data / "covey.db")

    def damaged() -> httpx.Response | None:
        responses = [stack.http.get(path) for path in (f"/v1/datasets/{dataset['id']}", "/v1/models")]
        assert {response.status_code for response in responses} <= {200, 404, 503}
        return next((response for response in responses if response.status_code == 503), None)

    problem = wait_for(damaged, what="a request to find the damage").json()
    assert problem["code"] == "database_damaged"
    ready = stack.http.get("/health/ready")
    assert ready.status_code == 503
    assert "the database is damaged" in ready.json()["detail"]
    assert stack.http.get(f"/v1/datasets/{dataset['id']}").json()["code"] == "database_damaged"
    stack.stop()

    restored = tmp_path / "restored"
    covey("restore", str(file), "--data", str(restored), check=True)
    shutil.rmtree(stack.data)
    restored.rename(stack.data)
    stack.start()
    assert stack.call("GET", f"/v1/datasets/{dataset['id']}", 200) == dataset
