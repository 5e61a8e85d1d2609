"""Several API processes on one address behave like one that never stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import commands
import httpx
import production
import pytest
from continuous_load import Load
from stack import Stack, children, departments, name_of
from waiting import LIMIT_SECONDS, wait_for

from app.cli.listening import NOT_STARTED

pytestmark = [pytest.mark.faults, pytest.mark.system, pytest.mark.xdist_group("two")]

PREDICT = "/v1/models/served/predict"
TEXT = {"instances": [{"text": "my invoice is wrong"}], "version": "live"}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with two API processes, and a model ``served`` with two versions that have other labels."""
    stack = Stack(tmp_path_factory.mktemp("two") / "data", {"COVEY_PROCESSES": "2"}).start()
    for prefix in ("one", "two"):
        examples = [
            {**example, "labels": [f"{prefix} {label}" for label in example["labels"]]}
            for example in departments(40)
        ]
        dataset = stack.dataset(examples)
        job = stack.train(dataset["id"], model="served", learner={"algorithm": "naive_bayes"})
        assert stack.finished(job["id"])["state"] == "succeeded"
    yield stack
    assert stack.stop() == 0


def api_pids(stack: Stack) -> list[int]:
    return sorted(stack.api_pids())


@contextmanager
def clients(stack: Stack, n: int) -> Iterator[list[httpx.Client]]:
    """Open n connections, and send a request on each."""
    with ExitStack() as opened:
        all_clients = [
            opened.enter_context(httpx.Client(base_url=stack.url, timeout=LIMIT_SECONDS, trust_env=False))
            for _ in range(n)
        ]
        for client in all_clients:
            assert client.get("/health/live").status_code == 200
        yield all_clients


def port_of(url: str) -> int:
    """Return the port of a URL."""
    return int(url.rpartition(":")[2])


def n_connections(pid: int, port: int) -> int:
    """Return how many connections of a port a process has."""
    established = {
        fields[9]
        for fields in map(str.split, Path("/proc/net/tcp").read_text().splitlines()[1:])
        if fields[1].endswith(f":{port:04X}") and fields[3] == "01"
    }
    n = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            match = re.fullmatch(r"socket:\[(\d+)\]", str(fd.readlink()))
            n += match is not None and match[1] in established
    return n


def requests_counted(client: httpx.Client) -> float:
    """Return the number of requests in the metrics, except those that read metrics."""
    text = client.get("/metrics").text
    counts = re.findall(
        r'^covey_requests_total\{operation="(?!health_metrics)\w+".*\} (\S+)$', text, re.MULTILINE
    )
    return sum(map(float, counts))


def test_connections_spread_over_the_processes(two: Stack) -> None:
    port = int(two.url.rpartition(":")[2])
    with clients(two, 12):
        per_process = [n_connections(pid, port) for pid in api_pids(two)]
    assert len(per_process) == 2
    assert min(per_process) >= 3


def test_metrics_are_sums_over_all_processes(two: Stack) -> None:
    with clients(two, 6) as all_clients:
        counts = [requests_counted(client) for client in all_clients]
        assert len(set(counts)) == 1
        for client in all_clients:
            assert client.get("/health/live").status_code == 200
        assert [requests_counted(client) - counts[0] for client in all_clients] == [6.0] * 6


def test_if_a_process_is_killed_the_other_responds_and_no_count_is_lost(two: Stack) -> None:
    killed, other = api_pids(two)
    with clients(two, 8):
        pass
    with clients(two, 1) as (client,):
        before = requests_counted(client)
    os.kill(killed, signal.SIGKILL)
    with clients(two, 4) as all_clients:
        for client in all_clients:
            assert requests_counted(client) >= before + 4

    def restarted() -> list[int] | None:
        pids = api_pids(two)
        return pids if len(pids) == 2 and killed not in pids else None

    assert other in wait_for(restarted, what="the next process")
    with clients(two, 8) as all_clients:
        assert requests_counted(all_clients[0]) >= before + 12


def wrong_labels(response: dict[str, Any]) -> str | None:
    """Return a failure if a response mixes versions: all labels begin with the name of their version."""
    prefix = {1: "one ", 2: "two "}[response["version"]]
    labels = {item["label"] for item in response["predictions"][0]["ranking"]}
    labels |= set(response["predictions"][0]["labels"])
    return None if all(label.startswith(prefix) for label in labels) else f"mixed: {response}"


def promote(stack: Stack, version: int) -> None:
    stack.call("PUT", "/v1/models/served/aliases/live", 200, json={"version": version})


def test_a_promote_under_load_fails_no_request_and_mixes_no_versions(two: Stack) -> None:
    promote(two, 1)
    load = Load(two.url, clients=3, check=wrong_labels)
    try:
        for version in (2, 1, 2):
            promote(two, version)
            with clients(two, 4) as all_clients:

                def everywhere(
                    version: int = version, all_clients: list[httpx.Client] = all_clients
                ) -> bool | None:
                    responses = [
                        client.post("/v1/models/served/predict", json=TEXT) for client in all_clients
                    ]
                    versions = {response.raise_for_status().json()["version"] for response in responses}
                    return True if versions == {version} else None

                wait_for(everywhere, what=f"every process to use version {version}")
    finally:
        load.stop()
    assert load.failures == []
    assert load.responses > 0


def test_an_address_in_use_is_reported_even_if_its_owner_would_share_it(two: Stack) -> None:
    with socket.socket() as owner:
        owner.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = str(owner.getsockname()[1])
        done = commands.covey(
            "api", "--processes", "2", "--port", port, environment={"COVEY_DATA_DIR": str(two.data)}
        )
    assert done.returncode == NOT_STARTED
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_a_process_whose_supervisor_has_died_at_its_start_ends_despite_threads(two: Stack) -> None:
    # Nothing reads from the pipe on which the process reports that it is ready.
    reader, writer = os.pipe()
    os.close(reader)
    program = (
        "import sys, threading; threading.Thread(target=threading.Event().wait).start(); "
        f"sys.argv[1:] = ['api', '--port', '0', '--ready-fd', '{writer}']; "
        "import runpy; runpy.run_module('app', run_name='__main__')"
    )
    try:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "COVEY_DATA_DIR": str(two.data)},
            pass_fds=[writer],
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    finally:
        os.close(writer)
    assert ended.returncode == 1
    assert "BrokenPipeError" in ended.stderr


def test_processes_are_replaced_one_by_one_without_losing_a_request_and_stop_together(two: Stack) -> None:
    with production.api(two.data, "--processes", "2") as (supervisor, url):

        def running() -> list[int]:
            return [pid for pid in children(supervisor.pid) if name_of(pid) == "covey-api"]

        threads = [task.read_text().strip() for task in Path(f"/proc/{supervisor.pid}/task").glob("*/comm")]
        # The allocator of PyArrow has a thread, and prepares itself for forks.
        assert len([name for name in threads if name != "jemalloc_bg_thd"]) == 1
        assert n_connections(supervisor.pid, port_of(url)) == 0
        old = wait_for(lambda: pids if len(pids := running()) == 2 else None, what="two processes")
        fewest = len(old)
        load = Load(url, clients=3, check=wrong_labels)
        try:
            supervisor.send_signal(signal.SIGHUP)

            def replaced() -> bool | None:
                nonlocal fewest
                pids = running()
                fewest = min(fewest, len(pids))
                return True if len(pids) == 2 and not set(pids) & set(old) else None

            wait_for(replaced, what="two new processes")
            before = load.responses
            wait_for(lambda: load.has_responses(before + 20), what="responses of the new processes")
        finally:
            load.stop()
        assert load.failures == []
        assert fewest == 2
        last = running()
        supervisor.terminate()
        assert supervisor.wait(LIMIT_SECONDS) == 0
        assert [pid for pid in last if name_of(pid) == "covey-api"] == []
