"""Measure what writing responses together saves: the CPU time of a prediction with and without it.

    python -m benchmarks.collected_writes [--rounds N]

Starts ``covey api`` twice on one database, once with uvicorn's own transport instead of the one of
``app/server/collected_writes.py``. Trains naive Bayes on made-up messages. In each round, a client sends
predictions for one text over 16 connections to one process after the other, each request as soon as the last
response of its connection has arrived. The times are those of the process, in microseconds for each request;
the ratio is the median of the ratios of the rounds, with its quartiles.

Stores the results and writes the table into ``docs/serving.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import production
from stack import departments

from benchmarks import tables
from benchmarks.serving_sides import processes
from benchmarks.serving_sides.bodies import raw_request
from benchmarks.serving_sides.service import Service
from models import catalog
from models.artifact import save
from models.data.examples import Examples
from models.pipeline import Pipeline

NAME = "collected_writes"
PAGE = tables.DOCS / "serving.md"
CONNECTIONS = 16
REQUESTS = 1_000
TOGETHER, ALONE = "written together", "written alone"

PLAIN_API = """
import sys
from app.cli.entry import main
from app.server import protocol
protocol.CollectingTransport = lambda transport, _: transport
sys.argv[0] = "covey"
main()
"""
"""Runs ``covey`` with uvicorn's own transport."""


def train(path: Path) -> None:
    """Save a model of made-up messages."""
    examples = departments(200)
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "naive_bayes"}),
    )
    texts = [example["text"] for example in examples]
    save(pipeline.fit(Examples("text", texts, [tuple(example["labels"]) for example in examples])), path)


async def send(url: str, request: bytes, n: int) -> None:
    """Send a request repeatedly over each connection, n times in all."""
    parts = urlsplit(url)

    async def repeat() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for _ in range(n // CONNECTIONS):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(repeat() for _ in range(CONNECTIONS)))


def cpu_micros(pid: int) -> float:
    """Return the CPU time of all threads of a process; the kernel counts it in nanoseconds."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e3


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the CPU time of a request in each round, for both ways of writing."""
    train(folder / "model.covey")
    text = " ".join(example["text"] for example in departments(8))[:800]
    times: dict[str, list[float]] = {TOGETHER: [], ALONE: []}
    with ExitStack() as opened:
        service = Service(folder, {})
        opened.callback(service.stop)
        service.start_api()
        service.import_model("m", folder / "model.covey")
        port = production.free_port()
        plain = opened.enter_context(
            processes.server(
                [sys.executable, "-c", PLAIN_API, "api", "--port", str(port)],
                f"http://127.0.0.1:{port}/health/live",
                folder / "plain.log",
                environment=service.environment,
            )
        )
        sides = {TOGETHER: (service.urls[0], service.pids[0]), ALONE: (f"http://127.0.0.1:{port}", plain.pid)}
        headers = {"Content-Type": "application/json", **service.headers}
        body = json.dumps({"instances": [{"text": text}]}).encode()
        for number in range(rounds + 1):
            for side in list(sides)[:: 1 if number % 2 else -1]:
                url, pid = sides[side]
                before = cpu_micros(pid)
                asyncio.run(send(url, raw_request(f"{url}/v1/models/m/predict", headers, body), REQUESTS))
                if number:  # the first round warms up
                    times[side].append((cpu_micros(pid) - before) / (REQUESTS // CONNECTIONS * CONNECTIONS))
    return times


def rendered() -> dict[str, str]:
    """Return the table of the stored results."""
    rows = [
        [result["side"], f"{result['micros']:,.0f} µs", f"{result['ratio']:.2f}", result["quartiles"]]
        for result in tables.stored(NAME)
    ]
    return {NAME: tables.markdown(("responses", "CPU time of a prediction", "ratio", "quartiles"), rows)}


def main() -> None:
    """Measure, store the results, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="repetitions (20)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        times = measure(Path(name), arguments.rounds)
    results = []
    for side, micros in times.items():
        ratios = [one / base for one, base in zip(micros, times[TOGETHER], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        results.append(
            {
                "side": side,
                "micros": round(statistics.median(micros)),
                "ratio": round(middle, 3),
                "quartiles": f"{low:.2f} to {high:.2f}",
            }
        )
    tables.store(NAME, results, ("side",))
    tables.show(PAGE, rendered())


if __name__ == "__main__":
    main()
