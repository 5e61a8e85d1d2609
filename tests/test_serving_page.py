"""``docs/background/serving.md`` contains the tables that ``benchmarks/serving`` prints."""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.serving import bodies, report, throughput, writes, wrk
from benchmarks.serving.open_loop import Client
from benchmarks.serving.report import Goal, Run, Values
from benchmarks.tables import insert, markdown
from models.mail import read_message

SIDES = Path(report.__file__).parent

REPORT = """\
Running 3s test @ http://127.0.0.1:8000/predict
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   239.47ms  361.17ms   2.16s    87.41%
    Req/Sec   115.17     23.29   151.00     68.97%
  Latency Distribution
     50%   71.97ms
     75%  237.91ms
     90%  722.34ms
     99%    1.65s\x20
  341 requests in 3.03s, 624.46KB read
Requests/sec:    112.40
Transfer/sec:    205.84KB
"""


@pytest.mark.parametrize("name", ["changes", "open_loop", "report", "wrk"])
def test_the_examples_of_the_modules_are_right(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"benchmarks.serving.{name}"))
    assert result.attempted
    assert not result.failed


def test_a_report_of_wrk_is_read_whatever_the_units() -> None:
    assert wrk.parse(REPORT) == wrk.Load(responses=341, rate=112.4, p50=71.97, p99=1650.0)


@pytest.mark.parametrize(
    "problem", ["Non-2xx or 3xx responses: 3", "Socket errors: connect 0, read 1, write 0, timeout 0"]
)
def test_a_run_with_failed_requests_counts_as_failed(problem: str) -> None:
    with pytest.raises(wrk.LoadError, match=problem):
        wrk.parse(f"{REPORT}  {problem}\n")


@pytest.mark.parametrize("output", ["", "Requests/sec: 12.0\n"])
def test_an_incomplete_report_is_an_error(output: str) -> None:
    with pytest.raises(wrk.LoadError):
        wrk.parse(output)


def test_ratios_are_taken_round_by_round() -> None:
    """The second round has half the speed on both sides, because of other work on the machine."""
    values = Values.ratios([50.0, 25.0, 60.0], [100.0, 50.0, 100.0])
    assert values == Values(median=0.5, lowest=0.5, highest=0.6)


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal("a", 0.45, Values(0.45, 0.1, 0.5)), True),
        (Goal("a", 0.45, Values(0.449, 0.1, 0.5)), False),
        (Goal("a", 5.0, Values(5.0, 1.0, 9.0), "ms", at_least=False), True),
        (Goal("a", 5.0, Values(5.1, 1.0, 9.0), "ms", at_least=False), False),
    ],
)
def test_the_median_decides_whether_a_goal_is_met(goal: Goal, met: bool) -> None:
    assert goal.met is met
    assert goal.row()[-1] == ("met" if met else "**not met**")


def test_the_highest_loads_give_the_goals() -> None:
    runs = {name: [Run(rate, 1.0, 2.0, 100.0)] for name, rate in _rates().items()}
    measured = {goal.text: goal.values.median for goal in throughput.goals(runs)}
    assert measured[f"{throughput.PREDICT}, of {throughput.EMPTY}"] == 0.5
    assert measured[f"{throughput.POSTGRESQL}, of {throughput.EMPTY}"] == 0.25
    assert measured[f"{throughput.PREDICT}, of {throughput.MLSERVER}"] == 5.0
    assert measured[f"{throughput.PREDICT}, of {throughput.ONE_VS_REST}"] == 50.0


def test_servers_that_cannot_be_installed_are_left_out() -> None:
    missing = {name for name in _rates() if "MLServer" in name or "BentoML" in name}
    runs = {name: [Run(rate, 1.0, 2.0, 100.0)] for name, rate in _rates().items() if name not in missing}
    assert {goal.text.rpartition(", of ")[2] for goal in throughput.goals(runs)} == {throughput.EMPTY}


def _rates() -> dict[str, float]:
    return {
        throughput.EMPTY: 10_000.0,
        throughput.PREDICT: 5_000.0,
        throughput.PREDICT_TOP: 5_500.0,
        throughput.SVM: 4_000.0,
        throughput.SVM_TOP: 4_500.0,
        throughput.SQLITE: 3_000.0,
        throughput.POSTGRESQL: 2_500.0,
        throughput.MLSERVER: 1_000.0,
        throughput.MLSERVER_TUNED: 2_000.0,
        throughput.BENTOML: 700.0,
        throughput.ONE_VS_REST: 100.0,
    }


def test_bodies_are_read_as_they_were_written(tmp_path: Path) -> None:
    contents = [b"{}", b"a\r\nb\n", b""]
    bodies.Bodies("application/json", contents).write(tmp_path / "bodies")
    assert bodies.read_bodies(tmp_path / "bodies") == contents


def test_messages_have_the_size_of_the_goal_and_an_id_of_their_own() -> None:
    made = bodies.messages([f"TITLE {n}\n" + f"The price of wheat rose {n} times. " * 30 for n in range(9)])
    message = made.contents[3]
    assert len(message) == bodies.MESSAGE_BYTES
    assert message.count(bodies.PLACEHOLDER) == 1
    mail = read_message(message.replace(bodies.PLACEHOLDER, b"0" * 24))
    assert mail.message_id is not None
    assert not mail.defects


def test_a_client_at_a_fixed_rate_counts_failed_requests() -> None:
    connections: list[asyncio.Task[None]] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        status = b"200 OK"
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\n{}")
                status = b"503 Service Unavailable"
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()

    async def run() -> Client:
        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = Client([bodies.raw_request(f"http://127.0.0.1:{port}/", {}, b"{}")])
        async with server:
            await client.run("127.0.0.1", port, connections=2, rate=40.0, seconds=0.0)
            await asyncio.gather(*connections)
        return client

    client = asyncio.run(run())
    assert client.latencies
    assert len(client.failures) == len(client.latencies) - 2  # the first response of each connection succeeds


def _measured() -> str:
    """Return the measured part of the page."""
    page = report.PAGE.read_text("utf-8")
    return page.partition("<!-- measured -->\n")[2].partition("<!-- end measured -->")[0]


def _table(head: Sequence[str]) -> list[list[str]]:
    """Return the cells of a table of the measured part."""
    rule = f"{markdown(head, [])}\n"
    assert rule in _measured()
    lines = _measured().partition(rule)[2].partition("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_contains_the_tables_of_the_script() -> None:
    assert sorted(cells[0] for cells in _table(report.LOADS_HEAD)) == sorted(_rates())
    assert _table(report.LAYERS_HEAD)


def test_the_page_shows_what_writing_together_saves() -> None:
    page = report.PAGE.read_text("utf-8")
    for mark, text in writes.rendered().items():
        assert insert(page, mark, text) == page


def test_the_page_contains_a_row_for_each_goal_of_the_script() -> None:
    templates = list(_goal_templates())
    rows = [text for text, *_ in _rows()]
    assert [t for t in templates if not any(re.fullmatch(t, text) for text in rows)] == []
    assert [text for text in rows if not any(re.fullmatch(t, text) for t in templates)] == []


def test_the_page_says_of_each_goal_whether_it_is_met() -> None:
    for text, sign, limit, measured, verdict in _rows():
        reached = measured >= limit if sign == "≥" else measured <= limit
        assert verdict == ("met" if reached else "**not met**"), text


def _rows() -> Iterator[tuple[str, str, float, float, str]]:
    """Yield goal, sign, limit, measurement and verdict of each row of the table of goals."""
    for text, limit, measured, _, verdict in _table(report.GOALS_HEAD):
        yield text, limit[0], _number(limit[2:]), _number(measured), verdict


def _number(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


def _goal_templates() -> Iterator[str]:
    """Yield the text of each goal in the sources as a regular expression."""
    for path in sorted(SIDES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Goal":
                text = node.args[0]
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                yield "".join(
                    re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in parts
                )
