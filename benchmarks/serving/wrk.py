"""Runs ``wrk``, the load generator, and reads its report."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("requests.lua")

CONNECTIONS = 16

_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


class LoadError(RuntimeError):
    """The load generator is missing or failed, or a server did not respond as expected."""


@dataclass(frozen=True)
class Load:
    """The result of one run.

    Attributes:
        responses: number of responses.
        rate: responses per second.
        p50: median of the latency in milliseconds.
        p99: 99th percentile of the latency in milliseconds.
    """

    responses: int
    rate: float
    p50: float
    p99: float


def run(
    url: str,
    bodies: Path,
    headers: Mapping[str, str],
    *,
    seconds: float,
    connections: int = CONNECTIONS,
    pause_ms: int = 0,
) -> Load:
    """Send requests as fast as the server responds, with one thread.

    Args:
        url: the URL.
        bodies: file with the bodies, see ``Bodies.write``.
        headers: header fields of all requests.
        seconds: duration.
        connections: number of connections. Each has one request at a time.
        pause_ms: average pause between a response and the next request of its connection.

    Raises:
        LoadError: wrk is not installed, or a response is missing or has another status than 200.
    """
    program = shutil.which("wrk")
    if program is None:
        raise LoadError("wrk is not installed (on Debian: the package wrk)")
    fields = [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]
    completed = subprocess.run(
        [
            program,
            *("--threads", "1", "--connections", str(connections)),
            *("--duration", f"{max(1, round(seconds))}s", "--timeout", "30s", "--latency"),
            *("--script", str(SCRIPT), *fields, url, "--", str(bodies), secrets.token_hex(4), str(pause_ms)),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds + 120,
    )
    if completed.returncode:
        raise LoadError(f"wrk failed: {completed.stderr or completed.stdout}")
    return parse(completed.stdout)


def parse(report: str) -> Load:
    """Read a report of wrk.

    Raises:
        LoadError: a request got no response or an error.

    >>> parse('''  Latency Distribution
    ...      50%    1.61ms
    ...      75%    1.70ms
    ...      90%    1.91ms
    ...      99%  980.00us
    ...   29512 requests in 3.00s, 4.11MB read
    ... Requests/sec:   9833.91
    ... ''')
    Load(responses=29512, rate=9833.91, p50=1.61, p99=0.98)
    """
    for problem in ("Non-2xx or 3xx responses", "Socket errors"):
        if found := re.search(rf"{problem}: .*", report):
            raise LoadError(found[0])
    rate = re.search(r"Requests/sec:\s+([\d.]+)", report)
    responses = re.search(r"^\s+(\d+) requests in", report, re.MULTILINE)
    if rate is None or responses is None:
        raise LoadError(f"wrk printed no rate: {report}")
    return Load(int(responses[1]), float(rate[1]), _percentile(report, 50), _percentile(report, 99))


def _percentile(report: str, percent: int) -> float:
    found = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s|m)\s*$", report, re.MULTILINE)
    if found is None:
        raise LoadError(f"wrk printed no {percent}th percentile: {report}")
    return round(float(found[1]) * _UNITS[found[2]], 3)
