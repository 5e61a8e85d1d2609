"""Measure how much open event streams slow predictions down.

    python benchmarks/event_streams.py
    python benchmarks/event_streams.py --streams 300 --predictions 300

Starts ``covey serve``, holds a training, opens event streams of it, and prints the latency of predictions
that one client sends one after the other, without and with the streams. Then it lets the training continue.
The exit status is 1 if a stream misses an event.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from stack import Stack, departments

from app.training.event_streams import KEYS_WITH_ALL_STREAMS


async def predict(url: str, n: int) -> list[float]:
    """Send predictions one after the other, and return their latencies in milliseconds, sorted."""
    latencies = []
    async with httpx.AsyncClient(base_url=url, timeout=300, trust_env=False) as client:
        for _ in range(n):
            started = time.perf_counter()
            response = await client.post(
                "/v1/models/test/predict", json={"instances": [{"text": "invoice payment"}]}
            )
            response.raise_for_status()
            latencies.append(1000 * (time.perf_counter() - started))
    return sorted(latencies)


async def follow(client: httpx.AsyncClient, job_id: str, opened: asyncio.Semaphore) -> str:
    """Follow the events of a job until the stream ends, and return what was received."""
    received = ""
    headers = {"Accept": "text/event-stream"}
    async with client.stream("GET", f"/v1/training-jobs/{job_id}/events", headers=headers) as response:
        response.raise_for_status()
        async for text in response.aiter_text():
            if not received:
                opened.release()
            received += text
    return received


def print_latencies(name: str, latencies: list[float]) -> None:
    """Print the median and the 99th percentile."""
    p99 = latencies[int(0.99 * (len(latencies) - 1))]
    print(
        f"{name}: {len(latencies)} predictions, p50 {statistics.median(latencies):.1f} ms, p99 {p99:.1f} ms",
        flush=True,
    )


async def measure(stack: Stack, job_id: str, n_streams: int, n_predictions: int) -> list[asyncio.Task[str]]:
    """Measure without and with streams, let the job continue, and return what the streams received."""
    await predict(stack.url, 20)
    print_latencies("no event streams", await predict(stack.url, n_predictions))
    opened = asyncio.Semaphore(0)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=stack.url, timeout=300, trust_env=False, limits=limits) as client:
        streams = [asyncio.create_task(follow(client, job_id, opened)) for _ in range(n_streams)]
        for _ in streams:
            await opened.acquire()
        print_latencies(f"{n_streams} event streams", await predict(stack.url, n_predictions))
        stack.call("POST", f"/v1/training-jobs/{job_id}/cancel", 202)
        await asyncio.wait(streams)
    return streams


def main() -> int:
    """Run the measurement, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--predictions", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(
            Path(folder) / "data",
            {"COVEY_MAX_EVENT_STREAMS": str(options.streams * KEYS_WITH_ALL_STREAMS)},  # they have one key
        ).start()
        try:
            dataset = stack.dataset(departments(80))
            stack.finished(stack.train(dataset["id"])["id"])
            with stack.hold(model="held") as hold:
                job = stack.train(
                    dataset["id"], model="held", learner={"algorithm": "mp_boost", "rounds": 100}
                )
                hold.wait()
                streams = asyncio.run(measure(stack, job["id"], options.streams, options.predictions))
        finally:
            stack.stop()
    complete = sum(task.exception() is None and "event: cancelled" in task.result() for task in streams)
    print(f"streams that received the last event of the job: {complete} of {options.streams}")
    return 0 if complete == options.streams else 1


if __name__ == "__main__":
    sys.exit(main())
