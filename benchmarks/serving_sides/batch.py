"""Many texts in one request, compared with the library in Python."""

from __future__ import annotations

import itertools
import json
import sys
import time

import httpx

from benchmarks.serving_sides.report import Goal, Values
from benchmarks.serving_sides.setup import Setup
from models import artifact

TEXTS = 1000
TOP = 5


def measure(setup: Setup) -> list[Goal]:
    """Compare the documents per second of one large request and of ``Pipeline.predict``."""
    texts = list(itertools.islice(itertools.cycle(setup.texts), TEXTS))
    body = json.dumps({"instances": [{"text": text} for text in texts], "top": TOP}).encode()
    goals = []
    running = setup.sqlite
    for model in ("mp_boost", "svm"):
        pipeline = artifact.load(setup.artifacts[model])
        headers = {"Content-Type": "application/json", **running.headers}
        with httpx.Client(headers=headers, timeout=300, trust_env=False) as client:
            url = f"{running.urls[0]}/v1/models/{model}/predict"
            seconds: dict[str, list[float]] = {"service": [], "library": []}
            for number in range(2 * setup.rounds + 1):
                began = time.perf_counter()
                client.post(url, content=body).raise_for_status()
                between = time.perf_counter()
                pipeline.predictions(texts, top=TOP)
                if number:  # the first round warms up
                    seconds["service"].append(between - began)
                    seconds["library"].append(time.perf_counter() - between)
        print(f"{model}: seconds for {TEXTS} texts: {seconds}", file=sys.stderr, flush=True)
        goals.append(
            Goal(
                f"{TEXTS:,} texts in one request, documents/s of Pipeline.predict: {model}, top {TOP}",
                1.0,
                Values.ratios(seconds["library"], seconds["service"]),
            )
        )
    return goals
