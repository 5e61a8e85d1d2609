"""What the programs need that drive a running service with a generated client: examples and a message."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import generate_clients
from required import missing
from stack import departments
from waiting import LIMIT_SECONDS

DRIVERS = Path(__file__).parents[1] / "build"
WORKS = "the whole path works"
"""The last line that each of these programs prints."""

MESSAGE = b"""\
From: Ann <ann@example.com>
Subject: Late parcel
Message-ID: <generated-client@example.com>

The courier says the parcel is late. Where is the delivery?
"""


def generate(name: str, folder: Path) -> None:
    """Generate a client, or skip the test if its generator is not installed."""
    try:
        generate_clients.GENERATORS[name](folder)
    except generate_clients.GeneratorMissingError as error:
        missing(f"the client {name}: {error}")


def write_inputs(folder: Path) -> tuple[Path, Path]:
    """Write the files that a driver reads, and return the paths of the examples and of the raw message."""
    examples, message = folder / "examples.jsonl", folder / "message.eml"
    examples.write_text("".join(json.dumps(example) + "\n" for example in departments(80)))
    message.write_bytes(MESSAGE)
    return examples, message


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a compiler or a driver, and return what it prints."""
    completed = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=10 * LIMIT_SECONDS,
    )
    assert completed.returncode == 0, completed.stdout[-8000:]
    return completed.stdout
